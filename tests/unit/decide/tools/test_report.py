"""Tests of `surefoot.decide.tools.report`."""

from __future__ import annotations

import shutil
from pathlib import Path

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.tools import ToolAgent
from surefoot.decide.tools.report import rows_in

from .agent_cases import core, music, weather

RELEASE_1 = Path(__file__).parents[3] / "golden/agents/release_1"


def test_a_directory_of_the_first_release_is_continued(tmp_path: Path):
    shutil.copytree(RELEASE_1, tmp_path / "agent", symlinks=True)
    with ToolAgent([weather, music], encoder=HashingEncoder(8), directory=tmp_path / "agent") as made:
        assert (len(made.runs), core(made).model.outcomes) == (8, 5)
        made.learn()
        assert (made.version, core(made).model.outcomes) == (2, 8), "three runs came after the saved version"
        last = made.runs.recent(1)[0]
        assert (last.run.tool, last.feedback["right"], last.reward) == ("weather", "weather", 1.0)
        assert str(made.explain(last.run)).startswith("weather (expected success 99%)")
        made.feedback(made.answer("some song number 2"), {"helpful": True})
    rows = rows_in(tmp_path / "agent")
    assert [row["chosen"] for row in rows] == ["weather"] * 9
    assert all(0.0 < row["probability"] <= 1.0 for row in rows)
