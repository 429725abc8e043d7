"""Whether a run is recorded, and which share of its gradient steps."""

import pytest

from surefoot.errors import ConfigError
from surefoot.train.rundir.recorder import RecordingOptions


@pytest.mark.parametrize(
    ("record", "header", "expected"),
    [(None, {}, True), (None, {"record": False}, False), (True, {"record": False}, True), (False, {}, False)],
)
def test_an_option_wins_over_run_json_and_a_new_run_is_recorded(record, header, expected) -> None:
    assert RecordingOptions(record=record).should_record(header) is expected


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_a_rate_is_a_share(rate: float) -> None:
    with pytest.raises(ConfigError, match="minibatch_rate"):
        RecordingOptions(minibatch_rate=rate)
