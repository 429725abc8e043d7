"""surefoot.town.sim.tick."""

import numpy as np

from surefoot.town.sim.layout import CHAT, NORTH, USE, WAIT
from surefoot.town.sim.rewards import PARTS


def test_moves_are_steps_and_the_edge_of_the_grid_stops_them(small_town) -> None:
    town = small_town()
    town.go(NORTH, WAIT, WAIT)
    assert divmod(int(town.state.cell[0, 0]), 7) == (0, 2)
    assert not town.mask()[0, NORTH]
    town.go(NORTH, WAIT, WAIT)
    assert divmod(int(town.state.cell[0, 0]), 7) == (0, 2)


def test_a_tick_does_not_change_the_state_before_it(small_town) -> None:
    town = small_town()
    before, arrays = town.state, town.state.to_arrays()
    town.go(USE, USE, CHAT)
    for name, array in before.to_arrays().items():
        assert np.array_equal(arrays[name], array), name


def test_an_outage_stops_the_shower_and_nobody_pays_for_it(small_town) -> None:
    town = small_town(small_town.TOWN + "perturbations: {events: [{kind: outage, tick: 2, duration: 3}]}\n")
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


def test_hunger_makes_faint_and_costs_the_future(small_town) -> None:
    town = small_town(small_town.TOWN.replace("hunger: 0.01", "hunger: 0.2"))
    ends = [town.go(WAIT, WAIT, WAIT).terminated.all() for _ in range(4)]
    assert ends == [False, False, False, True]
    assert town.outcome.parts[0, 0, PARTS.index("terminal")] == -1.0
    assert town.outcome.parts[0, 0, PARTS.index("survival")] == 0.0
    assert not town.state.present.any()
