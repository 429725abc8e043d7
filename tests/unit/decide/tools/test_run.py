"""The record of an answered query."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path

import pytest

from surefoot.decide.tools import ToolAgent, ToolRun, tool
from surefoot.decide.tools.run import RunTrace, from_earlier, read_json
from surefoot.errors import RecordingError

RELEASE_1 = Path(__file__).parents[3] / "golden/agents/release_1"


@tool
def music(text: str) -> str:
    """Play music, songs and albums."""
    return "playing"


def test_a_run_comes_back_equal_from_a_file(encoder, tmp_path: Path):
    run = ToolAgent([music], encoder=encoder).answer("play a song", metadata={"odd": math.inf})
    run.add_quality(0.8, "fine")
    run.save(tmp_path / "run.json")
    again = ToolRun.load(tmp_path / "run.json")
    assert again == run
    assert again.to_json() == run.to_json()
    assert isinstance(again.trace.started_at, datetime)
    assert again.metadata["odd"] == math.inf


def test_what_json_cannot_hold_and_unknown_fields_are_refused(tmp_path: Path):
    run = ToolRun(query="q", response="r", tool="t", confidence=0.5, trace=RunTrace())
    with pytest.raises(RecordingError, match="'colour' is not a field of ToolRun"):
        ToolRun.from_json({**run.to_json(), "colour": "red"})
    with pytest.raises(RecordingError, match="between 0 and 1"):
        run.add_quality(1.5)
    run.metadata["f"] = print
    with pytest.raises(RecordingError, match="cannot contain"):
        run.to_json()
    with pytest.raises(RecordingError, match="could not be read as a tool run"):
        ToolRun.load(tmp_path / "nowhere.json")


def test_a_file_of_the_first_release_has_all_its_fields():
    data = read_json(RELEASE_1 / "spacetime.json", "a file of the first release")
    run = from_earlier(data)
    assert (run.query, run.tool, run.id) == (data["query_text"], data["tool_used"], data["id"])
    assert run.trace.cues == data["trace"]["motifs_detected"]
    assert run.metadata["depth"] == data["metadata"]["pattern_card"]
    assert run.decision is not None
    assert run.decision.scene.x.tolist() == data["decision"]["x"]
    assert run.decision.probability == data["decision"]["probability"]
