"""Worlds that the kernel steps in C: the classics, with the digits of their numpy definition, and the user's own.

The kernel takes sin, cos and pow from the C library, and so does numpy on most machines: there every digit is the same.
With AVX-512 numpy's wheels have their own, which may differ in the last digit; neither is more right.
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
"""The function by which a library gives its world."""

_FLOAT32, _BOOL = np.dtype(np.float32), np.dtype(bool)


class Description(NamedTuple):
    """What a world in C says of itself; `surefoot_env.h` has the fields."""

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
    """N streams of a world in C. Everything that can be seen of it is as `Streams` would have it, its state included.

    `which` is the name of one of the kernel's worlds or the address of a `surefoot_env`. With `task`, the numpy
    definition of the same world, it takes its spaces, its pictures and the type of its state from there.
    """

    def __init__(self, name: str, which: str | int, num_envs: int, task: Task | None = None) -> None:
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
        self.handle = self._kernel.streams_new(which, num_envs)
        """The capsule around the kernel's `sf_streams`."""
        self._bits = np.random.PCG64(0)
        self._state_shape = (about.state_size, num_envs)
        self._state_kind = np.dtype(np.float64) if task is None else task.start(np.random.default_rng(0), 1).dtype
        self._actions = Actions(name, self.action, num_envs)
        self._action_kind = np.dtype(np.int64 if about.choices else np.float32)
        self._seen = (num_envs, about.obs_size)
        self._final = np.empty(self._seen, np.float32)
        self._every = np.ones(num_envs, bool)
        self._step = self._kernel.streams_step
        self.reset(0)

    def reset(self, seed: int) -> View:
        """Start N fresh episodes; everything random from here on follows from `seed`."""
        self._bits = np.random.PCG64(seed)
        self._kernel.streams_seed(self.handle, _bytes(self._bits))
        obs = np.empty(self._seen, np.float32)
        self._kernel.streams_begin(self.handle, None, obs)
        return View(obs={"obs": obs})

    def step(self, action: np.ndarray) -> Step:
        """Take `action` in each stream; nothing has moved if it is refused."""
        n = self.num_envs
        if action.shape != self._actions.shape or action.dtype != self._action_kind or not action.flags.c_contiguous:
            action = np.ascontiguousarray(self._actions.checked(action), self._action_kind)
        obs, reward = np.empty(self._seen, _FLOAT32), np.empty(n)
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
        """Begin a new episode where `streams` ([N] bool) says so."""
        which = np.ascontiguousarray(checked_streams(streams, self))
        self._kernel.streams_begin(self.handle, which, np.empty(self._seen, np.float32))
        return self._view()

    def state(self) -> dict[str, Any]:
        """All there is: the task's numbers [S, N], the steps taken in each episode [N], the generator."""
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
        """Go on from where `state` was taken; a state of another world or another N is refused."""
        task, elapsed = checked_state(state, self, self._state_kind, self._state_shape)
        self._bits.state = state["rng"]
        self._kernel.streams_set_state(self.handle, np.ascontiguousarray(task, np.float64), elapsed, _bytes(self._bits))
        return self._view()

    def render(self) -> np.ndarray | None:
        """[300, 400, 3] uint8 picture of the first stream; None for a world without a numpy definition."""
        return None if self.task is None else self.task.draw(self.state()["task"][:, 0])

    def _view(self) -> View:
        obs = np.empty(self._seen, np.float32)
        self._kernel.streams_observe(self.handle, obs)
        return View(obs={"obs": obs})


def load_library(path: str | os.PathLike[str]) -> Callable[[int], World]:
    """A constructor of the world in the shared library at `path`, which takes the number of streams.

    This runs the library's code. A library that is not a world is refused with what is wrong with it.
    """
    path = os.fspath(path)
    kernel = needed_kernel(path)
    if not os.path.isfile(path):
        raise EnvError(
            f"there is no library {path!r}; `cc -O2 -shared -fPIC` makes one, see docs/how-to/worlds-in-c.md"
        )
    try:
        library = ctypes.CDLL(os.path.abspath(path))
    except OSError as why:
        raise EnvError(
            f"{path} could not be loaded ({why}); it must be a shared library for this machine, as `cc -O2 -shared -fPIC` "
            "makes one: see docs/how-to/worlds-in-c.md"
        ) from why
    try:
        main = library[MAIN]
    except AttributeError as why:
        raise EnvError(f"{path} does not export {MAIN}; a world in C must define it") from why
    main.restype, main.argtypes = ctypes.c_void_p, ()
    address: int = main() or 0
    about = describe(kernel, address, path)

    return lambda num_envs: NativeWorld(about.name, address, num_envs)


def describe(kernel: ModuleType, which: str | int, name: str) -> Description:
    """What a world in C says of itself, looked at: what cannot be run is an EnvError that begins with `name`."""
    try:
        return Description(*kernel.env_describe(which))
    except (ValueError, UnicodeDecodeError) as why:
        raise EnvError(f"{name}: {why}") from why


def needed_kernel(name: str) -> ModuleType:
    """The kernel, or an EnvError that says why `name` cannot be had without it."""
    if native.kernel is None:
        raise EnvError(f"{name} is run by the kernel, and {native.why_not}")
    return native.kernel


def _bytes(bits: np.random.PCG64) -> bytes:
    """The generator as C holds it."""
    numbers = bits.state["state"]
    return numbers["state"].to_bytes(16, sys.byteorder) + numbers["inc"].to_bytes(16, sys.byteorder)
