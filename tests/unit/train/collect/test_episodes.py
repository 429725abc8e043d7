"""The log of episodes against hand-made steps."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.envs.api import Step, View
from surefoot.train.collect.episodes import WINDOW, EpisodeLog


def step(reward, ended="", *, valid=None, truncated=False, success=None, whole=None) -> Step:
    """One step of len(reward) streams; `ended` names the streams that end here, as in "02"."""
    n = len(reward)
    over = np.array([str(i) in ended for i in range(n)])
    return Step(
        view=View(obs={}),
        reward=np.array(reward, float),
        terminated=over & (not truncated),
        truncated=over & truncated,
        valid=np.ones(n, bool) if valid is None else np.array(valid),
        stats={
            name: np.array(said, float)
            for name, said in (("success", success), ("whole_return", whole))
            if said is not None
        },
    )


def count(log: EpisodeLog, *steps: Step) -> None:
    for s in steps:
        log.count(s)
        log.finish(s, s.terminated | s.truncated)


def test_returns_and_lengths_add_up_until_the_end():
    log = EpisodeLog(2)
    count(log, step([1, 10]), step([2, 20], "0"), step([4, 40]), step([8, 80], "01", truncated=True))
    fresh = log.take_fresh()
    assert [(e.stream, e.return_, e.length, e.truncated) for e in fresh] == [
        (0, 3.0, 2, False),
        (0, 12.0, 2, True),
        (1, 150.0, 4, True),
    ]
    assert log.finished == 3
    assert log.take_fresh() == []


def test_rows_that_only_reset_count_for_nothing():
    log = EpisodeLog(1)
    count(log, step([1], "0"), step([99], valid=[False]), step([2]), step([3], "0"))
    assert [(e.return_, e.length) for e in log.take_fresh()] == [(1.0, 1), (5.0, 2)]


def test_an_episode_that_was_lost_on_the_way_is_not_counted():
    log = EpisodeLog(2)
    returns, lengths = log.returns, log.lengths
    count(log, step([1, 1]), step([0, 1], valid=[False, True]), step([5, 1], "01"))
    assert [(e.stream, e.return_, e.length) for e in log.take_fresh()] == [(0, 5.0, 1), (1, 3.0, 3)]
    assert log.returns is returns, "the kernel adds to the arrays it was given"
    assert log.lengths is lengths


def test_a_forgotten_episode_is_not_counted():
    log = EpisodeLog(1)
    count(log, step([1]), step([1]))
    log.forget(0)
    count(log, step([5], "0"))
    assert [(e.return_, e.length) for e in log.take_fresh()] == [(5.0, 1)]


def test_the_last_hundred_are_remembered():
    log = EpisodeLog(1)
    assert log.recent() == (None, None, None)
    count(log, *[step([float(i)], "0") for i in range(WINDOW + 50)])
    assert log.recent() == (pytest.approx(50 + 49.5), 1.0, None)
    assert log.finished == WINDOW + 50


def test_success_is_the_share_of_those_who_say():
    log = EpisodeLog(1)
    count(log, step([0], "0"), step([0], "0", success=[1.0]), step([0], "0", success=[0.0]))
    assert log.recent()[2] == 0.5
    assert [e.success for e in log.take_fresh()] == [None, 1.0, 0.0]


def test_a_stream_that_does_not_say_is_not_a_success():
    # Two end together; one reports success, the other nothing, which stands as NaN in the column.
    log = EpisodeLog(2)
    count(log, step([0, 0], "01", success=[1.0, np.nan]))
    assert [e.success for e in log.take_fresh()] == [1.0, None]
    assert log.recent()[2] == 1.0


def test_a_log_goes_on_from_its_state():
    one, two = EpisodeLog(2), EpisodeLog(2)
    count(one, step([1, 2], "0"), step([3, 4]))
    two.set_state(one.state())
    for log in (one, two):
        log.take_fresh()
        count(log, step([5, 6], "01"))
    assert one.take_fresh() == two.take_fresh()
    assert one.recent() == two.recent()
    assert one.finished == two.finished == 3


def test_a_part_of_an_episode_is_no_episode():
    """Two lives of a game that stream 0 plays, while stream 1's game is over with its first."""
    log, nan = EpisodeLog(2), float("nan")
    count(log, step([1, 10]), step([2, 20], "01", whole=[nan, 33.0]), step([4, 40], "0", whole=[7.5, nan]))
    assert [(e.stream, e.return_, e.length) for e in log.take_fresh()] == [(1, 33.0, 2), (0, 7.5, 3)]
    assert (log.returns.tolist(), log.lengths.tolist()) == ([0.0, 40.0], [0, 1])
