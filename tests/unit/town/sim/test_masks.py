"""surefoot.town.sim.masks."""

from surefoot.town.sim.layout import USE, WAIT


def test_nobody_queues_behind_somebody_to_be_avoided(small_town) -> None:
    town = small_town(small_town.TOWN.replace("avoid_threshold: 0.9", "avoid_threshold: 0.3, begin: {anna-ben: 0.9}"))
    town.go(USE, WAIT, WAIT)
    assert not town.mask()[1, USE]
    assert town.mask()[2, USE]
