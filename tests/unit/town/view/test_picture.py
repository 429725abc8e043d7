"""Pictures of a town: size, walls and conflicts."""

import numpy as np

from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.sim.events import Happenings
from surefoot.town.sim.world import TownWorld
from surefoot.town.view.picture import RED, TILE, WALL, picture


def test_a_tile_per_cell_and_walls_in_their_colour():
    world = TownWorld(load_scenario("market_town"), 1)
    image = picture(world.layout, world.now)
    assert image.shape == (20 * TILE, 30 * TILE, 3)
    assert image.dtype == np.uint8
    assert image[TILE // 2, TILE // 2].tolist() == list(WALL)


def test_a_conflict_is_framed_in_red():
    world = TownWorld(load_scenario("queue_conflict"), 1)
    happened = Happenings()
    happened.add("queue_conflict", np.array([0]), 0, 1, 0, 1.5)
    calm, conflict = picture(world.layout, world.now), picture(world.layout, world.now, 0, happened)
    red = lambda image: int((image == np.array(RED)).all(axis=2).sum())  # noqa: E731
    assert red(conflict) > red(calm)
