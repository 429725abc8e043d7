"""The display of a search and its summary."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from surefoot.cli.verbs.tune_progress import TuneScreen, lines
from surefoot.train.tune.plan import Plan


def result(**changes: Any) -> Any:
    best = SimpleNamespace(number=2, value=9.0, scores=[])
    base = SimpleNamespace(number=0, value=5.0, scores=[])
    return SimpleNamespace(**{"best": best, "base": base, "finals": [best], "importance": {}} | changes)


def test_the_summary_names_the_best_trial_the_baseline_and_the_next_command() -> None:
    task: Any = SimpleNamespace(name="CartPole-v1")
    text = lines(result(importance={"lr": 0.75, "clip": 0.25}), task, Path("runs/t"))
    assert text[0] == "trial 2: 9.0 on new seeds"
    assert text[1] == "baseline: 5.0"
    assert text[2] == "important: lr 75%, clip 25%"
    assert text[-1] == "surefoot train CartPole-v1 --config runs/t/best.yaml"


def test_a_search_without_an_improvement_reports_it() -> None:
    task: Any = SimpleNamespace(name="my.json")
    base = SimpleNamespace(number=0, value=5.0, scores=[])
    text = lines(result(best=base, finals=[]), task, Path("t"))
    assert text[0] == "no trial beat the baseline: 5.0 on the seeds of the search"
    assert text[-1] == "surefoot graph run t/best.json"
    assert "no trial was trained to its end" in lines(result(best=None), task, Path("t"))[0]


def test_the_best_complete_trial_is_printed() -> None:
    screen = TuneScreen("x", Plan(trials=3, rungs=2), quiet=False)
    out = screen.console = Console(file=io.StringIO(), width=100)
    screen.live = False
    for number, rung, score in ((0, 1, 50.0), (0, 2, 4.0), (1, 2, 3.0)):
        screen.show_score(number, rung, score)
    printed: Any = out.file
    assert printed.getvalue().splitlines() == [
        "trial 0: 4.0   best 4.0 (trial 0)",
        "trial 1: 3.0   best 4.0 (trial 0)",
    ]
