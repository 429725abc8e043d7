"""`PoolWorld`: EnvPool's vector envs as a `World`. Their seed is fixed when they are built."""

from __future__ import annotations

import difflib
import importlib
import re
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from surefoot.envs.api import Step, View, World
from surefoot.envs.gym.vector_env import VectorWorld
from surefoot.errors import ConfigError, EnvError, UnknownEnv

_ATARI = re.compile(r"(?:ALE/(?P<new>\w+)-v5|(?P<old>\w+)NoFrameskip-v(?P<version>[04]))")


class PoolWorld(World):
    """N streams of one of EnvPool's envs. A stream that ended is reset in its next step, which is not `valid`.

    An Atari game has episodes of one life and raw rewards unless `options` change that, and reports the return of the
    whole game. At the step limit EnvPool returns `truncated` even for a stream that terminates in the same step; for
    Atari games the info distinguishes the two.
    """

    backend = "envpool"

    def __init__(self, name: str, num_envs: int, options: Mapping[str, Any] | None = None) -> None:
        self._envpool, self._id = _envpool(name), pool_id(name)
        known: list[str] = self._envpool.list_all_envs()
        if self._id not in known:
            near = difflib.get_close_matches(self._id, known, n=3, cutoff=0.6)
            advice = f"did you mean {' or '.join(near)}?" if near else "envpool.list_all_envs() lists them."
            raise UnknownEnv(f"EnvPool has no env {self._id!r}; {advice}")
        defaults = self._envpool.make_spec(self._id).config._asdict()
        self._lives = "episodic_life" in defaults
        # Gymnasium's ids define the probability of sticky actions; EnvPool's defaults differ.
        match, stick = _ATARI.fullmatch(name), dict[str, float]()
        if match is not None:
            stick["repeat_action_probability"] = 0.0 if match["version"] == "4" else 0.25
        self._options = {**({"episodic_life": True, **stick} if self._lives else {}), **(options or {})}
        self._limit = int(self._options.get("max_episode_steps", defaults["max_episode_steps"]))
        self.name, self.num_envs = name, num_envs
        self._world = self._build(0)
        self.observation, self.action = self._world.observation, self._world.action
        self.inexact = f"{name} runs inside EnvPool, which does not export its state; other backends may resume exactly"
        self._total = np.zeros(num_envs)

    def reset(self, seed: int) -> View:
        self._world.close()
        self._world = self._build(seed)
        self._total = np.zeros(self.num_envs)
        with _quiet():
            return self._world.reset(seed)

    def step(self, action: np.ndarray) -> Step:
        step = self._world.step(action)
        if self._lives:
            self._count(step)
        return step

    def state(self) -> dict[str, Any]:
        return self._world.state()

    def set_state(self, state: dict[str, Any]) -> View:
        return self.reset(int(state["restart_seed"]))

    def close(self) -> None:
        self._world.close()

    def _build(self, seed: int) -> VectorWorld:
        try:
            with _quiet():
                env = self._envpool.make_gymnasium(self._id, num_envs=self.num_envs, seed=seed % 2**31, **self._options)
        except Exception as error:
            raise EnvError(f"{self.name} could not be made by EnvPool with {self._options}: {error}") from error
        with _quiet():
            return VectorWorld(env, self.name)

    def _count(self, step: Step) -> None:
        """Sum the rewards over all lives, and report the sum at the end of the game."""
        self._total += step.reward * step.valid
        ended = step.terminated | step.truncated
        if not ended.any():
            return
        info = self._world.info
        over = np.asarray(info["terminated"], np.bool_) & step.valid
        step.terminated |= step.truncated & over
        step.truncated &= ~step.terminated
        game_over = ended & (over | (np.asarray(info["elapsed_step"]) >= self._limit))
        step.stats = {**step.stats, "whole_return": np.where(game_over, self._total, np.nan)}
        self._total[game_over] = 0.0


def pool_id(name: str) -> str:
    """Return EnvPool's id: ALE/Pong-v5 and PongNoFrameskip-v4 are its Pong-v5."""
    match = _ATARI.fullmatch(name)
    return name if match is None else f"{match['new'] or match['old']}-v5"


def pool_options(
    env_kwargs: Mapping[str, Any] | None, wrapped: bool, max_episode_steps: int | None, workers: int | str
) -> dict[str, Any]:
    """Return the options for EnvPool, which takes no wrappers and no workers."""
    if wrapped:
        raise ConfigError("backend='envpool' takes no wrappers: its envs are not in Python; backend='gymnasium' does")
    if workers not in ("auto", 0):
        raise ConfigError(
            f"backend='envpool' uses threads and takes no workers, but workers is {workers}; pass "
            f"env_kwargs={{'num_threads': {workers}}}"
        )
    limit = {} if max_episode_steps is None else {"max_episode_steps": max_episode_steps}
    return {**limit, **(env_kwargs or {})}


def _envpool(name: str) -> Any:
    try:
        return importlib.import_module("envpool")
    except ImportError as error:
        raise EnvError(
            f'{name} with backend="envpool" needs EnvPool, which is not installed; pip install "surefoot[envpool]"'
        ) from error


@contextmanager
def _quiet() -> Generator[None]:
    """Silence EnvPool's warning about a seed at reset (it has it already) and Gymnasium's about float precision."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
