"""The rules of the town, each by hand: queues, quarrels, work, needs, ends."""

import numpy as np
import pytest

from surefoot.town.scenarios.scenario import parse_scenario
from surefoot.town.sim.layout import CHAT, EAST, LEAVE, NORTH, USE, WAIT, WEST, make_layout
from surefoot.town.sim.masks import action_mask
from surefoot.town.sim.observe import neighbours
from surefoot.town.sim.rewards import PARTS
from surefoot.town.sim.state import COUNT, begin, make_randomness
from surefoot.town.sim.tick import tick, utilities_of, welcome

TOWN = """\
name: small
ticks: 40
ticks_per_day: 40
grid: [7, 3]
decay: {hunger: 0.01, hygiene: 0.0, energy: 0.0}
objects:
  - {id: shower_1, type: shower, position: [3, 1]}
agents:
  - {id: anna, position: [2, 1], wallet: 1.0, needs: {hygiene: 0.3}}
  - {id: ben, position: [4, 1], wallet: 1.0, needs: {hygiene: 0.3}}
  - {id: cara, position: [3, 2], wallet: 1.0, needs: {hygiene: 0.3}}
affordances:
  shower: {duration: 3}
queue: {cooldown: 5, ghost_step_after: 1}
rivalry: {conflict: 0.2, decay: 0.01, avoid_threshold: 0.9}
"""


class Town:
    """One town to push about."""

    def __init__(self, text: str = TOWN) -> None:
        self.layout = make_layout(parse_scenario(text))
        self.rng = make_randomness(0)
        self.state = begin(self.layout, 1, self.rng)

    def go(self, *actions: int):
        self.state, self.outcome = tick(self.layout, self.state, np.array([actions]), self.rng)
        return self.outcome

    def count(self, name: str) -> float:
        return float(self.state.counts[0, COUNT[name]])

    def mask(self) -> np.ndarray:
        utilities, near = utilities_of(self.state, self.layout), neighbours(self.state, self.layout)
        return action_mask(self.state, self.layout, utilities, near[0], near[1])[0]


def test_a_use_takes_its_time_then_has_its_effect_its_price_and_its_cooldown() -> None:
    town = Town()
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


def test_the_first_to_come_is_the_first_to_be_served_and_the_handover_is_polite() -> None:
    town = Town()
    town.go(USE, WAIT, WAIT)
    town.go(WAIT, USE, WAIT)
    town.go(WAIT, WAIT, USE)
    assert town.state.queued[0].tolist() == [-1, 0, 0]
    town.go(WAIT, WAIT, WAIT)
    assert town.state.user[0, 0] == 1
    assert town.count("handover_events") == 1
    slot = town.state.tie_with[0, 1].tolist().index(0)
    assert town.state.trust[0, 1, slot] == pytest.approx(0.05)


def test_a_push_is_a_conflict_that_sends_the_head_back_and_makes_rivals() -> None:
    town = Town()
    town.go(USE, WAIT, WAIT)
    town.go(WAIT, USE, WAIT)
    town.go(WAIT, WAIT, USE)  # the shower is free in the next tick
    town = Town()
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


def test_who_steps_out_of_reach_or_leaves_loses_the_place() -> None:
    town = Town()
    town.go(USE, WAIT, WAIT)
    town.go(WAIT, USE, USE)
    town.go(WAIT, EAST, LEAVE)
    assert town.state.queued[0].tolist() == [-1, -1, -1]


def test_what_was_begun_is_finished_unless_the_town_says_otherwise() -> None:
    town = Town()
    town.go(USE, WAIT, WAIT)
    town.go(LEAVE, WAIT, WAIT)
    assert town.state.using[0, 0] == 0
    town = Town(TOWN.replace("queue: {", "queue: {commit: false, "))
    town.go(USE, WAIT, WAIT)
    assert town.mask()[0, LEAVE]
    town.go(LEAVE, WAIT, WAIT)
    assert town.state.using[0, 0] == -1
    assert town.state.needs[0, 0, 1] == pytest.approx(0.3)


def test_moves_are_steps_and_the_edge_of_the_grid_stops_them() -> None:
    town = Town()
    town.go(NORTH, WAIT, WAIT)
    assert divmod(int(town.state.cell[0, 0]), 7) == (0, 2)
    assert not town.mask()[0, NORTH]
    town.go(NORTH, WAIT, WAIT)
    assert divmod(int(town.state.cell[0, 0]), 7) == (0, 2)


def test_a_tick_leaves_the_state_it_came_from_as_it_was() -> None:
    town = Town()
    kept, before = town.state.copy(), town.state
    town.go(USE, USE, CHAT)
    for name, array in kept.to_arrays().items():
        assert np.array_equal(getattr(before, name), array), name


def test_an_outage_stops_the_shower_and_nobody_pays_for_it() -> None:
    town = Town(TOWN + "perturbations: {events: [{kind: outage, tick: 2, duration: 3}]}\n")
    town.go(USE, WAIT, WAIT)
    town.go(WAIT, WAIT, WAIT)
    town.go(WAIT, WAIT, WAIT)
    assert town.state.using[0, 0] == -1
    assert town.state.wallet[0, 0] == 1.0
    assert town.count("utility_outage_events") == 1
    assert not town.mask()[:, USE].any()
    for _ in range(3):
        town.go(WAIT, WAIT, WAIT)
    assert town.mask()[0, USE]


def test_rivalry_fades_to_nothing_and_is_forgotten() -> None:
    town = Town(TOWN.replace("avoid_threshold: 0.9", "avoid_threshold: 0.9, begin: {anna-ben: 0.2}"))
    for tick_ in range(14):
        assert town.state.rivalry[0, 0].max() == pytest.approx(0.2 - 0.01 * tick_, abs=1e-9)
        town.go(WAIT, WAIT, WAIT)
    town.go(WAIT, WAIT, WAIT)
    town.go(WAIT, WAIT, WAIT)
    assert (town.state.tie_with == -1).all()


def test_nobody_queues_behind_somebody_to_be_avoided() -> None:
    town = Town(TOWN.replace("avoid_threshold: 0.9", "avoid_threshold: 0.3, begin: {anna-ben: 0.9}"))
    town.go(USE, WAIT, WAIT)
    assert not town.mask()[1, USE]
    assert town.mask()[2, USE]


WORK = """\
name: work
ticks: 40
ticks_per_day: 40
grid: [12, 3]
objects:
  - {id: counter, type: checkout, position: [1, 1]}
agents:
  - {id: dawn, position: [1, 1], job: shift, wallet: 1.0}
  - {id: erin, position: [8, 1], job: shift, wallet: 1.0}
jobs:
  shift: {start: 2, end: 20, wage: 0.1, lateness_penalty: 0.2, location: counter}
employment: {grace: 1, absent_cutoff: 8, absence_slack: 3, late_tick_penalty: 0.01, absence_penalty: 0.5}
"""


def test_the_punctual_are_paid_the_late_lose_a_fee_and_are_helped() -> None:
    town = Town(WORK)
    for _ in range(9):
        town.go(WAIT, 4)
    assert town.state.shift[0].tolist() == [2, 3]
    assert town.count("late_help_events") == 1
    assert town.state.wages[0, 0] == pytest.approx(0.1 * 7)
    assert town.state.punctual_ticks[0].tolist() == [7, 0]
    assert town.state.lateness[0].tolist() == [0, 1]
    assert town.state.wallet[0, 1] == pytest.approx(1.0 - 0.2 + 4 * 0.1)


def test_who_never_comes_is_absent_and_somebody_takes_the_shift() -> None:
    town = Town(WORK)
    for _ in range(13):
        town.go(WAIT, WAIT)
    assert town.state.shift[0].tolist() == [2, 4]
    assert town.count("shift_takeover_events") == 1
    assert town.state.withheld[0, 1] >= 0.5


def test_who_misses_too_many_shifts_has_to_leave_and_somebody_new_comes() -> None:
    town = Town(WORK + "  \nlifecycle: {respawn_delay: 2}\n".replace("employment", "employment"))
    for day in range(3):
        for _ in range(40):
            if not town.state.here[0, 1]:
                break
            outcome = town.go(WAIT, WAIT)
        if day < 2:
            assert town.state.here[0, 1]
    assert outcome.terminated[0].tolist() == [False, True]
    assert outcome.reward[0, 1] <= -2.0
    assert welcome(town.layout, town.state, town.rng) is town.state
    town.go(WAIT, WAIT)
    town.go(WAIT, WAIT)
    assert welcome(town.layout, town.state, town.rng).here.all()


def test_hunger_makes_faint_and_costs_the_future() -> None:
    town = Town(TOWN.replace("hunger: 0.01", "hunger: 0.2"))
    ends = [town.go(WAIT, WAIT, WAIT).terminated.all() for _ in range(4)]
    assert ends == [False, False, False, True]
    assert town.outcome.parts[0, 0, PARTS.index("terminal")] == -1.0
    assert town.outcome.parts[0, 0, PARTS.index("survival")] == 0.0
    assert not town.state.here.any()


def test_meals_must_be_cooked_before_they_can_be_eaten() -> None:
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
    town = Town(kitchen)
    assert town.mask()[0, USE : USE + 2].tolist() == [True, False]
    for action in (USE, WAIT, WAIT):
        town.go(action)
    assert town.state.meals[0] == 2
    assert town.mask()[0, USE + 1]
    for action in (USE + 1, WAIT, WAIT):
        town.go(action)
    assert town.state.meals[0] == 1
    assert town.state.needs[0, 0, 0] > 0.6


def test_the_reward_is_the_sum_of_its_parts() -> None:
    town = Town(WORK)
    for _ in range(6):
        outcome = town.go(WAIT, 4)
        assert outcome.reward == pytest.approx(outcome.parts.sum(axis=2))


def test_the_way_to_work_that_is_left_costs_from_the_hour_one_should_set_out() -> None:
    town = Town(WORK.replace("start: 2", "start: 6") + "rewards: {commute: 0.3, commute_ahead: 5}\n")
    punctuality = [town.go(WAIT, WEST).parts[0, :, PARTS.index("punctuality")] for _ in range(3)]
    # Seven tiles away at first, one of which is within reach; the town is 12 + 3 in size.
    assert punctuality[0].tolist() == [0.0, 0.0]
    assert punctuality[1] == pytest.approx([0.0, -0.3 * 4 / 15])
    assert punctuality[2] == pytest.approx([0.0, -0.3 * 3 / 15])


def test_who_stays_away_does_not_wait_but_is_unserved() -> None:
    town = Town(TOWN.replace("position: [3, 2]", "position: [6, 0]"))
    town.go(USE, USE, WAIT)
    assert (town.count("waiting_ticks"), town.count("unserved_ticks")) == (1, 2)  # ben in the queue; he and cara
