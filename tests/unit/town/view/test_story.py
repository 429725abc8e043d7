"""Sentences about a town, and the page that plays a film."""

import json
import re

import numpy as np
import pytest

from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.sim.events import Happening
from surefoot.town.sim.town_loop import SimulationLoop
from surefoot.town.view.story import COLUMNS, film_page, scene, sentence, shots


def test_an_event_names_agents_and_object():
    scenario = load_scenario("queue_conflict")
    assert sentence(Happening("queue_conflict", 0, 0, 1, 0, 1.5), scenario) == "anna pushes ben at shower_1"
    assert sentence(Happening("faint", 0, 2, -1, -1, 0.0), scenario) == "cara faints from hunger"
    assert sentence(Happening("new_kind", 0, -1, -1, -1, 0.0), scenario) == "new kind"


def test_a_shot_has_every_agents_numbers_and_the_score_so_far():
    loop = SimulationLoop(load_scenario("queue_conflict"), "script", seed=2)
    layout, frames = loop.world.layout, list(loop.run(30))
    film = shots(frames, layout)
    assert [shot["tick"] for shot in film] == list(range(30))
    last = [dict(zip(COLUMNS, row, strict=True)) for row in film[-1]["people"]]
    total = sum(frame.reward for frame in frames)
    assert [p["score"] for p in last] == pytest.approx(total.tolist(), abs=0.006)
    assert film[-1]["score"] == pytest.approx(float(np.mean(total)), abs=0.001)
    assert [p["y"] * 7 + p["x"] for p in last] == frames[-1].state.cell[0].tolist()
    assert [p["hygiene"] for p in last] == [round(100 * x) for x in frames[-1].state.needs[0, :, 1].tolist()]
    pushes = [said for shot in film for said in shot["says"] if "pushes" in said[0]]
    assert pushes
    assert all(len(agents) == 2 and grave for _, agents, grave in pushes)


def test_a_page_has_both_films_and_no_end_of_script_inside():
    loop = SimulationLoop(load_scenario("queue_conflict"), "script", seed=1)
    layout = loop.world.layout
    page = film_page(layout, {"script": loop.run(3), "</script><b>": []})
    data = re.search(r'type="application/json">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    film = json.loads(data.group(1))
    assert [take["title"] for take in film["takes"]] == ["script", "</script><b>"]
    assert film["scene"] == json.loads(json.dumps(scene(layout)))
    assert (film["scene"]["width"], film["scene"]["height"], len(film["scene"]["floor"])) == (7, 7, 49)
