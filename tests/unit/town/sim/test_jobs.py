"""surefoot.town.sim.jobs."""

import pytest

from surefoot.town.sim.layout import WAIT
from surefoot.town.sim.tick import spawn_due_agents


def test_punctual_agents_are_paid_and_late_ones_pay_a_fee_and_are_helped(small_town) -> None:
    town = small_town(small_town.WORK)
    for _ in range(9):
        town.go(WAIT, 4)
    assert town.state.shift[0].tolist() == [2, 3]
    assert town.count("late_help_events") == 1
    assert town.state.wages[0, 0] == pytest.approx(0.1 * 7)
    assert town.state.punctual_ticks[0].tolist() == [7, 0]
    assert town.state.lateness[0].tolist() == [0, 1]
    assert town.state.wallet[0, 1] == pytest.approx(1.0 - 0.2 + 4 * 0.1)


def test_an_agent_that_does_not_come_is_absent_and_a_colleague_takes_the_shift(small_town) -> None:
    town = small_town(small_town.WORK)
    for _ in range(13):
        town.go(WAIT, WAIT)
    assert town.state.shift[0].tolist() == [2, 4]
    assert town.count("shift_takeover_events") == 1
    assert town.state.withheld[0, 1] >= 0.5


def test_an_agent_that_misses_too_many_shifts_is_evicted_and_replaced(small_town) -> None:
    town = small_town(small_town.WORK + "  \nlifecycle: {respawn_delay: 2}\n".replace("employment", "employment"))
    for day in range(3):
        for _ in range(40):
            if not town.state.present[0, 1]:
                break
            outcome = town.go(WAIT, WAIT)
        if day < 2:
            assert town.state.present[0, 1]
    assert outcome.terminated[0].tolist() == [False, True]
    assert outcome.reward[0, 1] <= -2.0
    assert spawn_due_agents(town.layout, town.state, town.rng) is town.state
    town.go(WAIT, WAIT)
    town.go(WAIT, WAIT)
    assert spawn_due_agents(town.layout, town.state, town.rng).present.all()


def test_a_shift_over_midnight_is_one_shift(small_town) -> None:
    night = small_town.WORK.replace("start: 2, end: 20", "start: 30, end: 5").replace("ticks: 40\nt", "ticks: 120\nt")
    town = small_town(night)
    for _ in range(30):
        town.go(WAIT, WAIT)
    # The night before the first day is nobody's shift.
    assert town.state.shift_ticks[0].tolist() == [0, 0]
    assert town.state.withheld[0].tolist() == [0.0, 0.0]
    for _ in range(15):
        town.go(WAIT, WAIT)
    assert town.state.shift_ticks[0].tolist() == [15, 15]
    assert town.state.punctual_ticks[0].tolist() == [15, 0]
    assert town.state.wages[0].tolist() == pytest.approx([1.5, 0.0])
    assert town.state.absences[0].tolist() == [0, 1]
    town.go(WAIT, WAIT)
    assert town.state.shift_ticks[0].tolist() == [15, 15]
