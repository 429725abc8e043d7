"""Sentences and JSON values about a town."""

import json

from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.sim.events import Happening
from surefoot.town.sim.town_loop import SimulationLoop
from surefoot.town.view.story import frame_json, scene, sentence


def test_an_event_names_agents_and_object():
    scenario = load_scenario("queue_conflict")
    assert sentence(Happening("queue_conflict", 0, 0, 1, 0, 1.5), scenario) == "anna pushes ben at shower_1"
    assert sentence(Happening("faint", 0, 2, -1, -1, 0.0), scenario) == "cara faints from hunger"
    assert sentence(Happening("new_kind", 0, -1, -1, -1, 0.0), scenario) == "new kind"


def test_a_page_gets_json_with_positions_on_the_grid():
    loop = SimulationLoop(load_scenario("queue_conflict"), "idle")
    fixed, tick = scene(loop.world.layout), frame_json(loop.step(), loop.world.layout)
    assert json.loads(json.dumps([fixed, tick])) == [fixed, tick]
    assert (fixed["width"], fixed["height"], len(fixed["floor"])) == (7, 7, 49)
    assert [len(person["at"]) for person in tick["people"]] == [2, 2, 2]
    assert tick["tick"] == 0
