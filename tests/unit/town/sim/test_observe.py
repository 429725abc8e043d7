"""surefoot.town.sim.observe."""

import numpy as np

from surefoot.town.scenarios.scenario import load_scenario, shipped
from surefoot.town.sim.observe import CONFLICT_FEATURES
from surefoot.town.sim.world import TownWorld


def test_agents_of_all_towns_are_streams_and_conflict_features_are_always_there() -> None:
    for name in shipped():
        world = TownWorld(load_scenario(name), 2)
        view = world.reset(3)
        assert view.obs["features"].shape == (world.num_envs, len(world.feature_names))
        assert view.obs["features"].dtype == np.float32
        assert set(CONFLICT_FEATURES) <= set(world.feature_names)
        assert len(set(world.feature_names)) == len(world.feature_names)
