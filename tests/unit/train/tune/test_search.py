"""Searches over a task whose optimum is known: trials, pruning, resuming, the final comparison."""

from __future__ import annotations

import json
import math
import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from surefoot.errors import Diverged
from surefoot.learn.search_ranges import Choice, Range
from surefoot.train.diagnose.statistics import iqm
from surefoot.train.tune.final_round import compare_finalists, ranked_trials
from surefoot.train.tune.plan import Plan
from surefoot.train.tune.report import search_result, write_result
from surefoot.train.tune.search import begin, open_study, search

pytest.importorskip("optuna")


class Hill:
    """A score that is highest at lr = 1e-3 with kind "good"; seeds add a little."""

    name = "hill"

    def __init__(self, luck: Callable[[dict[str, Any], int], float] = lambda params, seed: 0.01 * seed) -> None:
        self.space = {"lr": Range(1e-5, 1e-1, log=True), "kind": Choice(("bad", "good")), "idle": Range(0.0, 1.0)}
        self.base = {"lr": 1e-5, "kind": "bad", "idle": 0.5}
        self.moving = frozenset({"lr"})
        self.luck, self.seen = luck, list[tuple[dict[str, Any], tuple[int, ...]]]()
        self.rungs = 0

    def trial_run(self, params: dict[str, Any], seeds: Sequence[int]) -> Climb:
        self.seen.append((params, tuple(seeds)))
        return Climb(self, params, seeds)

    def settings(self, params: dict[str, Any]) -> dict[str, Any]:
        return dict(params)


class Climb:
    def __init__(self, hill: Hill, params: dict[str, Any], seeds: Sequence[int]) -> None:
        self.hill, self.params, self.seeds = hill, params, seeds

    def advance(self, share: float, stop: Callable[[], bool]) -> list[float] | None:
        self.hill.rungs += 1
        if stop():
            return None
        top = -((math.log10(self.params["lr"]) + 3) ** 2) + (2.0 if self.params["kind"] == "good" else 0.0)
        return [share * (10 + top) + self.hill.luck(self.params, seed) for seed in self.seeds]

    def state(self) -> dict[str, Any]:
        return {}

    def set_state(self, parts: dict[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass


def run(tmp_path, task=None, **plan):
    task, plan = task or Hill(), Plan(**{"trials": 30, "seeds": 3, **plan})
    study = open_study(tmp_path, plan)
    begin(study, task)
    search(task, study, plan, tmp_path)
    return task, study, plan


def test_the_search_finds_the_top_and_says_what_mattered(tmp_path):
    task, study, _ = run(tmp_path, trials=25)
    found = search_result(study, task.space, [])
    assert found.best is not None
    assert found.best.params["kind"] == "good"
    assert 1e-4 < found.best.params["lr"] < 1e-2
    assert found.base is not None
    assert found.base.value < found.best.value
    assert max(found.importance, key=lambda name: found.importance[name]) == "lr"


def test_the_first_trial_is_the_base(tmp_path):
    task, *_ = run(tmp_path, trials=1)
    assert task.seen == [({"lr": 1e-5, "kind": "bad", "idle": 0.5}, (0, 1, 2))]


def test_a_trial_s_score_is_the_interquartile_mean_of_its_seeds(tmp_path):
    scores = {0: 0.0, 1: 100.0, 2: 3.0, 3: 5.0}
    _, study, _ = run(tmp_path, Hill(lambda params, seed: scores[seed] - 6.0), trials=1, seeds=4)
    assert study.trials[0].value == pytest.approx(iqm([0.0, 100.0, 3.0, 5.0])) == pytest.approx(4.0)


def test_hopeless_trials_are_given_up_early(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    with_pruner, *_ = run(tmp_path / "a", trials=12)
    without, *_ = run(tmp_path / "b", trials=12, pruner="none")
    assert without.rungs == 12 * 5
    assert with_pruner.rungs < without.rungs


def test_a_search_goes_on_where_it_was(tmp_path):
    _, study, plan = run(tmp_path, trials=5)
    before = [t.params for t in study.trials]
    task = Hill()
    again = open_study(tmp_path, plan)
    begin(again, task)
    search(task, again, Plan(trials=8), tmp_path)
    assert [t.params for t in again.trials][:5] == before
    assert len(task.seen) == 3


def test_a_trial_that_was_stopped_is_tried_again(tmp_path):
    task, plan = Hill(), Plan(trials=3, seeds=1)
    study = open_study(tmp_path, plan)
    begin(study, task)
    search(task, study, plan, tmp_path, stop=lambda: len(task.seen) == 2)
    stopped = task.seen[-1]
    assert len(ranked_trials(study, task.space)) == 1
    search(task, study, plan, tmp_path)
    assert task.seen[2] == stopped
    assert len([t for t in study.trials if t.state.name in ("COMPLETE", "PRUNED")]) == 3


def test_a_trial_that_a_kill_left_behind_is_tried_again(tmp_path):
    task, plan = Hill(), Plan(trials=2, seeds=1)
    study = open_study(tmp_path, plan)
    begin(study, task)
    killed = study.ask()
    killed.suggest_float("lr", 1e-5, 1e-1, log=True)
    resumed = open_study(tmp_path, plan)
    begin(resumed, task)
    search(task, resumed, plan, tmp_path)
    assert task.seen[0][0]["lr"] == killed.params["lr"] == 1e-5
    assert [t.state.name for t in resumed.trials][0] == "FAIL"
    assert not [t for t in resumed.trials if t.state.name == "RUNNING"]


def test_a_setting_that_diverges_does_not_end_the_search(tmp_path):
    def luck(params: dict[str, Any], seed: int) -> float:
        if params["kind"] == "good":
            raise Diverged("the weights left the finite")
        return 0.0

    task, study, _ = run(tmp_path, Hill(luck), trials=12)
    assert {one.params["kind"] for one in ranked_trials(study, task.space)} == {"bad"}
    assert any(t.user_attrs.get("why") for t in study.trials)


def test_a_trial_that_takes_too_long_is_given_up(tmp_path):
    plan, task = Plan(trials=2, timeout=1e-9), Hill()
    study = open_study(tmp_path, plan)
    begin(study, task)
    search(task, study, plan, tmp_path)
    assert [t.state.name for t in study.trials] == ["FAIL", "FAIL"]  # and it did end


def test_the_final_comparison_is_won_by_the_better_not_by_the_lucky(tmp_path):
    def luck(params: dict[str, Any], seed: int) -> float:
        return 50.0 if params["kind"] == "bad" and params["lr"] != 1e-5 and seed < 1000 else 0.0

    task, study, plan = run(tmp_path, Hill(luck), trials=16, pruner="none", finalists=16)
    assert ranked_trials(study, task.space)[0].params["kind"] == "bad"
    finals = compare_finalists(task, study, plan)
    assert finals[0].params["kind"] == "good"
    assert {seeds for _, seeds in task.seen[16:]} == {(10_000, 10_001, 10_002)}


def test_the_base_is_always_in_the_final_comparison_and_its_scores_are_saved(tmp_path):
    task, study, plan = run(tmp_path, trials=12, finalists=2)
    finals = compare_finalists(task, study, plan)
    assert 0 in {one.number for one in finals}
    assert len(finals) == 3
    played = len(task.seen)
    assert compare_finalists(task, study, plan) == finals
    assert len(task.seen) == played


def test_the_base_is_in_the_final_comparison_even_if_it_was_pruned(tmp_path):
    task, study, plan = run(tmp_path, trials=6, finalists=1)
    other = open_study(tmp_path, plan)
    other.get_trials = lambda **asked: [t for t in study.get_trials(**asked) if t.number != 0]
    finals = compare_finalists(task, other, plan)
    assert [one.params for one in finals if one.number == 0] == [{"lr": 1e-5, "kind": "bad", "idle": 0.5}]


def test_a_search_that_goes_on_draws_other_settings_than_at_first(tmp_path):
    task, *_ = run(tmp_path, trials=4, sampler="random")
    again = open_study(tmp_path, Plan(trials=8, sampler="random"))
    search(task, again, Plan(trials=8, sampler="random"), tmp_path)
    drawn = [t.params["lr"] for t in again.trials]
    assert len(set(drawn)) == len(drawn) == 8


def test_the_outcome_is_written_whole_and_a_page_has_no_script(tmp_path):
    task, study, plan = run(tmp_path, trials=15)
    write_result(tmp_path, search_result(study, task.space, compare_finalists(task, study, plan)), task, plan)
    page = (tmp_path / "report.html").read_text()
    assert "What mattered" in page
    assert "<script" not in page
    assert page.count("<circle") >= 15
    assert len(json.loads((tmp_path / "trials.json").read_text())["trials"]) >= 15
    assert "kind: good" in (tmp_path / "best.yaml").read_text()


def test_before_any_trial_is_done_there_is_a_page_and_no_best(tmp_path):
    task, plan = Hill(), Plan(trials=3)
    study = open_study(tmp_path, plan)
    begin(study, task)
    write_result(tmp_path, search_result(study, task.space, []), task, plan)
    assert "No trial was trained to the end" in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "best.yaml").exists()


def _child(path, plan):
    task = Hill()
    search(task, open_study(path, plan, worker=1), plan, path)


def test_two_processes_never_try_more_than_was_planned(tmp_path):
    plan, task = Plan(trials=12, pruner="none"), Hill()
    study = open_study(tmp_path, plan)
    begin(study, task)
    child = multiprocessing.get_context("fork").Process(target=_child, args=(tmp_path, plan))
    child.start()
    search(task, study, plan, tmp_path)
    child.join(60)
    assert child.exitcode == 0
    assert [t.state.name for t in study.get_trials()] == ["COMPLETE"] * 12
