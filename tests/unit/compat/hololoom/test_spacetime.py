"""Spacetimes in files and collections."""

from __future__ import annotations

import math
import time
from datetime import datetime
from pathlib import Path

import pytest

from surefoot.compat.hololoom import (
    FabricCollection,
    Spacetime,
    WeavingShuttle,
    tool,
)
from surefoot.errors import RecordingError


@tool
def weather(text: str) -> str:
    """Weather forecast: rain, sun, temperature."""
    return "sunny"


@tool
def music(text: str) -> str:
    """Play music, songs and albums."""
    return "playing"


def agent(encoder, **options) -> WeavingShuttle:
    return WeavingShuttle([weather, music], encoder=encoder, **options)


def woven(tool_used: str = "a", confidence: float = 0.9, **more) -> Spacetime:
    return Spacetime(
        id=more.pop("id", f"{time.perf_counter_ns()}"),
        query_text="q",
        response="r",
        tool_used=tool_used,
        confidence=confidence,
        **more,
    )


def test_a_spacetime_comes_back_equal_from_a_file(encoder, tmp_path: Path):
    # There, every saved episode stopped at "start_time": datetimes are not JSON.
    found = agent(encoder).weave_sync("play a song")
    found.add_quality_score(0.8, "fine")
    found.trace.analytical_metrics = {"kept": [1, 2.5], "odd": math.inf}
    found.save(tmp_path / "s.json")
    again = Spacetime.load(tmp_path / "s.json")
    assert again == found
    assert isinstance(again.trace.start_time, datetime)
    assert again.trace.analytical_metrics == {"kept": [1, 2.5], "odd": math.inf}


def test_many_are_saved_loaded_and_counted(tmp_path: Path):
    fabric = FabricCollection([woven("a"), woven("b", 0.3)])
    fabric.save_all(tmp_path)
    again = FabricCollection.load_all(tmp_path)
    assert list(again) == list(fabric)
    assert again.get_statistics()["tool_distribution"] == {"a": 1, "b": 1}
    assert again.get_statistics()["success_rate"] == 0.5
    assert len(again.filter_by_tool("a")) == 1


def test_what_json_cannot_hold_and_fields_nobody_knows_are_refused():
    with pytest.raises(RecordingError, match="cannot contain"):
        woven(metadata={"f": print}).to_dict()
    with pytest.raises(RecordingError, match="'colour' is not a field"):
        Spacetime.from_dict({**woven().to_dict(), "colour": "red"})
