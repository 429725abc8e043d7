"""Records of trials that run in other processes: started, scored, pruned, replaced, resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scale_hills import Hill

from surefoot.scale.remote_trials import Order, RemoteTrials
from surefoot.train.tune.final_round import ranked_trials
from surefoot.train.tune.plan import Plan
from surefoot.train.tune.report import search_result
from surefoot.train.tune.search import begin, open_study

pytest.importorskip("optuna")


def a_book(directory: Path, *, trials: int = 3, scheduler: Any = "asha") -> RemoteTrials:
    task, plan = Hill(), Plan(trials=trials, seeds=2, rungs=3, scheduler=scheduler)
    study = open_study(directory, plan)
    begin(study, task)
    return RemoteTrials(task, study, plan, directory)


def states(book: RemoteTrials) -> list[str]:
    return [t.state.name for t in book.study.get_trials()]


def asked(book: RemoteTrials) -> Order:
    order = book.ask()
    assert order is not None
    return order


def test_the_planned_number_of_trials_is_started_and_the_first_is_the_base(tmp_path: Path):
    book = a_book(tmp_path)
    orders = [asked(book) for _ in range(3)]
    assert orders[0] == {"number": 0, "params": {"lr": 1e-5, "kind": '"bad"'}, "from": ""}
    assert book.ask() is None


def test_a_trial_at_its_last_rung_is_complete_and_an_earlier_one_is_pruned(tmp_path: Path):
    book = a_book(tmp_path)
    for order in [asked(book), asked(book)]:
        book.record_scores(order["number"], 1, [1.0, 3.0])
    book.record_scores(0, 2, [4.0, 4.0])
    book.record_scores(0, 3, [5.0, 7.0])
    book.ended(0, 3, seconds=1.5)
    book.ended(1, 1)
    book.ended(asked(book)["number"], 0, why="the worker was lost")
    assert states(book) == ["COMPLETE", "PRUNED", "FAIL"]
    (done,) = ranked_trials(book.study, book.task.space)
    assert (done.value, done.scores) == (6.0, [5.0, 7.0])
    assert book.study.trials[2].user_attrs["why"] == "the worker was lost"


def test_a_rung_that_is_repeated_after_a_lost_worker_is_recorded_once(tmp_path: Path):
    told: list[tuple[int, int]] = []
    book = a_book(tmp_path)
    book.on_score = lambda number, rung, score: told.append((number, rung))
    asked(book)
    for rung in (1, 2, 1, 2, 3):
        book.record_scores(0, rung, [1.0, 1.0])
    assert told == [(0, 1), (0, 2), (0, 3)]


def test_an_interrupted_trial_resumes_from_its_checkpoint(tmp_path: Path):
    book = a_book(tmp_path, trials=2)
    order = asked(book)
    book.record_scores(0, 1, [2.0, 2.0])
    book.saved(0, tmp_path / "ray" / "0000" / "checkpoint_000000")
    book.close()
    assert book.unfinished
    again = asked(a_book(tmp_path, trials=2))
    assert again["params"] == order["params"]
    assert again["from"] == str(tmp_path / "ray" / "0000" / "checkpoint_000000")
    assert book.study.trials[again["number"]].intermediate_values == {1: 2.0}


def test_a_kill_of_the_process_that_records_loses_no_trial(tmp_path: Path):
    order = asked(a_book(tmp_path))  # and it is gone
    assert asked(a_book(tmp_path))["params"] == order["params"]


def test_a_successor_has_settings_close_to_its_parent_s_and_is_no_new_member(tmp_path: Path):
    book = a_book(tmp_path, trials=4, scheduler="pbt")
    members = book.population()
    assert [order["number"] for order in members] == [0, 1, 2, 3]
    for order in members:
        book.record_scores(order["number"], 1, [float(order["number"])] * 2)
    successor = book.successor(members[3])
    book.record_successor(0, successor["number"])
    assert successor["params"]["kind"] == members[3]["params"]["kind"]  # it may not move
    assert successor["params"]["lr"] != members[3]["params"]["lr"]
    book.record_scores(successor["number"], 2, [9.0, 9.0])
    assert states(book) == ["PRUNED", "RUNNING", "RUNNING", "RUNNING", "RUNNING"]
    row = search_result(book.study, book.task.space, []).trials[4]
    assert (row["parent"], row["from_rung"], row["rungs"]) == (3, 1, {"2": 9.0})
    book.close()
    resumed = a_book(tmp_path, trials=4, scheduler="pbt").population()
    assert [order["params"] for order in resumed] == [*[m["params"] for m in members[1:]], successor["params"]]


def test_a_member_that_diverged_has_no_score_and_is_not_complete(tmp_path: Path):
    book = a_book(tmp_path, trials=1, scheduler="pbt")
    book.population()
    book.record_scores(0, 1, [1.0, 1.0])
    book.record_scores(0, 2, [float("-inf")] * 2)
    book.record_scores(0, 3, [float("-inf")] * 2)
    book.ended(0, 3, why="the weights left the finite")
    assert states(book) == ["PRUNED"]
    assert book.study.trials[0].intermediate_values == {1: 1.0}
