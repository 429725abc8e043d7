"""The plan of a search and its file."""

import pytest

from surefoot.errors import ConfigError, RunError
from surefoot.train.tune.plan import Plan, read_plan, write_plan


def test_a_plan_is_saved_and_read_back(tmp_path):
    write_plan(tmp_path, Plan(trials=7, minutes=2.5), {"env": "hill"})
    assert read_plan(tmp_path) == (Plan(trials=7, minutes=2.5), {"env": "hill"})
    with pytest.raises(RunError, match="not a search"):
        read_plan(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "wrong", [{"trials": 0}, {"seeds": 0}, {"rungs": 0}, {"minutes": 0.0}, {"finalists": -1}], ids=str
)
def test_an_impossible_plan_is_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Plan(**wrong)
