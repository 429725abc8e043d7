"""Features and action masks."""

import numpy as np

from surefoot.town.scenarios.scenario import load_scenario, shipped
from surefoot.town.sim.layout import USE, WAIT
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


def test_queueing_behind_an_agent_to_be_avoided_is_masked(small_town) -> None:
    town = small_town(small_town.TOWN.replace("avoid_threshold: 0.9", "avoid_threshold: 0.3, begin: {anna-ben: 0.9}"))
    town.go(USE, WAIT, WAIT)
    assert not town.mask()[1, USE]
    assert town.mask()[2, USE]


def test_the_time_until_work_is_a_share_of_fifty_ticks() -> None:
    world = TownWorld(load_scenario("work"), 1) if "work" in shipped() else TownWorld(load_scenario(shipped()[0]), 1)
    column = world.feature_names.index("job_starts_in")
    waits = world.reset(0).obs["features"][:, column]
    starts = np.array([agent.job is not None for agent in world.scenario.agents])
    assert waits.max() <= 1.0
    assert (waits[~starts] == 0.0).all()
