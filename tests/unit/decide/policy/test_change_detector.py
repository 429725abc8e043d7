"""Tests of `surefoot.decide.policy.change_detector`."""

from __future__ import annotations

from surefoot.decide.policy.change_detector import WINDOW, ChangeDetector


def changes(detector: ChangeDetector, expected: float, rewards: list[float]) -> int:
    return sum(detector.observe(0, expected, reward) for reward in rewards)


def test_successes_as_expected_are_no_change():
    assert changes(ChangeDetector(4.0), 0.9, [1.0] * 200) == 0


def test_failures_where_success_was_expected_are_one_change_each_window():
    # 15 outcomes of 0.9 have a deviation of √(15 · 0.09) = 1.16; 13.5 missing successes are 11.6 of them.
    assert changes(ChangeDetector(4.0), 0.9, [0.0] * (WINDOW // 2)) == 1
    assert changes(ChangeDetector(12.0), 0.9, [0.0] * (WINDOW // 2)) == 0


def test_failures_that_were_expected_are_no_change():
    assert changes(ChangeDetector(4.0), 0.05, [0.0] * 200) == 0


def test_more_successes_than_expected_are_no_change():
    assert changes(ChangeDetector(4.0), 0.05, [1.0] * 200) == 0


def test_options_are_watched_separately():
    detector = ChangeDetector(4.0)
    assert not any(detector.observe(option, 0.9, 0.0) for option in range(100))


def test_a_saved_state_continues_where_it_was():
    one, two = ChangeDetector(4.0), ChangeDetector(4.0)
    changes(one, 0.9, [0.0] * (WINDOW // 2 - 1))
    two.set_state(one.state())
    assert one.observe(0, 0.9, 0.0)
    assert two.observe(0, 0.9, 0.0)
