"""Tests of `surefoot.decide.policy.experience_log`."""

from __future__ import annotations

import numpy as np

from surefoot.decide.policy.experience_log import Log
from surefoot.decide.policy.outcome_model import Scene


def test_a_full_log_writes_over_its_oldest_and_comes_back_the_same():
    log = Log(2, capacity=3)
    for i in range(5):
        k = 2 + i % 2
        scene = Scene(x=np.array([i, 1.0], np.float32), option=np.arange(k), cosine=np.zeros(k, np.float32))
        log.append(scene, 1, 0.5, float(i))
    assert len(log) == 3
    assert log.latest(2).reward.tolist() == [3.0, 4.0]
    again = Log(2, capacity=3)
    again.set_state(log.state())
    assert again.latest(3).reward.tolist() == [2.0, 3.0, 4.0]
    assert again.latest(3).valid.tolist() == [[True, True, False], [True, True, True], [True, True, False]]
    picked = again.sample(3, np.random.default_rng(0))
    assert sorted(picked.reward) == [2.0, 3.0, 4.0]


def test_rows_that_occur_are_found_with_the_place_of_each_candidate():
    same, mixed = Log(2, capacity=3), Log(2, capacity=3)
    for option in ([0, 1, 2], [0, 1, 2]):
        same.append(Scene(x=np.zeros(2), option=np.array(option), cosine=np.zeros(3)), 0, 1.0, 1.0)
    for option in ([7, 4], [4, 9]):
        mixed.append(Scene(x=np.zeros(2), option=np.array(option), cosine=np.zeros(2)), 0, 1.0, 1.0)
    assert same.rows(slice(None)).compact(3) == (slice(None), None)
    assert same.rows(slice(None)).compact(10)[0].tolist() == [0, 1, 2]
    used, place = mixed.rows(slice(None)).compact(100)
    assert used.tolist() == [4, 7, 9]
    assert place.tolist() == [[1, 0], [0, 2]]
