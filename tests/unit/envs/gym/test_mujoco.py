"""MuJoCo's tasks in C: Gymnasium's digits, step for step; its states, its time limit, its version; any number of threads."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from surefoot import native
from surefoot.envs.api import World
from surefoot.envs.gym import mujoco
from surefoot.envs.gym.mujoco import IN_LIBMUJOCO, MujocoWorld
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.make import backend_of, make_world, placement_of
from surefoot.errors import ConfigError, EnvError
from surefoot.learn.config import PPOConfig
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig
from surefoot.train.evaluate import play
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

pytest.importorskip("mujoco", reason="mujoco is not installed")
pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)


def actions_for(world: World, steps: int, seed: int = 0) -> np.ndarray:
    """Return [steps, N, K] actions: strong ones, some beyond the bounds, and weak ones in turn, so that bodies fall and lie."""
    rng = np.random.default_rng(seed)
    high: np.ndarray = world.action.bounds()[1]  # type: ignore[union-attr]
    strength = np.where(np.arange(steps) % 100 < 60, 1.2, 0.2)[:, None, None]
    return (rng.normal(size=(steps, world.num_envs, len(high))) * high * strength).astype(np.float32)


def gymnasium_steps(name: str, seed: int, actions: np.ndarray) -> list[tuple[Any, ...]]:
    """Return what `gymnasium.make(name)` does: (observations, rewards, terminated, truncated, final observations) per step."""
    envs = [gym.make(name) for _ in range(actions.shape[1])]
    for i, env in enumerate(envs):
        env.reset(seed=seed + i)
    steps = []
    for row in actions:
        results = [env.step(action) for env, action in zip(envs, row, strict=True)]
        final = np.array([result[0] for result in results])
        obs = final.copy()
        for i, (_, _, over, cut, _) in enumerate(results):
            if over or cut:
                obs[i] = envs[i].reset()[0]
        over, cut = (np.array([result[k] for result in results]) for k in (2, 3))
        reward = np.array([float(result[1]) for result in results])
        steps.append((obs.astype(np.float32), reward, over, cut & ~over, final.astype(np.float32)))
    return steps


@pytest.mark.parametrize("name", IN_LIBMUJOCO)
def test_every_digit_is_gymnasiums(name):
    world = make_world(name, 2)
    assert isinstance(world, MujocoWorld)
    assert (backend_of(world), placement_of(world)) == ("surefoot", None)
    actions = actions_for(world, 300)
    world.reset(7)
    ended = 0
    for action, (obs, reward, terminated, truncated, final) in zip(
        actions, gymnasium_steps(name, 7, actions), strict=True
    ):
        step = world.step(action)
        assert step.view.obs["obs"].tobytes() == obs.tobytes()
        assert step.reward.tobytes() == reward.tobytes()
        assert step.terminated.tolist() == terminated.tolist()
        assert step.truncated.tolist() == truncated.tolist()
        if (terminated | truncated).any():
            assert step.final_obs is not None
            assert step.final_obs["obs"].tobytes() == final.tobytes()
            ended += 1
        else:
            assert step.final_obs is None
    assert ended or name in ("HalfCheetah-v5", "Swimmer-v5", "HumanoidStandup-v5")


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Swimmer-v5"])
def test_a_time_limit_cuts_an_episode_off(name):
    world = make_world(name, 1)
    still = np.zeros((1, world.action.shape[0]), np.float32)  # type: ignore[union-attr]
    steps = [world.step(still) for _ in range(1000)]
    assert [bool(step.truncated[0]) for step in steps] == [False] * 999 + [True]
    assert not any(step.terminated.any() for step in steps)


@pytest.mark.parametrize("name", ["Ant-v5", "Hopper-v5", "Reacher-v5"])
@pytest.mark.parametrize(
    ("before", "after"), [("surefoot", "gymnasium"), ("gymnasium", "surefoot"), ("surefoot", "surefoot")]
)
def test_a_state_continues_in_either_world(name, before, after):
    first, second = make_world(name, 2, backend=before), make_world(name, 2, backend=after)
    actions = actions_for(first, 130)
    first.reset(3)
    for action in actions[:60]:
        first.step(action)
    state = copy.deepcopy(first.state())
    view = second.set_state(state)
    assert view.obs["obs"].tobytes() == state["view"]["obs"]["obs"].tobytes()
    for action in actions[60:]:
        a, b = first.step(action), second.step(action)
        assert a.view.obs["obs"].tobytes() == b.view.obs["obs"].tobytes()
        assert a.reward.tobytes() == b.reward.tobytes()
        assert (a.terminated | a.truncated).tolist() == (b.terminated | b.truncated).tolist()


def test_saving_a_state_disturbs_nothing():
    saved, plain = make_world("Ant-v5", 1), make_world("Ant-v5", 1)
    for action in actions_for(saved, 30):
        saved.state()
        assert saved.step(action).reward.tobytes() == plain.step(action).reward.tobytes()


def test_before_a_reset_it_is_as_after_reset_0():
    one, other = make_world("Hopper-v5", 2), make_world("Hopper-v5", 2)
    other.reset(0)
    action = actions_for(one, 1)[0]
    assert one.step(action).view.obs["obs"].tobytes() == other.step(action).view.obs["obs"].tobytes()


@pytest.mark.parametrize(("name", "index"), [("Hopper-v5", 1), ("Walker2d-v5", 1), ("Ant-v5", 2), ("Humanoid-v5", 2)])
def test_a_body_that_is_too_low_or_too_high_ends_the_episode_as_in_gymnasium(name, index):
    world = make_world(name)
    assert isinstance(world, MujocoWorld)
    base, still = world._bases[0], np.zeros((1, world.action.shape[0]), np.float32)  # type: ignore[union-attr]
    limits = [limit for limit in base._healthy_z_range if np.isfinite(limit)]
    ends = []
    for height in [limit + above for limit in limits for above in (-0.3, -0.003, 0.003, 0.3)]:
        results = []
        for of in (world, make_world(name, backend="gymnasium")):
            of.reset(1)
            simulation = (of._bases[0] if of is world else of.envs[0].unwrapped).data  # type: ignore[union-attr]
            simulation.qpos[index] = height
            step = of.step(still)
            results.append((bool(step.terminated[0]), float(step.reward[0])))
        assert results[0] == results[1]
        ends.append(results[0][0])
    assert len(set(ends)) == 2


@pytest.mark.parametrize("name", IN_LIBMUJOCO)
def test_single_streams_are_reset_with_their_own_generators(name):
    world, theirs = make_world(name, 3), make_world(name, 3, backend="gymnasium", workers=0)
    which = np.array([False, True, False])
    ours, expected = (w.reset(4) and w.reset_streams(which) for w in (world, theirs))
    assert ours is not None
    assert expected is not None
    assert ours.obs["obs"].tobytes() == expected.obs["obs"].tobytes()


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_change_no_digit(threads):
    alone, together = make_world("Hopper-v5", 5), make_world("Hopper-v5", 5, workers=threads)
    assert isinstance(together, MujocoWorld)
    assert together.threads == threads
    alone.reset(1), together.reset(1)
    for action in actions_for(alone, 150):
        a, b = alone.step(action), together.step(action)
        assert a.view.obs["obs"].tobytes() == b.view.obs["obs"].tobytes()
        assert a.reward.tobytes() == b.reward.tobytes()
        assert a.terminated.tolist() == b.terminated.tolist()


@pytest.mark.parametrize(("idle", "expected"), [(1, 0), (4, 3)])
def test_auto_starts_threads_where_steps_are_slow_and_cores_are_idle(monkeypatch, idle, expected):
    monkeypatch.setattr(mujoco, "cores", lambda: 4)
    monkeypatch.setattr(mujoco, "free_cores", lambda: idle)
    times = iter(0.01 * k for k in range(100))  # ten milliseconds per step
    monkeypatch.setattr(mujoco.time, "perf_counter", lambda: next(times))
    world = make_world("Swimmer-v5", 8, workers="auto")
    monkeypatch.undo()
    assert isinstance(world, MujocoWorld)
    assert world.threads == expected
    first, again = world.step(np.ones((8, 2), np.float32)), world.reset(0) and world.step(np.ones((8, 2), np.float32))
    assert first.view.obs["obs"].tobytes() == again.view.obs["obs"].tobytes()


def test_a_policy_plays_the_episodes_of_gymnasiums_env():
    worlds = make_world("Hopper-v5", 2), make_world("Hopper-v5", 2, backend="gymnasium", workers=0)
    policy = ActorCritic(worlds[0].observation, worlds[0].action, NetConfig(), seed=3)
    ours, theirs = (play(policy, world, 5, seed=2) for world in worlds)
    assert (ours.returns, ours.lengths) == (theirs.returns, theirs.lengths)


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Walker2d-v5"])
def test_training_has_the_digits_of_training_on_gymnasiums_env(name):
    def trained(world: World) -> Training:
        spec = RunSpec(
            env=name,
            preset="sb3",
            total_steps=200,
            ppo=PPOConfig(rollout_steps=50, envs=2, minibatch_size=25, epochs=2, device="cpu"),
            net=NetConfig(hidden=(8,), normalize_obs=True),
            collect=CollectConfig(normalize_reward=True),
            eval_every=0,
            checkpoint_every=100,
        )
        training = Training(spec, world=world)
        assert len(list(training)) == 2
        return training

    ours, theirs = trained(make_world(name, 2)), trained(make_world(name, 2, backend="gymnasium", workers=0))
    expected = theirs.policy.state_dict()
    assert all(torch.equal(x, expected[key]) for key, x in ours.policy.state_dict().items())


@pytest.mark.parametrize("changes", [{"env_kwargs": {"ctrl_cost_weight": 0.5}}, {"max_episode_steps": 10}])
def test_a_changed_env_is_gymnasiums(changes):
    world = make_world("HalfCheetah-v5", **changes)
    assert isinstance(world, EnvsWorld)
    with pytest.raises(ConfigError, match="the built-in HalfCheetah-v5 takes no env_kwargs"):
        make_world("HalfCheetah-v5", backend="surefoot", **changes)


def test_a_version_that_pays_otherwise_is_noticed(monkeypatch):
    from gymnasium.envs.mujoco.swimmer_v5 import SwimmerEnv

    pays = SwimmerEnv._get_rew
    monkeypatch.setattr(SwimmerEnv, "_get_rew", lambda self, *args: (pays(self, *args)[0] + 1e-3, {}))
    monkeypatch.setattr(mujoco, "_agreed", set())
    world = make_world("Swimmer-v5", 2, workers=0)
    assert isinstance(world, EnvsWorld)
    assert "this version's Swimmer-v5 moves, pays or starts in another way" in (placement_of(world) or "")
    with pytest.raises(EnvError, match="cannot be stepped in C: this version's Swimmer-v5"):
        make_world("Swimmer-v5", backend="surefoot")


def test_an_id_that_was_registered_anew_is_gymnasiums(monkeypatch):
    spec = copy.copy(gym.registry["Hopper-v5"])
    spec.additional_wrappers = (gym.wrappers.ClipReward.wrapper_spec(max_reward=1.0),)
    monkeypatch.setitem(gym.registry, "Hopper-v5", spec)
    world = make_world("Hopper-v5")
    assert isinstance(world, EnvsWorld)
    assert "registered with other wrappers" in (placement_of(world) or "")
    larger = copy.copy(gym.registry["Ant-v5"])
    larger.kwargs = {"include_cfrc_ext_in_observation": False}
    monkeypatch.setitem(gym.registry, "Ant-v5", larger)
    assert "the observation has 105 numbers, not 27" in (placement_of(make_world("Ant-v5")) or "")


def test_without_the_kernel_it_is_gymnasiums(monkeypatch):
    monkeypatch.setattr(native, "kernel", None)
    monkeypatch.setattr(native, "why_not", "it was not built")
    world = make_world("Hopper-v5", workers=0)
    assert (placement_of(world) or "").startswith("Gymnasium steps Hopper-v5, not the kernel: it was not built")


def test_a_piece_outside_its_array_is_refused():
    world = make_world("Hopper-v5")
    assert isinstance(world, MujocoWorld)
    members = mujoco._members(world._envs)
    for column, value in ((0, 11), (1, -1), (2, 99), (3, -99), (4, 9)):
        piece = members["piece"].copy()
        piece[0, column] = value
        with pytest.raises(ValueError, match="piece 0 of the observation is outside its array"):
            native.kernel.mujoco_new(n=1, threads=0, **{**members, "piece": piece})
    with pytest.raises(ValueError, match="no MuJoCo task called 'Hopper-v9'"):
        native.kernel.mujoco_new(n=1, threads=0, **{**members, "name": "Hopper-v9"})


def test_other_streams_have_no_simulations():
    streams = native.kernel.streams_new("CartPole-v1", 1)
    with pytest.raises(ValueError, match="CartPole-v1 has no mjData"):
        native.kernel.mujoco_point(streams, np.zeros((1, 14), np.uint64), np.zeros(1, np.int64), {})
