"""The log of runs: on disk, with grace, bounded, exported and imported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from surefoot.decide.tools import RunLog, ToolAgent, ToolRun, tool
from surefoot.errors import ConfigError, RecordingError


@tool
def weather(text: str) -> str:
    """Weather forecast: rain, sun, temperature."""
    return "sunny"


def chosen(encoder, count: int) -> list[ToolRun]:
    agent = ToolAgent([weather], encoder=encoder)
    return [agent.answer(f"rain {n}") for n in range(count)]


def test_a_run_and_its_decision_come_back_from_disk(encoder, tmp_path: Path):
    (run,) = chosen(encoder, 1)
    log = RunLog(tmp_path)
    log.put(run, {"rating": np.float64(5), "comment": "nice", "selected": ("a",)})
    log.close()
    (found,) = RunLog(tmp_path).recent()
    assert found.run == run
    assert found.run.to_json() == run.to_json()
    assert found.feedback == {"rating": 5, "comment": "nice", "selected": ["a"]}
    assert (found.reward, found.raw_reward, found.success) == (1.0, 1.0, True)


def test_later_feedback_counts_within_the_grace_time_only(encoder):
    (run,) = chosen(encoder, 1)
    patient, strict = RunLog(grace=60.0), RunLog()
    patient.put(run)
    assert patient.put(run, {"rating": 0}).value == -1.0
    assert patient.store.finished(0) == [], "nothing is learned before its grace time is over"
    before = strict.put(run).value
    assert strict.put(run, {"rating": 0}).value == before
    assert (strict.late, len(strict)) == (1, 1)


def test_the_oldest_go_first(encoder):
    log = RunLog(capacity=5)
    runs = chosen(encoder, 12)
    for run in runs:
        log.put(run)
    assert [found.run.query for found in log.recent(9)] == [run.query for run in runs[7:]]
    log.clear()
    assert len(log) == 0


def test_export_and_import_are_equal_and_a_torn_file_takes_nothing_in(encoder, tmp_path: Path):
    one, two, three = RunLog(), RunLog(), RunLog()
    for n, run in enumerate(chosen(encoder, 3)):
        one.put(run, {"rating": n})
    assert one.export(tmp_path / "e.ndjson") == two.import_(tmp_path / "e.ndjson") == 3
    assert [f.run.to_json() for f in two.recent()] == [f.run.to_json() for f in one.recent()]
    assert [f.reward for f in two.store.finished(0)] == [f.reward for f in one.store.finished(0)]
    (tmp_path / "torn.ndjson").write_bytes((tmp_path / "e.ndjson").read_bytes()[:-40])
    with pytest.raises(RecordingError, match="line 3"):
        three.import_(tmp_path / "torn.ndjson")
    assert len(three) == 0


def test_a_reward_lies_in_its_range(encoder):
    (run,) = chosen(encoder, 1)
    assert RunLog().put(run, reward=0.25).parts == {"given": 0.25}
    with pytest.raises(ConfigError, match="reward is 2"):
        RunLog().put(run, reward=2.0)
    with pytest.raises(ConfigError, match="capacity is 0"):
        RunLog(capacity=0)
