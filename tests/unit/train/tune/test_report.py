"""The result of a search as YAML and as a page."""

from types import SimpleNamespace
from typing import Any

import yaml

from surefoot.learn.search_ranges import Range
from surefoot.train.tune.final_round import TrialResult
from surefoot.train.tune.plan import Plan
from surefoot.train.tune.report import SearchResult, best_yaml, page

TASK: Any = SimpleNamespace(
    name="CartPole-v1", space={"lr": Range(1e-4, 1e-2, log=True)}, settings=lambda params: params
)


def a_trial(number: int, value: float, state: str = "complete") -> dict[str, Any]:
    common = {"rungs": {"1": value}, "scores": [value], "seconds": 1.0, "why": None, "taken_back": False}
    return common | {
        "number": number,
        "state": state,
        "value": value if state == "complete" else None,
        "params": {"lr": 1e-3 * (number + 1)},
        "parent": None,
        "from_rung": None,
    }


BASE, BEST = TrialResult(0, {"lr": 1e-3}, 1.0, [1.0]), TrialResult(2, {"lr": 3e-3}, 5.0, [5.0])
RESULT = SearchResult(BEST, [BEST, BASE], [], {}, [a_trial(0, 1.0), a_trial(1, 0.5, "pruned"), a_trial(2, 5.0)])


def test_the_yaml_is_a_config_with_the_score_before_the_search_as_a_comment() -> None:
    text = best_yaml(RESULT, TASK, Plan())
    assert yaml.safe_load(text) == {"lr": 3e-3}
    assert text.startswith("# CartPole-v1: trial 2 of 3\n")
    assert "before the search" in text


def test_the_page_has_a_dot_per_trial_and_counts_those_stopped_early() -> None:
    text = page(RESULT, TASK, Plan(seeds=1))
    assert "3 trials of 1 seeds: 2 trained to the end, 1 stopped early." in text
    assert all(f"trial {n}: " in text for n in range(3))


def test_without_a_finished_trial_the_page_says_so() -> None:
    empty = SearchResult(None, [], [], {}, [])
    assert "No trial was trained to the end." in page(empty, TASK, Plan())
