"""A trial at its worker: rungs, checkpoints that go from one to another, and ends."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from scale_hills import Hill

from surefoot.errors import RunError
from surefoot.scale.ray_trial import RayTrial
from surefoot.train.tune.plan import Plan

PLAN = Plan(trials=2, seeds=4, rungs=4)


def a_worker(plan: Plan = PLAN, *, lr: float = 1e-3, fails: str = "", begin: str = "") -> RayTrial:
    worker = RayTrial()
    params = {"lr": lr, "kind": '"good"'}
    worker.setup({"order": {"number": 7, "params": params, "from": begin}}, Hill(fails=fails), plan)
    return worker


def test_a_step_is_a_rung_and_the_last_one_is_the_end():
    worker = a_worker()
    said = [worker.step() for _ in range(4)]
    assert [one["rung"] for one in said] == [1, 2, 3, 4]
    assert [one["score"] for one in said] == pytest.approx([2.5, 5.0, 7.5, 10.0])
    assert [one["done"] for one in said] == [False, False, False, True]
    assert {one["number"] for one in said} == {7}


def test_a_worker_goes_on_from_another_s_checkpoint_with_its_own_settings(tmp_path: Path):
    first, second = a_worker(lr=1e-3), a_worker(lr=1e-5)
    first.step(), first.step()
    first.save_checkpoint(str(tmp_path))
    second.load_checkpoint(str(tmp_path))
    said = second.step()
    assert said["rung"] == 3
    assert said["score"] == pytest.approx(5.0 + 6.0 / 4)  # two rungs at 10, one at 6
    assert not list(tmp_path.rglob("*.pkl"))
    assert not (tmp_path / "latest").is_symlink()


def test_a_trial_that_was_stopped_goes_on_where_it_was_or_else_from_the_beginning(tmp_path: Path):
    first = a_worker()
    first.step()
    first.save_checkpoint(str(tmp_path))
    assert a_worker(begin=str(tmp_path)).step()["rung"] == 2
    assert a_worker(begin=str(tmp_path / "gone")).step()["rung"] == 1


def test_a_worker_is_used_again_for_the_next_trial():
    worker = a_worker()
    worker.step()
    before: Any = worker._trial_run
    assert worker.reset_config({"order": {"number": 8, "params": {"lr": 1e-5, "kind": '"bad"'}, "from": ""}})
    assert before.closed
    said = worker.step()
    assert (said["number"], said["rung"], said["scores"]) == (8, 1, [1.5] * 4)


def test_a_trial_that_diverges_ends_and_says_why():
    said = a_worker(fails="diverges").step()
    assert said["done"]
    assert said["why"] == "the weights left the finite"
    assert said["score"] == -math.inf


def test_a_member_that_diverges_stays_as_the_worst_until_it_takes_over_another_s_weights(tmp_path: Path):
    plan = Plan(trials=2, seeds=4, rungs=4, scheduler="pbt")
    bad, good = a_worker(plan, fails="diverges"), a_worker(plan)
    assert not bad.step()["done"]
    bad.save_checkpoint(str(tmp_path / "bad"))
    paused = a_worker(plan)
    paused.load_checkpoint(str(tmp_path / "bad"))
    said = paused.step()
    assert (said["rung"], said["score"], said["done"]) == (2, -math.inf, False)
    good.step()
    good.save_checkpoint(str(tmp_path / "good"))
    paused.load_checkpoint(str(tmp_path / "good"))
    assert paused.step()["score"] == pytest.approx(5.0)


def test_a_trial_that_takes_too_long_is_given_up():
    said = a_worker(Plan(timeout=1e-9, seeds=4, rungs=4)).step()
    assert said["done"]
    assert "longer than" in said["why"]


def test_what_would_meet_every_trial_is_told_as_such():
    said = a_worker(fails="config").step()
    assert said["broken"] == "ConfigError: no such hill"
    assert said["done"]


def test_what_cannot_be_put_back_begins_anew_but_cannot_be_a_member(tmp_path: Path):
    worker = a_worker(fails="unkept")
    worker.step()
    worker.save_checkpoint(str(tmp_path))
    again = a_worker(fails="unkept")
    again.load_checkpoint(str(tmp_path))
    assert again.step()["rung"] == 1
    member = a_worker(Plan(seeds=4, scheduler="pbt"), fails="unkept")
    member.step()
    with pytest.raises(RunError, match="put back"):
        member.save_checkpoint(str(tmp_path))
