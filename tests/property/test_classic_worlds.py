"""The classic worlds from any state: Gymnasium's digits, no influence between neighbours, exact resumption."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.api import World
from surefoot.envs.builtin.classic import CLASSIC

_X = np.random.default_rng(0).uniform(-8.0, 8.0, 4096)
LIBM = np.array_equal(np.cos(_X), [math.cos(x) for x in _X])
"""True where numpy's arrays go through the same C library as its scalars; else vector instructions may cost an ulp."""

REACH = {
    "CartPole-v1": (2.4, 5.0, 0.2, 5.0),
    "Acrobot-v1": (math.pi, math.pi, 4 * math.pi, 9 * math.pi),
    "MountainCar-v0": (0.6, 0.07),
    "MountainCarContinuous-v0": (0.6, 0.07),
    "Pendulum-v1": (20.0, 8.0),
    "surefoot/CartPoleContinuous-v0": (3.0, 10.0, 1.5, 8.0),
}
ENVS = {name: gym.make(name).unwrapped for name in REACH if not name.startswith("surefoot/")}


def same(ours: np.ndarray, theirs: np.ndarray) -> bool:
    if LIBM:
        return np.array_equal(ours, theirs)
    return np.allclose(ours, theirs, rtol=1e-12 if np.asarray(ours).dtype == np.float64 else 1e-6, atol=1e-12)


def states(name: str, n: int) -> st.SearchStrategy[np.ndarray]:
    """[S, n], anywhere within the reach of the world, -reach and +reach included."""
    reach = np.array(REACH[name])[:, None]
    shares = arrays(np.float64, (len(reach), n), elements=st.floats(-1.0, 1.0))
    kind = np.float32 if name == "MountainCarContinuous-v0" else np.float64
    return shares.map(lambda share: (share * reach).astype(kind))


def actions(world: World) -> st.SearchStrategy[np.ndarray]:
    n = world.num_envs
    if isinstance(world.action, Discrete):
        return arrays(np.int64, n, elements=st.integers(0, world.action.n - 1))
    assert isinstance(world.action, Box)
    high = float(world.action.bounds()[1].max())
    return arrays(np.float32, (n, 1), elements=st.floats(-high, high, width=32))


def put(world: World, task: np.ndarray) -> None:
    world.set_state(world.state() | {"task": task})


@pytest.mark.parametrize("name", ENVS)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_one_step_from_any_state_is_gymnasiums(name: str, data: st.DataObject) -> None:
    world, env = CLASSIC[name](1), ENVS[name]
    state, action = data.draw(states(name, 1)), data.draw(actions(world))
    put(world, state)
    env.reset(seed=0)
    env.state = state[:, 0].copy()
    obs, reward, terminated, _, _ = env.step(action[0])
    step = world.step(action)
    assert step.terminated[0] == terminated
    assert same(step.reward[0], np.float64(reward))
    assert same((step.final_obs or step.view.obs)["obs"][0], obs)
    if not terminated:
        assert same(world.state()["task"][:, 0], np.array(env.state))


@pytest.mark.parametrize("name", REACH)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_stream_moves_as_if_it_were_alone(name: str, data: st.DataObject) -> None:
    together = CLASSIC[name](3)
    state, action = data.draw(states(name, 3)), data.draw(actions(together))
    put(together, state)
    step = together.step(action)
    for i in range(3):
        alone = CLASSIC[name](1)
        put(alone, state[:, i : i + 1])
        own = alone.step(action[i : i + 1])
        assert own.reward[0] == step.reward[i]
        assert own.terminated[0] == step.terminated[i]
        after, own_after = step.final_obs or step.view.obs, own.final_obs or own.view.obs
        assert np.array_equal(own_after["obs"][0], after["obs"][i])
        if not own.terminated[0]:
            assert np.array_equal(alone.state()["task"][:, 0], together.state()["task"][:, i])


@pytest.mark.parametrize("name", CLASSIC)
@given(data=st.data(), seed=st.integers(0, 2**63), before=st.integers(0, 60))
@settings(max_examples=8, deadline=None)
def test_a_run_goes_on_from_its_state_to_the_last_digit(name: str, data: st.DataObject, seed: int, before: int) -> None:
    world, again = CLASSIC[name](2), CLASSIC[name](2)
    world.reset(seed)
    play = [data.draw(actions(world)) for _ in range(3)]
    for t in range(before):
        world.step(play[t % 3])
    saved = world.state()
    view = again.set_state(saved)
    assert np.array_equal(view.obs["obs"], world.set_state(saved).obs["obs"])
    for t in range(60):
        one, two = world.step(play[t % 3]), again.step(play[t % 3])
        assert np.array_equal(one.view.obs["obs"], two.view.obs["obs"])
        assert np.array_equal(one.reward, two.reward)
        assert np.array_equal(one.terminated, two.terminated)
        assert np.array_equal(one.truncated, two.truncated)
    assert str(world.state()) == str(again.state())
