"""RunSpec: defaults of a run, JSON, and what is refused."""

import json

import pytest

from surefoot.data.spaces import Discrete
from surefoot.errors import ConfigError
from surefoot.train.spec import DEFAULT_TOTAL_STEPS, RunSpec, make_spec


def test_a_run_has_ten_evaluations_and_twenty_checkpoints_by_default() -> None:
    spec = make_spec("SomeEnv-v0", Discrete(2), preset_name="sb3", total_steps=1000)
    assert (spec.eval_every, spec.checkpoint_every) == (100, 50)
    assert make_spec("SomeEnv-v0", Discrete(2), preset_name="sb3").total_steps == DEFAULT_TOTAL_STEPS


def test_the_last_update_is_counted_although_it_is_not_full() -> None:
    spec = make_spec("E-v0", Discrete(2), preset_name="sb3", settings={"n_steps": 10, "n_envs": 3}, total_steps=61)
    assert spec.total_updates == 3


def test_json_and_back_and_fields_of_later_versions_are_ignored() -> None:
    spec = make_spec("E-v0", Discrete(2), settings={"lr": "lin_1e-3", "hidden": "8,8"}, seed=None)
    data = json.loads(json.dumps(spec.to_json())) | {"of_a_later_version": 1}
    assert RunSpec.from_json(data) == spec


def test_a_spec_with_the_former_name_of_a_setting_is_read() -> None:
    data = make_spec("E-v0", Discrete(2)).to_json()
    data["ppo"]["steps"] = data["ppo"].pop("rollout_steps") + 1
    assert RunSpec.from_json(data).ppo.rollout_steps == data["ppo"]["steps"]


@pytest.mark.parametrize("wrong", [{"total_steps": 0}, {"eval_every": -1}, {"keep_checkpoints": 0}])
def test_a_run_that_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        make_spec("E-v0", Discrete(2), **wrong)
