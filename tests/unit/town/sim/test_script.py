"""surefoot.town.sim.script."""

import numpy as np

from surefoot.town.scenarios.scenario import Scenario, load_scenario
from surefoot.town.sim.layout import make_layout
from surefoot.town.sim.script import Script, random_actions
from surefoot.town.sim.world import TownWorld


def test_random_actions_are_always_possible_ones() -> None:
    rng = np.random.default_rng(0)
    mask = rng.random((500, 9)) < 0.3
    mask[:, 0] = True
    chosen = random_actions(mask, rng)
    assert mask[np.arange(500), chosen].all()
    assert len(np.unique(random_actions(np.ones((500, 9), bool), rng))) == 9


def test_script_and_schedule_only_do_what_is_possible() -> None:
    values = load_scenario("queue_conflict").to_json()
    values["agents"][0]["schedule"] = ["to:shower_1", "use_shower", "wait"]
    scenario = Scenario.from_json(values)
    world, script = TownWorld(scenario, 4), Script(make_layout(scenario))
    for _ in range(80):
        chosen = script(world.now, world.mask)
        assert np.take_along_axis(world.mask, chosen[:, :, None], axis=2).all()
        world.step(chosen.reshape(-1))
