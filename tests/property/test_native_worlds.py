"""The kernel's worlds against their numpy definition: the same digits from any seed, any state, at any switch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import native
from surefoot.data.spaces import Discrete
from surefoot.envs.api import Step, World
from surefoot.envs.builtin.classic import CLASSIC, IN_KERNEL, definition

pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)

_X = np.random.default_rng(0).uniform(-30.0, 30.0, 20_000)
LIBM = all(
    np.array_equal(ours(_X), [theirs(x) for x in _X.tolist()])
    for ours, theirs in [(np.sin, math.sin), (np.cos, math.cos)]
)
"""True where numpy's sin and cos are the C library's. Elsewhere they may differ by an ulp, and whole episodes with them."""

REACH = {
    "CartPole-v0": (2.4, 5.0, 0.2, 5.0),
    "CartPole-v1": (2.4, 5.0, 0.2, 5.0),
    "Acrobot-v1": (10 * math.pi, 10 * math.pi, 4 * math.pi, 9 * math.pi),
    "MountainCar-v0": (1.2, 0.07),
    "MountainCarContinuous-v0": (1.2, 0.07),
    "Pendulum-v1": (200.0, 8.0),
    "surefoot/CartPoleContinuous-v0": (3.0, 10.0, 1.5, 8.0),
}


def actions(world: World, rng: np.random.Generator) -> np.ndarray:
    """Any that are legal, often the same for a while so that cars and links get somewhere; some beyond the bounds."""
    n = world.num_envs
    if isinstance(world.action, Discrete):
        return rng.integers(0, world.action.n, n)
    return rng.choice([rng.uniform(-3, 3), -1.0, 1.0, 0.0], (n, 1)).astype(np.float32)


def same(ours: Step, theirs: Step) -> bool:
    def parts(step: Step) -> list[Any]:
        final = step.final_obs["obs"] if step.final_obs else np.zeros(0)
        return [step.view.obs["obs"], final, step.reward, step.terminated, step.truncated, step.valid]

    return all(
        a.dtype == b.dtype and a.shape == b.shape and (a.tobytes() == b.tobytes() if LIBM else np.allclose(a, b, 1e-6))
        for a, b in zip(parts(ours), parts(theirs), strict=True)
    )


@pytest.mark.skipif(not LIBM, reason="numpy's sin or cos is not the C library's here")
@pytest.mark.parametrize("name", IN_KERNEL)
@given(seed=st.integers(0, 2**64), n=st.integers(1, 9), play=st.integers(0, 2**32), switch=st.integers(1, 1200))
@settings(max_examples=10, deadline=None)
def test_runs_are_the_same_to_the_last_digit_and_change_horses(name: str, seed: int, n: int, play: int, switch: int):
    world, numpy = CLASSIC[name](n), definition(name, n)
    rng = np.random.default_rng(play)
    assert world.reset(seed).obs["obs"].tobytes() == numpy.reset(seed).obs["obs"].tobytes()
    action = actions(world, rng)
    for t in range(1200):
        if t % 7 == 0 or rng.random() < 0.3:
            action = actions(world, rng)
        assert same(world.step(action), numpy.step(action)), f"step {t}"
        if t == switch:
            ours, theirs = world.state(), numpy.state()
            assert str(ours) == str(theirs)
            assert ours["task"].tobytes() == theirs["task"].tobytes()
            assert ours["task"].dtype == theirs["task"].dtype
            seen = world.set_state(theirs), numpy.set_state(ours)
            assert seen[0].obs["obs"].tobytes() == seen[1].obs["obs"].tobytes()
        if t % 401 == 400:
            chosen = rng.random(n) < 0.5
            assert np.array_equal(world.reset_streams(chosen).obs["obs"], numpy.reset_streams(chosen).obs["obs"])
    assert str(world.state()) == str(numpy.state())


@pytest.mark.parametrize("name", IN_KERNEL)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_one_step_from_any_state_is_the_definitions(name: str, seed: int):
    n, rng = 500, np.random.default_rng(seed)
    world, numpy = CLASSIC[name](n), definition(name, n)
    reach = np.array(REACH[name])[:, None]
    task = (rng.uniform(-reach, reach, (len(reach), n)) * rng.choice([1.0, 0.1, 1e-3], n)).astype(
        numpy.state()["task"].dtype
    )
    state = numpy.state() | {"task": task, "elapsed": rng.integers(0, numpy.max_episode_steps or 9, n)}
    world.set_state(state)
    numpy.set_state(state)
    action = actions(world, rng)
    assert same(world.step(action), numpy.step(action))
    close = np.array_equal if LIBM else lambda a, b: np.allclose(a, b, 1e-12, 1e-12)
    assert close(world.state()["task"], numpy.state()["task"])
    assert np.array_equal(world.state()["elapsed"], numpy.state()["elapsed"])
