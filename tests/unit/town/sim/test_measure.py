"""surefoot.town.sim.measure."""

from surefoot.town.sim.layout import USE, WAIT
from surefoot.town.sim.measure import SMALLER_IS_BETTER, better


def test_who_stays_away_does_not_wait_but_is_unserved(small_town) -> None:
    town = small_town(small_town.TOWN.replace("position: [3, 2]", "position: [6, 0]"))
    town.go(USE, USE, WAIT)
    assert (town.count("waiting_ticks"), town.count("unserved_ticks")) == (1, 2)  # ben in the queue; he and cara


def test_measures_know_which_way_is_better() -> None:
    assert better("waiting", 1.0, 2.0)
    assert better("wages", 2.0, 1.0)
    assert "punctuality" not in SMALLER_IS_BETTER
