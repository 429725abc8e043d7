"""Towns as a world of streams: shapes, masks, ends, exact snapshots, rewards that mean something."""

import json

import numpy as np
import pytest

from surefoot.envs.gym.snapshot import rng_to_json
from surefoot.errors import CheckpointIncompatible, EnvError
from surefoot.town.scenarios.scenario import Scenario, load_scenario, shipped
from surefoot.town.sim.layout import make_layout
from surefoot.town.sim.measure import SMALLER_IS_BETTER, better
from surefoot.town.sim.observe import CONFLICT_FEATURES
from surefoot.town.sim.script import Script, random_actions
from surefoot.town.sim.town_loop import SimulationLoop, decider, play_towns, record_behaviour
from surefoot.town.sim.world import TownWorld


def test_agents_of_all_towns_are_streams_and_conflict_features_are_always_there() -> None:
    for name in shipped():
        world = TownWorld(load_scenario(name), 2)
        view = world.reset(3)
        assert view.obs["features"].shape == (world.num_envs, len(world.feature_names))
        assert view.obs["features"].dtype == np.float32
        assert set(CONFLICT_FEATURES) <= set(world.feature_names)
        assert len(set(world.feature_names)) == len(world.feature_names)


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


def test_random_actions_are_always_possible_ones() -> None:
    rng = np.random.default_rng(0)
    mask = rng.random((500, 9)) < 0.3
    mask[:, 0] = True
    chosen = random_actions(mask, rng)
    assert mask[np.arange(500), chosen].all()
    assert len(np.unique(random_actions(np.ones((500, 9), bool), rng))) == 9


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


def _means(name: str, behaviour: str, episodes: int = 16) -> dict[str, float]:
    world = TownWorld(load_scenario(name), episodes)
    found = play_towns(world, decider(world, behaviour, 1), episodes, seed=5)
    return {key: float(values.mean()) for key, values in found.items()}


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


def test_script_and_schedule_only_do_what_is_possible() -> None:
    values = load_scenario("queue_conflict").to_json()
    values["agents"][0]["schedule"] = ["to:shower_1", "use_shower", "wait"]
    scenario = Scenario.from_json(values)
    world, script = TownWorld(scenario, 4), Script(make_layout(scenario))
    for _ in range(80):
        chosen = script(world.now, world.mask)
        assert np.take_along_axis(world.mask, chosen[:, :, None], axis=2).all()
        world.step(chosen.reshape(-1))


def test_a_central_critic_sees_what_everybody_sees() -> None:
    world = TownWorld(load_scenario("queue_conflict"), 2, central=True)
    view = world.reset(0)
    whole = view.obs["features"].reshape(2, 3, -1)
    assert np.array_equal(view.obs["state"][4], whole[1].reshape(-1))


def test_measures_know_which_way_is_better() -> None:
    assert better("waiting", 1.0, 2.0)
    assert better("wages", 2.0, 1.0)
    assert "punctuality" not in SMALLER_IS_BETTER


def test_a_loop_runs_one_town_to_the_end_of_its_day() -> None:
    loop = SimulationLoop(load_scenario("queue_conflict"), "script")
    frames = list(loop)
    assert [frame.tick for frame in frames] == list(range(80))
    assert {h.kind for frame in frames for h in frame.happened} >= {"use_done", "queue_conflict"}


def test_recorded_episodes_of_the_script_are_whole() -> None:
    recording = record_behaviour(load_scenario("queue_conflict"), "script", 3, seed=0)
    assert len(recording.episodes) == 9
    assert {episode.steps for episode in recording.episodes} == {80}
    assert all(episode.truncated for episode in recording.episodes)
