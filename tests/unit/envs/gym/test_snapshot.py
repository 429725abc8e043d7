"""Another env goes on from an exported state to the last digit: observations, rewards, ends and the resets after."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces, wrappers

from surefoot.envs.gym.snapshot import export_state, import_state, rng_from_json, rng_to_json, why_inexact
from surefoot.errors import CheckpointIncompatible

Build = Callable[[], gym.Env[Any, Any]]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes MUJOCO_LOG.TXT wherever it is run."""
    monkeypatch.chdir(tmp_path)


def run(env: gym.Env[Any, Any], actions: list[Any]) -> list[Any]:
    """Everything the env answers, beginning the next episode wherever one ends."""
    out: list[Any] = []
    for action in actions:
        obs, reward, terminated, truncated, _ = env.step(action)
        out.append((obs, reward, terminated, truncated))
        if terminated or truncated:
            out.append(env.reset()[0])
    return out


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and np.array_equal(a, b)


def through_json(value: Any) -> Any:
    """What a checkpoint does to a state: arrays are kept apart, all else must be plain JSON."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {json.loads(json.dumps(key)): through_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [through_json(part) for part in value]
    return json.loads(json.dumps(value))


def assert_goes_on(build: Build, before: int, after: int) -> None:
    env = build()
    assert why_inexact(env) is None
    env.action_space.seed(5)
    actions = [env.action_space.sample() for _ in range(before + after)]
    env.reset(seed=9)
    run(env, actions[:before])
    state = through_json(export_state(env))
    expected = run(env, actions[before:])
    assert sum(1 for answer in expected if not isinstance(answer, tuple)) > 0, "no episode ended; run longer"
    other = build()
    import_state(other, state)
    assert same(run(other, actions[before:]), expected)


CLASSIC = ["CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"]
TEXT = ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"]
MUJOCO = [
    *("Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5", "HumanoidStandup-v5", "InvertedDoublePendulum-v5"),
    *("InvertedPendulum-v5", "Pusher-v5", "Reacher-v5", "Swimmer-v5", "Walker2d-v5"),
]


@pytest.mark.parametrize("name", [*CLASSIC, *TEXT])
@pytest.mark.parametrize("before", [0, 17])
def test_classic_and_text_envs_go_on(name: str, before: int) -> None:
    assert_goes_on(lambda: gym.make(name, max_episode_steps=12), before, 40)


@pytest.mark.parametrize("name", MUJOCO)
def test_mujoco_envs_go_on_also_in_what_they_computed_before_the_last_motion(name: str) -> None:
    assert_goes_on(lambda: gym.make(name, max_episode_steps=12), 17, 30)


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Hopper-v5"])
def test_mujoco_envs_go_on_right_after_an_episode_ended(name: str) -> None:
    assert_goes_on(lambda: gym.make(name, max_episode_steps=12), 12, 14)


WRAPPED: dict[str, Build] = {
    "statistics": lambda: wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1")),
    "normalised": lambda: wrappers.NormalizeReward(wrappers.NormalizeObservation(gym.make("CartPole-v1"))),
    "stacked": lambda: wrappers.FrameStackObservation(gym.make("CartPole-v1"), 3),
    "stacked, zeros": lambda: wrappers.FrameStackObservation(gym.make("CartPole-v1"), 3, padding_type="zero"),
    "delayed": lambda: wrappers.DelayObservation(gym.make("CartPole-v1"), 2),
    "time aware": lambda: wrappers.TimeAwareObservation(gym.make("CartPole-v1"), flatten=False),
    "sticky": lambda: wrappers.StickyAction(gym.make("CartPole-v1"), 0.5, (2, 4)),
    "flat": lambda: wrappers.FlattenObservation(gym.make("FrozenLake-v1")),
    "rescaled": lambda: wrappers.RescaleAction(
        gym.make("Pendulum-v1", max_episode_steps=9), np.float32(-1), np.float32(1)
    ),
    "no checker": lambda: gym.make("CartPole-v1", disable_env_checker=True),
    "with arguments": lambda: gym.make("CartPole-v1", sutton_barto_reward=True),
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_wrappers_go_on_with_what_they_remember(kind: str) -> None:
    assert_goes_on(WRAPPED[kind], 33, 60)


def test_statistics_go_on_with_the_return_so_far() -> None:
    env, other = WRAPPED["statistics"](), WRAPPED["statistics"]()
    env.reset(seed=0)
    for _ in range(3):
        env.step(0)
    import_state(other, export_state(env))
    info: dict[str, Any] = {}
    while "episode" not in info:
        *_, info = other.step(0)
    fresh = gym.make("CartPole-v1")
    fresh.reset(seed=0)
    length = 1
    while not fresh.step(0)[2]:
        length += 1
    assert info["episode"]["l"] == length


class Own(gym.Env[Any, Any]):
    """Says itself where it is, by reference; its noise comes from Gymnasium's generator."""

    observation_space = spaces.Box(-99, 99, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.memory = {"x": np.zeros(1)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.memory["x"][:] = self.np_random.normal()
        return self.memory["x"].copy(), {}

    def step(self, action: Any) -> Any:
        self.memory["x"] += self.np_random.normal()
        return self.memory["x"].copy(), 0.0, bool(self.memory["x"][0] > 1), False, {}

    def get_state(self) -> Any:
        return self.memory

    def set_state(self, state: Any) -> None:
        self.memory = state


def test_an_env_that_says_where_it_is_need_not_know_about_its_generator() -> None:
    assert_goes_on(lambda: wrappers.TimeLimit(Own(), 9), 17, 40)


def test_an_env_that_says_nothing_is_named_with_what_would_help() -> None:
    class Silent(gym.Env[Any, Any]):
        pass

    reason = why_inexact(Silent())
    assert reason is not None
    assert "env Silent" in reason
    assert "get_state() and set_state(state)" in reason


def test_a_subclass_of_a_known_env_is_not_taken_for_it() -> None:
    from gymnasium.envs.classic_control.cartpole import CartPoleEnv

    class Windy(CartPoleEnv):
        pass

    assert "Windy" in (why_inexact(Windy()) or "")


def test_mujocos_set_state_of_two_arguments_is_not_taken_for_ours() -> None:
    env: Any = gym.make("HalfCheetah-v5")
    type(env.unwrapped).get_state = lambda self: {}
    try:
        assert "mujoco" in export_state(env)["layers"][-1]
    finally:
        del type(env.unwrapped).get_state


def test_a_wrapper_with_a_memory_of_its_own_is_named() -> None:
    class Remembers(gym.Wrapper[Any, Any, Any, Any]):
        def __init__(self, env: gym.Env[Any, Any]) -> None:
            super().__init__(env)
            self.best = 0.0

    reason = why_inexact(Remembers(gym.make("CartPole-v1")))
    assert reason is not None
    assert "wrapper Remembers" in reason


def test_a_wrapper_without_attributes_has_no_memory() -> None:
    class Doubles(gym.RewardWrapper[Any, Any]):
        def reward(self, reward: Any) -> Any:
            return 2.0 * reward

    assert why_inexact(Doubles(gym.make("CartPole-v1"))) is None


def test_a_wrapper_may_say_what_it_remembers() -> None:
    class Counts(gym.Wrapper[Any, Any, Any, Any]):
        count = 0

        def step(self, action: Any) -> Any:
            self.count += 1
            obs, _, *rest = self.env.step(action)
            return obs, float(self.count), *rest

        def get_state(self) -> Any:
            return {"count": self.count}

        def set_state(self, state: Any) -> None:
            self.count = state["count"]

    assert_goes_on(lambda: Counts(gym.make("CartPole-v1")), 13, 60)


def test_a_state_of_another_chain_is_refused() -> None:
    env = gym.make("CartPole-v1")
    env.reset(seed=0)
    with pytest.raises(
        CheckpointIncompatible, match=r"TimeLimit < OrderEnforcing.* but this env is TimeLimit < CartPoleEnv"
    ):
        import_state(wrappers.TimeLimit(gym.make("CartPole-v1").unwrapped, 500), export_state(env))


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox])
def test_a_generator_goes_on_through_json_that_knows_only_doubles(bits: Any) -> None:
    rng = np.random.Generator(bits(3))
    rng.integers(0, 2**31, 7, dtype=np.int32)
    text = json.dumps(rng_to_json(rng))
    kept = json.loads(text, parse_int=lambda digits: int(float(digits)))
    assert rng_from_json(kept).random(5).tolist() == rng.random(5).tolist()


def test_an_unknown_generator_is_refused() -> None:
    with pytest.raises(CheckpointIncompatible, match="'Dice'"):
        rng_from_json({"bit_generator": "Dice"})


def test_a_state_is_not_changed_by_what_the_env_does_next() -> None:
    env, other = Own(), Own()
    env.reset(seed=0)
    here = env.memory["x"].copy()
    state = export_state(env)
    env.step(0)
    import_state(other, state)
    assert np.array_equal(other.memory["x"], here)
    other.step(0)
    assert np.array_equal(state["layers"][0]["own"]["x"], here)


def test_numbers_keep_their_type() -> None:
    env, other = (gym.make("MountainCar-v0") for _ in range(2))
    env.reset(seed=0)
    env.step(2)
    import_state(other, through_json(export_state(env)))
    kept, restored = (e.get_wrapper_attr("state") for e in (env, other))
    assert [type(x) for x in restored] == [type(x) for x in kept]
    assert type(restored) is type(kept) is tuple
