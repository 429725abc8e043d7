"""surefoot.town.sim.queues."""

import pytest

from surefoot.town.sim.layout import EAST, LEAVE, USE, WAIT
from surefoot.town.sim.rewards import PARTS


def test_a_use_takes_its_time_then_has_its_effect_its_price_and_its_cooldown(small_town) -> None:
    town = small_town()
    town.go(USE, WAIT, WAIT)
    assert town.state.user[0, 0] == 0
    town.go(WAIT, WAIT, WAIT)
    town.go(WAIT, WAIT, WAIT)
    assert town.state.needs[0, 0, 1] == pytest.approx(0.3)
    town.go(WAIT, WAIT, WAIT)
    assert town.state.needs[0, 0, 1] == pytest.approx(0.75)
    assert town.state.wallet[0, 0] == pytest.approx(0.8)
    assert not town.mask()[0, USE]
    assert town.mask()[1, USE]
    assert town.count("shower_complete_events") == 1


def test_the_first_to_come_is_the_first_to_be_served_and_the_handover_is_polite(small_town) -> None:
    town = small_town()
    town.go(USE, WAIT, WAIT)
    town.go(WAIT, USE, WAIT)
    town.go(WAIT, WAIT, USE)
    assert town.state.queued[0].tolist() == [-1, 0, 0]
    town.go(WAIT, WAIT, WAIT)
    assert town.state.user[0, 0] == 1
    assert town.count("handover_events") == 1
    slot = town.state.tie_with[0, 1].tolist().index(0)
    assert town.state.trust[0, 1, slot] == pytest.approx(0.05)


def test_a_push_is_a_conflict_that_sends_the_head_back_and_makes_rivals(small_town) -> None:
    town = small_town()
    town.go(USE, WAIT, WAIT)
    town.go(WAIT, USE, WAIT)
    town.go(WAIT, WAIT, USE)  # the shower is free in the next tick
    town = small_town()
    town.go(USE, WAIT, WAIT)
    town.go(WAIT, USE, USE)
    first, second = (1, 2) if town.state.ticket[0, 1] < town.state.ticket[0, 2] else (2, 1)
    actions = [WAIT, WAIT, WAIT]
    actions[second] = USE
    outcome = town.go(*actions)
    # 1.5 for the ghost step and 0.25 for the second in the queue; rivalry 0.2 of it, less one tick's decay.
    assert town.count("queue_conflict_intensity_sum") == pytest.approx(1.75)
    assert town.count("ghost_step_events") == town.count("rotation_events") == 1
    rivalry = town.state.rivalry[0].max(axis=1)
    assert rivalry[[first, second]] == pytest.approx([0.34, 0.34])
    assert rivalry[0] == 0.0
    social = outcome.parts[0, :, PARTS.index("social")]
    assert social[second] == pytest.approx(-0.03 * 1.75 - 0.004)
    assert social[first] == pytest.approx(-0.015 * 1.75 - 0.004)
    town.go(WAIT, WAIT, WAIT)
    assert town.state.user[0, 0] == second


def test_who_steps_out_of_reach_or_leaves_loses_the_place(small_town) -> None:
    town = small_town()
    town.go(USE, WAIT, WAIT)
    town.go(WAIT, USE, USE)
    town.go(WAIT, EAST, LEAVE)
    assert town.state.queued[0].tolist() == [-1, -1, -1]


def test_what_was_begun_is_finished_unless_the_town_says_otherwise(small_town) -> None:
    town = small_town()
    town.go(USE, WAIT, WAIT)
    town.go(LEAVE, WAIT, WAIT)
    assert town.state.using[0, 0] == 0
    town = small_town(small_town.TOWN.replace("queue: {", "queue: {commit: false, "))
    town.go(USE, WAIT, WAIT)
    assert town.mask()[0, LEAVE]
    town.go(LEAVE, WAIT, WAIT)
    assert town.state.using[0, 0] == -1
    assert town.state.needs[0, 0, 1] == pytest.approx(0.3)


def test_meals_must_be_cooked_before_they_can_be_eaten(small_town) -> None:
    kitchen = """\
name: kitchen
ticks: 40
grid: [5, 3]
objects:
  - {id: stove_1, type: stove, position: [1, 1]}
  - {id: fridge_1, type: fridge, position: [2, 1]}
agents:
  - {id: alice, position: [1, 1], wallet: 1.0, needs: {hunger: 0.2}}
affordances:
  stove: {duration: 2}
  fridge: {duration: 2}
"""
    town = small_town(kitchen)
    assert town.mask()[0, USE : USE + 2].tolist() == [True, False]
    for action in (USE, WAIT, WAIT):
        town.go(action)
    assert town.state.meals[0] == 2
    assert town.mask()[0, USE + 1]
    for action in (USE + 1, WAIT, WAIT):
        town.go(action)
    assert town.state.meals[0] == 1
    assert town.state.needs[0, 0, 0] > 0.6
