"""surefoot.town.sim.world."""

import json

import numpy as np
import pytest

from surefoot.envs.gym.snapshot import rng_to_json
from surefoot.errors import CheckpointIncompatible, EnvError
from surefoot.town.scenarios.scenario import Scenario, load_scenario
from surefoot.town.sim.script import random_actions
from surefoot.town.sim.town_loop import decider, play_towns
from surefoot.town.sim.world import TownWorld


def _means(name: str, behaviour: str, episodes: int = 16) -> dict[str, float]:
    world = TownWorld(load_scenario(name), episodes)
    found = play_towns(world, decider(world, behaviour, 1), episodes, seed=5)
    return {key: float(values.mean()) for key, values in found.items()}


def test_an_action_that_is_none_is_refused() -> None:
    world = TownWorld(load_scenario("observation_baseline"), 2)
    with pytest.raises(EnvError, match="actions 0 to 6"):
        world.step(np.array([0, 7]))
    with pytest.raises(EnvError, match=r"\[2\] actions"):
        world.step(np.zeros(3, np.int64))


def test_a_town_ends_on_time_is_cut_short_and_begins_anew() -> None:
    world = TownWorld(load_scenario("observation_baseline"), 2)
    for t in range(20):
        step = world.step(np.zeros(2, np.int64))
        assert step.truncated.all() == (t == 19)
    assert step.final_obs is not None
    progress = world.feature_names.index("episode_progress")
    assert step.final_obs["features"][:, progress] == pytest.approx(1.0)
    assert step.view.obs["features"][:, progress] == pytest.approx(0.0)
    assert len(world.finished) == 2


def test_a_snapshot_goes_on_to_the_last_digit() -> None:
    scenario, rng = load_scenario("market_town"), np.random.default_rng(0)
    world = TownWorld(scenario, 2)
    for _ in range(60):
        world.step(random_actions(world.mask, rng).reshape(-1))
    kept = world.state()
    actions = [random_actions(np.ones_like(world.mask), rng).reshape(-1) for _ in range(40)]
    straight = [world.step(a) for a in actions]
    other = TownWorld(scenario, 2)
    kept["world"], kept["events"] = json.loads(json.dumps([kept["world"], kept["events"]]))
    other.set_state(kept)
    for step, action in zip(straight, actions, strict=True):
        again = other.step(action)
        assert np.array_equal(step.reward, again.reward)
        assert np.array_equal(step.view.obs["features"], again.view.obs["features"])
    assert rng_to_json(world.random.world) == rng_to_json(other.random.world)
    assert world.take_counts() == other.take_counts()


def test_a_snapshot_of_another_town_is_refused() -> None:
    kept = TownWorld(load_scenario("observation_baseline"), 2).state()
    with pytest.raises(CheckpointIncompatible, match="observation_baseline"):
        TownWorld(load_scenario("rivalry_decay"), 2).set_state(kept)


def test_who_is_gone_has_rows_that_do_not_count_and_comes_back_as_somebody_new() -> None:
    values = load_scenario("observation_baseline").to_json()
    values["decay"]["hunger"], values["lifecycle"]["respawn_delay"], values["spawn"]["needs"] = 0.3, 2, 0.0
    world = TownWorld(Scenario.from_json(values), 1)
    rows = [world.step(np.zeros(1, np.int64)) for _ in range(8)]
    assert [bool(r.valid[0]) for r in rows] == [True, True, True, False, False, True, True, True]
    assert [bool(r.terminated[0]) for r in rows] == [False, False, True, False, False, False, False, True]
    assert rows[2].final_obs is not None
    assert (rows[2].final_obs["features"] != 0).any()
    assert (rows[2].view.obs["features"] == 0).all()


@pytest.mark.parametrize("name", ["kitchen_breakfast", "employment_punctuality", "queue_conflict"])
def test_a_better_behaviour_earns_more(name: str) -> None:
    script, idle = _means(name, "script"), _means(name, "idle")
    assert script["return"] > idle["return"] + 0.1


def test_keeping_apart_earns_more_than_quarrelling_over_the_stove() -> None:
    assert _means("rivalry_decay", "random")["return"] > _means("rivalry_decay", "script")["return"] + 0.5
    assert _means("rivalry_decay", "random")["rivalry_integral"] < _means("rivalry_decay", "script")["rivalry_integral"]


def test_in_the_control_nobody_does_better_than_anybody_else() -> None:
    assert _means("observation_baseline", "random")["return"] == pytest.approx(
        _means("observation_baseline", "idle")["return"]
    )


@pytest.mark.parametrize(
    "name", ["kitchen_breakfast", "queue_conflict", "rivalry_decay", "employment_punctuality", "observation_baseline"]
)
def test_rewards_vary_and_are_not_clipped(name: str) -> None:
    world = TownWorld(load_scenario(name), 8)
    decide, view, rewards = decider(world, "script", 0), world.reset(1), []
    for _ in range(world.scenario.ticks):
        step = world.step(decide(world, view))
        view = step.view
        rewards.append(step.reward)
    whole = np.stack(rewards)
    assert whole.std(axis=0).min() > 1e-4
    assert np.abs(whole).max() < world.scenario.rewards.clip


def test_a_central_critic_sees_what_everybody_sees() -> None:
    world = TownWorld(load_scenario("queue_conflict"), 2, central=True)
    view = world.reset(0)
    whole = view.obs["features"].reshape(2, 3, -1)
    assert np.array_equal(view.obs["state"][4], whole[1].reshape(-1))
