"""One scripted env must look the same through every autoreset mode and through our own stepping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.envs.api import World
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.gym.vector_env import VectorWorld

Script = list[tuple[int, str]]
"""Episodes of one stream: how long, and how it ends; the list is repeated for ever."""


class Scripted(gym.Env[Any, int]):
    """Shows (stream, episode, step, last action) and pays 100·episode + 10·step + action."""

    def __init__(self, stream: int, script: Script, named: bool) -> None:
        box = spaces.Box(-1e6, 1e6, (4,), np.float64)
        self.observation_space = spaces.Dict({"a": box, "b": spaces.Discrete(2)}) if named else box
        self.action_space = spaces.Discrete(10)
        self.stream, self.script, self.named = stream, script, named
        self.episode, self.t = -1, 0

    def _obs(self, action: int) -> Any:
        obs = np.array([self.stream, self.episode, self.t, action], np.float64)
        return {"a": obs, "b": self.t % 2} if self.named else obs

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.t = self.episode + 1, 0
        return self._obs(-1), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        length, end = self.script[self.episode % len(self.script)]
        self.t += 1
        over = self.t == length
        reward = 100.0 * self.episode + 10.0 * self.t + float(action)
        return (
            self._obs(int(action)),
            reward,
            over and end != "cut",
            over and end != "over",
            {"is_success": end == "over"},
        )


@dataclass(frozen=True)
class Transition:
    obs: tuple[float, ...]
    action: int
    reward: float
    successor: tuple[float, ...]
    terminated: bool
    truncated: bool
    success: float | None


def expected(stream: int, script: Script, actions: list[int]) -> list[Transition]:
    """Written from the script alone."""
    out: list[Transition] = []
    episode, t, last = 0, 0, -1
    for action in actions:
        length, end = script[episode % len(script)]
        over = t + 1 == length
        out.append(
            Transition(
                obs=(stream, episode, t, last),
                action=action,
                reward=100 * episode + 10 * (t + 1) + action,
                successor=(stream, episode, t + 1, action),
                terminated=over and end in ("over", "both"),
                truncated=over and end == "cut",
                success=float(end == "over") if over else None,
            )
        )
        episode, t, last = (episode + 1, 0, -1) if over else (episode, t + 1, action)
    return out


def action_of(stream: int, k: int) -> int:
    return (3 * stream + 7 * k) % 10


def seen(world: World, part: str, each: int) -> list[list[Transition]]:
    """The valid transitions of each stream, until every stream has `each` of them."""
    out: list[list[Transition]] = [[] for _ in range(world.num_envs)]
    obs = world.reset(0).obs[part]
    while min(map(len, out)) < each:
        action = np.array([action_of(i, len(stream)) for i, stream in enumerate(out)])
        step = world.step(action)
        ended = step.terminated | step.truncated
        for i in np.flatnonzero(step.valid):
            after = step.view.obs if not ended[i] else step.final_obs
            assert after is not None
            success = float(step.stats["success"][i]) if ended[i] else None
            flags = bool(step.terminated[i]), bool(step.truncated[i])
            row = Transition(
                tuple(obs[i]), int(action[i]), float(step.reward[i]), tuple(after[part][i]), *flags, success
            )
            out[i].append(row)
        obs = step.view.obs[part]
    return [stream[:each] for stream in out]


def through_gymnasium(mode: AutoresetMode, copy: bool) -> Callable[..., World]:
    return lambda env_fns: VectorWorld(SyncVectorEnv(env_fns, autoreset_mode=mode, copy=copy))


WORLDS: dict[str, Callable[..., World]] = {
    "next step": through_gymnasium(AutoresetMode.NEXT_STEP, True),
    "same step": through_gymnasium(AutoresetMode.SAME_STEP, True),
    "disabled": through_gymnasium(AutoresetMode.DISABLED, True),
    "next step, one buffer": through_gymnasium(AutoresetMode.NEXT_STEP, False),
    "same step, one buffer": through_gymnasium(AutoresetMode.SAME_STEP, False),
    "disabled, one buffer": through_gymnasium(AutoresetMode.DISABLED, False),
    "ours": EnvsWorld,
}

scripts = st.lists(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["over", "cut", "both"])), min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("kind", WORLDS)
@given(scripts=scripts, named=st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_mode_shows_the_same_valid_transitions(kind: str, scripts: list[Script], named: bool) -> None:
    world = WORLDS[kind]([lambda i=i: Scripted(i, scripts[i], named) for i in range(len(scripts))])
    got = seen(world, "a" if named else "obs", each=12)
    for i, script in enumerate(scripts):
        assert got[i] == expected(i, script, [action_of(i, k) for k in range(12)])


@pytest.mark.parametrize("kind", WORLDS)
def test_only_the_next_step_mode_has_rows_that_do_not_count(kind: str) -> None:
    world = WORLDS[kind]([lambda: Scripted(0, [(2, "cut")], False)])
    world.reset(0)
    valid = [bool(world.step(np.array([1])).valid[0]) for _ in range(6)]
    assert valid == ([True, True, False] * 2 if kind.startswith("next") else [True] * 6)
