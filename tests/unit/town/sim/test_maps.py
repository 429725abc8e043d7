"""surefoot.town.sim.maps."""

import pytest

from surefoot.town.scenarios.scenario import Scenario, load_scenario
from surefoot.town.sim.world import TownWorld


@pytest.mark.parametrize(("variant", "shape"), [("hybrid", (4, 11, 11)), ("full", (6, 11, 11)), ("compact", (6, 7, 7))])
def test_maps_show_who_and_what_is_around(variant: str, shape: tuple[int, ...]) -> None:
    values = load_scenario("queue_conflict").to_json()
    values["spawn"]["position"], values["agents"][1]["position"] = 0, [3, 4]
    world = TownWorld(Scenario.from_json(values), 1, variant=variant)
    assert world.observation["map"].shape == shape
    view = world.reset(0)
    sheet, half = view.obs["map"][0], shape[1] // 2
    assert sheet[0].sum() == sheet[0, half, half] == 1.0
    y, x = divmod(int(world.now.cell[0, 0]), world.layout.width)
    other_y, other_x = divmod(int(world.now.cell[0, 1]), world.layout.width)
    assert sheet[1, other_y - y + half, other_x - x + half] == 1.0
    assert sheet[2, 3 - y + half, 3 - x + half] == 1.0
