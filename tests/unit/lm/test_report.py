"""The page of a language run has what a language run has, and nothing of a game."""

from __future__ import annotations

import pytest
from lm_helpers import training

from surefoot.lm.report import LanguageReport, samples_of
from surefoot.lm.run import create
from surefoot.train.rundir.rundir import RunDir


@pytest.fixture
def report(tmp_path):
    directory = RunDir(tmp_path / "polite")
    directory.path.mkdir()
    run = create(directory, training(judge=lambda responses: [1.0] * 3, judge_every=2), about={"model": "tiny"})
    for _ in run.steps():
        pass
    run.close("finished")
    return LanguageReport(directory)


def test_the_page_shows_the_curves_the_samples_and_the_cost(report):
    page = report.write().read_text()
    for title in ("Score", "Judge", "KL to the reference", "Reference NLL", "Length", "Samples, first and last step"):
        assert f"<h2>{title}</h2>" in page
    assert "Cost per step" in page
    assert "generate" in page
    assert "episode" not in page.lower()
    assert "finished after 4 steps" in page


def test_the_terminal_has_the_same_numbers(report):
    text = "\n".join(report.lines())
    assert "polite: finished after 4 steps" in text
    assert "score" in text
    assert "step 1: " in text
    assert "step 4: " in text


def test_the_samples_of_a_killed_run_end_with_the_last_whole_line(tmp_path):
    (tmp_path / "s.ndjson").write_text('{"step": 1, "samples": []}\n{"step": 2, "sam')
    assert [sample["step"] for sample in samples_of(tmp_path / "s.ndjson")] == [1]
    assert samples_of(tmp_path / "none.ndjson") == []
