"""Environments stepped in C: the classic-control ones, with the digits of their numpy definition, and users' libraries.

The kernel uses sin, cos and pow of the C library. So does numpy on most machines, where every digit is the same. With
AVX-512, numpy's wheels have their own functions, which may differ in the last digit.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from surefoot import native
from surefoot.data.spaces import ActionSpace, Box, Discrete
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.envs.builtin.streams import Actions, Task, checked_state, checked_streams
from surefoot.errors import ConfigError, EnvError

MAIN = "surefoot_env_main"
"""The function that a library must export; it returns its `surefoot_env`."""

_FLOAT32, _BOOL = np.dtype(np.float32), np.dtype(bool)


class Description(NamedTuple):
    """Properties of an environment in C; `surefoot_env.h` documents the fields."""

    name: str
    state_size: int
    obs_size: int
    obs_low: tuple[float, ...] | None
    obs_high: tuple[float, ...] | None
    choices: int
    action_size: int
    action_low: tuple[float, ...] | None
    action_high: tuple[float, ...] | None
    max_episode_steps: int

    @property
    def observation(self) -> Box:
        low, high = self.obs_low, self.obs_high
        return Box((self.obs_size,), -np.inf if low is None else low, np.inf if high is None else high)

    @property
    def action(self) -> ActionSpace:
        if self.choices or self.action_low is None or self.action_high is None:
            return Discrete(self.choices)
        return Box((self.action_size,), self.action_low, self.action_high)


class NativeWorld(World):
    """N streams of an environment in C, with the same interface and state format as `Streams`.

    `which` is the name of one of the kernel's environments, the address of a `surefoot_env`, or streams that exist. Spaces,
    pictures and the dtype of the state come from `task`, the numpy definition of the same environment, if there is one.
    """

    def __init__(self, name: str, which: str | int | Any, num_envs: int, task: Task | None = None) -> None:
        if num_envs < 1:
            raise ConfigError(f"num_envs is {num_envs}; {name} needs at least 1 stream")
        self._kernel = needed_kernel(name)
        about = describe(self._kernel, which, name)
        self.name = name
        self.num_envs = num_envs
        self.task = task
        self.observation = {"obs": about.observation if task is None else task.observation}
        self.action = about.action if task is None else task.action
        self.max_episode_steps = about.max_episode_steps or None
        self.handle = self._kernel.streams_new(which, num_envs) if isinstance(which, str | int) else which
        """The capsule around the kernel's `sf_streams`."""
        self._bits = np.random.PCG64(0)
        self._state_shape = (about.state_size, num_envs)
        self._state_kind = np.dtype(np.float64) if task is None else task.start(np.random.default_rng(0), 1).dtype
        self._actions = Actions(name, self.action, num_envs)
        self._action_kind = np.dtype(np.int64 if about.choices else np.float32)
        self._obs_shape = (num_envs, about.obs_size)
        self._final = np.empty(self._obs_shape, np.float32)
        self._every = np.ones(num_envs, bool)
        self._step = self._kernel.streams_step
        self.reset(0)

    def reset(self, seed: int) -> View:
        self._bits = np.random.PCG64(seed)
        self._kernel.streams_seed(self.handle, _bytes(self._bits))
        obs = np.empty(self._obs_shape, np.float32)
        self._kernel.streams_begin(self.handle, None, obs)
        return View(obs={"obs": obs})

    def step(self, action: np.ndarray) -> Step:
        """Take `action` in each stream; raise `EnvError`, with no stream moved, if it is invalid."""
        n = self.num_envs
        if action.shape != self._actions.shape or action.dtype != self._action_kind or not action.flags.c_contiguous:
            action = np.ascontiguousarray(self._actions.checked(action), self._action_kind)
        obs, reward = np.empty(self._obs_shape, _FLOAT32), np.empty(n)
        terminated, truncated = np.empty(n, _BOOL), np.empty(n, _BOOL)
        ended = self._step(self.handle, action, obs, reward, terminated, truncated, self._final)
        if ended < 0:
            self._actions.checked(action)
        final_obs: Arrays | None = {"obs": self._final.copy()} if ended else None
        return Step(
            view=View(obs={"obs": obs}),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            valid=self._every.copy(),
            final_obs=final_obs,
        )

    def reset_streams(self, streams: np.ndarray) -> View:
        which = np.ascontiguousarray(checked_streams(streams, self))
        self._kernel.streams_begin(self.handle, which, np.empty(self._obs_shape, np.float32))
        return self._view()

    def state(self) -> dict[str, Any]:
        """Return the task's numbers [S, N], the steps taken in each episode [N], and the generator's state."""
        task, elapsed, rng = np.empty(self._state_shape), np.empty(self.num_envs, np.int64), bytearray(32)
        self._kernel.streams_state(self.handle, task, elapsed, rng)
        numbers = {
            "state": int.from_bytes(rng[:16], sys.byteorder),
            "inc": int.from_bytes(rng[16:], sys.byteorder),
        }
        return {
            "task": task.astype(self._state_kind, copy=False),
            "elapsed": elapsed,
            "rng": {**self._bits.state, "state": numbers},
        }

    def set_state(self, state: dict[str, Any]) -> View:
        """Continue from `state`; raise `ShapeError` for a state of another environment or another N."""
        task, elapsed = checked_state(state, self, self._state_kind, self._state_shape)
        self._bits.state = state["rng"]
        self._kernel.streams_set_state(self.handle, np.ascontiguousarray(task, np.float64), elapsed, _bytes(self._bits))
        return self._view()

    def render(self) -> np.ndarray | None:
        return None if self.task is None else self.task.draw(self.state()["task"][:, 0])

    def _view(self) -> View:
        obs = np.empty(self._obs_shape, np.float32)
        self._kernel.streams_observe(self.handle, obs)
        return View(obs={"obs": obs})


def load_library(path: str | os.PathLike[str]) -> Callable[[int], World]:
    """Return a constructor, by number of streams, of the environment in the shared library at `path`.

    This runs the library's code. Raise `EnvError` if the library is not a valid environment.
    """
    path = os.fspath(path)
    kernel = needed_kernel(path)
    if not os.path.isfile(path):
        raise EnvError(
            f"there is no library {path!r}; build one with `cc -O2 -shared -fPIC`, see docs/how-to/worlds-in-c.md"
        )
    try:
        library = ctypes.CDLL(os.path.abspath(path))
    except OSError as why:
        raise EnvError(
            f"{path} could not be loaded ({why}); build a shared library for this machine with `cc -O2 -shared -fPIC`: "
            "see docs/how-to/worlds-in-c.md"
        ) from why
    try:
        main = library[MAIN]
    except AttributeError as why:
        raise EnvError(f"{path} does not export {MAIN}; an environment in C must define it") from why
    main.restype, main.argtypes = ctypes.c_void_p, ()
    address: int = main() or 0
    about = describe(kernel, address, path)
    return lambda num_envs: NativeWorld(about.name, address, num_envs)


def describe(kernel: ModuleType, which: str | int | Any, name: str) -> Description:
    """Return the checked properties of an environment in C; the `EnvError` for an invalid one begins with `name`."""
    try:
        return Description(*kernel.env_describe(which))
    except (ValueError, UnicodeDecodeError) as why:
        raise EnvError(f"{name}: {why}") from why


def needed_kernel(name: str) -> ModuleType:
    """Return the kernel; raise `EnvError` with the reason if it is not available."""
    if native.kernel is None:
        raise EnvError(f"{name} needs the kernel, and {native.why_not}")
    return native.kernel


def _bytes(bits: np.random.PCG64) -> bytes:
    """Return the generator's state in C's memory layout."""
    numbers = bits.state["state"]
    return numbers["state"].to_bytes(16, sys.byteorder) + numbers["inc"].to_bytes(16, sys.byteorder)
