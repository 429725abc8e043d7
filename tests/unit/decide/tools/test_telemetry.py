"""Tests of `surefoot.decide.tools.telemetry`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.tools import ToolAgent
from surefoot.decide.tools.telemetry import rows_in, run_statistics
from surefoot.errors import RunNotFound
from surefoot.telemetry.reader import read_records
from surefoot.telemetry.schema import UpdateRecord

from .agent_cases import core, music, weather

RELEASE_1 = Path(__file__).parents[3] / "golden/agents/release_1"


def test_a_directory_of_the_first_release_is_continued(tmp_path: Path):
    shutil.copytree(RELEASE_1, tmp_path / "agent", symlinks=True)
    with ToolAgent([weather, music], encoder=HashingEncoder(8), directory=tmp_path / "agent") as agent:
        assert (len(agent.runs), core(agent).model.outcomes) == (8, 5)
        agent.learn()
        assert (agent.version, core(agent).model.outcomes) == (2, 8), "three runs came after the saved version"
        last = agent.runs.recent(1)[0]
        assert (last.run.tool, last.feedback["right"], last.reward) == ("weather", "weather", 1.0)
        assert str(agent.explain(last.run)).startswith("weather (expected success 99%)")
        agent.feedback(agent.answer("some song number 2"), {"helpful": True})
    rows = rows_in(tmp_path / "agent")
    assert [row["chosen"] for row in rows] == ["weather"] * 9
    assert all(0.0 < row["probability"] <= 1.0 for row in rows)


def test_statistics_of_runs_by_hand(encoder):
    agent = ToolAgent([weather, music], encoder=encoder)
    for helpful in (True, True, False, True):
        agent.feedback(agent.answer("will it rain", allowed=["weather"]), {"helpful": helpful})
    statistics = run_statistics(agent.runs.recent(4))
    assert statistics == {"success_rate": 0.75, "average_reward": 0.5, "action_share_weather": 1.0}
    assert run_statistics([]) == {}


def test_telemetry_is_written_with_the_first_update_only(encoder, tmp_path: Path):
    agent = ToolAgent([weather, music], encoder=encoder, directory=tmp_path)
    assert not (tmp_path / "telemetry.ndjson").exists()
    for _ in range(40):
        agent.feedback(agent.answer("will it rain"), {"helpful": True})
    agent.learn(force=True)
    agent.close()
    updates = [record for record in read_records(tmp_path) if isinstance(record, UpdateRecord)]
    assert [record.m["success_rate"] for record in updates] == [1.0]


def test_a_directory_without_decisions_is_reported(tmp_path: Path):
    with pytest.raises(RunNotFound, match="neither a trial nor an agent's runs"):
        rows_in(tmp_path)
