"""The town as PettingZoo's tools see it."""

import dataclasses

import numpy as np
import pytest

from surefoot.town.scenarios.scenario import Perturbation, PerturbationRules, Spawning, load_scenario
from surefoot.town.sim.layout import EAST, NORTH, WEST
from surefoot.town.sim.parallel_env import TownEnv, parallel_env
from surefoot.town.sim.rewards import PARTS

pettingzoo = pytest.importorskip("pettingzoo")


@pytest.mark.parametrize("observations", ["features", "hybrid"])
@pytest.mark.filterwarnings("ignore")
def test_it_passes_pettingzoos_own_tests(observations: str, capsys) -> None:
    from pettingzoo.test import parallel_api_test, parallel_seed_test

    parallel_api_test(parallel_env("queue_conflict", observations=observations), num_cycles=30)
    parallel_seed_test(lambda: parallel_env("kitchen_breakfast", observations=observations), num_cycles=10)
    assert "Passed" in capsys.readouterr().out


def test_masks_and_parts_of_rewards_are_in_the_infos() -> None:
    env = TownEnv("queue_conflict")
    _, infos = env.reset(seed=1)
    assert infos["anna"]["action_mask"].shape == (8,)
    _, reward, _, _, infos = env.step(dict.fromkeys(env.agents, 0))
    assert set(infos["ben"]["reward_parts"]) == set(PARTS)
    assert sum(infos["ben"]["reward_parts"].values()) == pytest.approx(reward["ben"])


def test_its_state_goes_on_exactly() -> None:
    env, other = TownEnv("queue_conflict"), TownEnv("queue_conflict")
    env.reset(seed=4)
    for _ in range(5):
        env.step(dict.fromkeys(env.agents, 7))
    other.set_state(env.get_state())
    one, two = env.step(dict.fromkeys(env.agents, 6)), other.step(dict.fromkeys(other.agents, 6))
    assert all(np.array_equal(one[0][agent], two[0][agent]) for agent in env.agents)
    assert env.render().shape == (7 * 24, 7 * 24, 3)


def test_events_and_measures_are_in_the_infos() -> None:
    env = TownEnv(dataclasses.replace(load_scenario("queue_conflict"), spawn=Spawning()))
    env.reset(seed=3)
    env.step({"anna": EAST, "ben": WEST, "cara": NORTH})
    shower, told = env.scenario.actions.index("use_shower"), []
    infos: dict = {}
    while env.agents:
        _, _, _, _, infos = env.step(dict.fromkeys(env.agents, shower))
        told += [(agent, event) for agent, info in infos.items() for event in info["events"]]
    # All three stand next to the shower and ask for it, so every event is about it.
    assert {event["kind"] for _, event in told} <= {"use_done", "queue_conflict", "handover"}
    assert all(agent in (event["actor"], event["other"]) for agent, event in told)
    assert all(event["object"] == "shower_1" for _, event in told)
    measures = infos["anna"]["measures"]
    uses = sum(agent == event["actor"] for agent, event in told if event["kind"] == "use_done")
    assert uses > 0
    assert measures["uses"] == pytest.approx(uses / 3)
    assert env.measures() == measures


def test_an_event_of_the_whole_town_is_told_to_everybody() -> None:
    events = PerturbationRules(events=[Perturbation(kind="price_spike", tick=1)])
    env = TownEnv(dataclasses.replace(load_scenario("queue_conflict"), perturbations=events))
    env.reset(seed=1)
    env.step(dict.fromkeys(env.agents, 0))
    _, _, _, _, infos = env.step(dict.fromkeys(env.agents, 0))
    nobody = {"kind": "price_spike", "actor": None, "other": None, "object": None, "value": 0.0}
    assert [info["events"] for info in infos.values()] == [[nobody]] * 3
