"""surefoot.town.sim.relationships."""

import pytest

from surefoot.town.sim.layout import WAIT


def test_rivalry_fades_to_nothing_and_is_forgotten(small_town) -> None:
    town = small_town(small_town.TOWN.replace("avoid_threshold: 0.9", "avoid_threshold: 0.9, begin: {anna-ben: 0.2}"))
    for tick_ in range(14):
        assert town.state.rivalry[0, 0].max() == pytest.approx(0.2 - 0.01 * tick_, abs=1e-9)
        town.go(WAIT, WAIT, WAIT)
    town.go(WAIT, WAIT, WAIT)
    town.go(WAIT, WAIT, WAIT)
    assert (town.state.tie_with == -1).all()
