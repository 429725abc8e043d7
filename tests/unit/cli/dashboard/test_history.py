"""The data behind the display: bounded memory, rates, notes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from surefoot.cli.dashboard.history import RunHistory, Trace

from .examples import HEADER, after, evaluation, moment, plain


def test_a_note_cannot_move_the_cursor():
    history = after(1, notes=("\x1b[2Jwiped\nout",))
    assert "\x1b" not in "".join(plain(history, 100, 30))
    assert "wiped out" in "\n".join(plain(history, 100, 30))


def test_a_repeated_note_is_counted_not_repeated():
    page = "\n".join(plain(after(7, notes=("a guard fired",)), 100, 30))
    assert page.count("a guard fired") == 1
    assert "×7" in page


def test_the_time_split_adds_up_to_the_wall_time():
    split = dict(after(10).time_split())
    assert split == pytest.approx({"env": 0.2, "policy": 0.3, "learn": 0.4, "rest": 0.1})


def test_the_rate_follows_the_last_ten_seconds_and_the_eta_the_rate():
    history = RunHistory(HEADER)
    for update in range(1, 51):  # 10,000 steps a second for 2.5 s, then 1,000 a second
        seconds = 0.1 * update if update <= 25 else 2.5 + (update - 25)
        history.add(moment(update, seconds=seconds))
    for update in range(51, 91):
        history.add(moment(update, seconds=27.5 + update - 50))
    assert history.rate == pytest.approx(1000)
    assert history.eta == pytest.approx(10)


def test_a_resumed_run_measures_only_its_own_steps():
    history = RunHistory(HEADER)
    history.add(moment(51, seconds=1.0))
    assert history.overall_rate == pytest.approx(1000)
    assert history.progress == pytest.approx(0.51)


def test_a_trace_keeps_means_and_extremes_in_bounded_space():
    trace = Trace(5, capacity=8)
    for i in range(100):
        trace.add([i, i, -i, i, 1.0])
    rows = trace.rows()
    assert len(rows) <= 9
    assert rows[:, 2].min() == -99
    assert rows[:, 3].max() == 99
    assert (rows[:, 4] == 1).all()
    # The first row stands for updates 0 to 15, whose mean is 7.5.
    assert rows[0].tolist() == [7.5, 7.5, -15, 15, 1]


def test_the_best_evaluation_of_a_resumed_run_may_be_an_earlier_one():
    early = evaluation(mean=90.0, env_steps=1_000)
    history = RunHistory(replace(HEADER, earlier=(early,)))
    history.add(moment(1, evaluation=evaluation(mean=50.0)))
    assert history.best_evaluation == early
