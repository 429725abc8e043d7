"""Gymnasium's MuJoCo tasks (v5) stepped in C: the same model files, libmujoco, random numbers and digits, without Python.

Gymnasium's envs stay: they load the models, start the first episodes, and hold the state that is saved. The kernel moves
their `MjData`, computes rewards and ends, and begins the next episodes with the envs' own generators.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import wrappers

from surefoot import native
from surefoot.envs.api import Step, View, World
from surefoot.envs.builtin.native import NativeWorld, needed_kernel
from surefoot.envs.gym.single_envs import EnvsWorld, SingleEnv
from surefoot.envs.workers.placement import Workers, choose_workers, cores, free_cores

ARRAYS = (
    *("qpos", "qvel", "ctrl", "xpos", "xipos", "site_xpos", "cinert", "cvel", "cfrc_ext", "qfrc_actuator"),
    "qfrc_constraint",
)
"""Arrays of `MjData` that tasks read or write, in the order of `mujoco_tasks.h`."""

FUNCTIONS = (
    *("mj_step", "mj_forward", "mj_resetData", "mj_rnePostConstraint"),  # of libmujoco
    *("random_uniform", "random_standard_normal"),  # of numpy
)
"""C functions that tasks call, in the order of `bind_mujoco.c`."""

Piece = tuple[str, int | str | tuple[str, str], int | None, str]
"""(array, first number, count, function) of a part of the observation. A count of None is the rest of the array. The first
number can be a body, or two bodies whose positions are subtracted."""

_FUNCTIONS = ("copy", "clip", "clip_force", "cos", "sin")
_MOVING: tuple[Piece, ...] = (("qpos", 1, None, "copy"), ("qvel", 0, None, "clip"))
_HUMANOID: tuple[Piece, ...] = (
    *(("qpos", 2, None, "copy"), ("qvel", 0, None, "copy"), ("cinert", 10, None, "copy")),
    *(("cvel", 6, None, "copy"), ("qfrc_actuator", 6, None, "copy"), ("cfrc_ext", 6, None, "copy")),
)
_PIECES: dict[str, tuple[Piece, ...]] = {
    "HalfCheetah-v5": (("qpos", 1, None, "copy"), ("qvel", 0, None, "copy")),
    "Swimmer-v5": (("qpos", 2, None, "copy"), ("qvel", 0, None, "copy")),
    "Hopper-v5": _MOVING,
    "Walker2d-v5": _MOVING,
    "Ant-v5": (("qpos", 2, None, "copy"), ("qvel", 0, None, "copy"), ("cfrc_ext", 6, None, "clip_force")),
    "Humanoid-v5": _HUMANOID,
    "HumanoidStandup-v5": _HUMANOID,
    "Reacher-v5": (
        ("qpos", 0, 2, "cos"),
        ("qpos", 0, 2, "sin"),
        ("qpos", 2, None, "copy"),
        ("qvel", 0, 2, "copy"),
        ("xpos", ("fingertip", "target"), 2, "copy"),
    ),
    "Pusher-v5": (
        ("qpos", 0, 7, "copy"),
        ("qvel", 0, 7, "copy"),
        ("xpos", "tips_arm", 3, "copy"),
        ("xpos", "object", 3, "copy"),
        ("xpos", "goal", 3, "copy"),
    ),
    "InvertedPendulum-v5": (("qpos", 0, None, "copy"), ("qvel", 0, None, "copy")),
    "InvertedDoublePendulum-v5": (
        ("qpos", 0, 1, "copy"),
        ("qpos", 1, None, "sin"),
        ("qpos", 1, None, "cos"),
        ("qvel", 0, None, "clip"),
        ("qfrc_constraint", 0, 1, "clip"),
    ),
}
_BODIES = {"Reacher-v5": ("fingertip", "fingertip", "target"), "Pusher-v5": ("object", "tips_arm", "goal")}
"""Bodies whose distances are the reward: from the first to each of the others."""

IN_LIBMUJOCO = tuple(_PIECES)
"""Gymnasium's tasks that the kernel steps with libmujoco."""


class MujocoWorld(NativeWorld):
    """N streams of a MuJoCo task in C; the state and its format are those of `EnvsWorld`.

    Args:
        envs: Gymnasium's envs, one per stream, with no other wrapper than a time limit.
        threads: Threads that step streams besides the caller's; digits do not depend on it.
    """

    def __init__(self, envs: EnvsWorld, threads: int = 0) -> None:
        self._envs = envs
        self._bases: list[Any] = [env.unwrapped for env in envs.envs]
        streams = needed_kernel(envs.name).mujoco_new(n=envs.num_envs, threads=threads, **_members(envs))
        self.threads = threads
        super().__init__(envs.name, streams, envs.num_envs)
        self.observation, self.action, self.inexact = envs.observation, envs.action, envs.inexact

    def reset(self, seed: int) -> View:
        return self._continue(self._envs.reset(seed))

    def state(self) -> dict[str, Any]:
        """Return Gymnasium's state of each env, as `EnvsWorld` does."""
        elapsed = np.empty(self.num_envs, np.int64)
        self._kernel.streams_state(self.handle, np.empty(self._state_shape), elapsed, bytearray(32))
        for env, steps in zip(self._envs.envs, elapsed.tolist(), strict=True):
            env._elapsed_steps = steps  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]  # a TimeLimit
        self._envs.view = self._view()
        return self._envs.state()

    def set_state(self, state: dict[str, Any]) -> View:
        """Continue from a state of this class or of `EnvsWorld`."""
        return self._continue(self._envs.set_state(state))

    def close(self) -> None:
        self._envs.close()

    def _continue(self, view: View) -> View:
        """Point the kernel to the envs' simulations and generators, of which a reset makes new ones."""
        rows = [_addresses(base) for base in self._bases]
        elapsed = [env._elapsed_steps for env in self._envs.envs]  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
        alive = {"envs": self._bases, "random": [base.np_random for base in self._bases]}
        self._kernel.mujoco_point(self.handle, np.array(rows, np.uint64), np.array(elapsed, np.int64), alive)
        return View(obs={"obs": view.obs["obs"].copy()})


def mujoco_world(builds: Sequence[Callable[[], SingleEnv]], name: str, workers: Workers = 0) -> MujocoWorld | str:
    """Return the task in C, or the reason why the kernel cannot step it or would step another task."""
    if native.kernel is None:
        return native.why_not
    envs = EnvsWorld(builds, name)
    reason = _why_not(envs)
    if reason is None:
        try:
            world = MujocoWorld(envs, 0 if workers == "auto" else workers)
        except ValueError as why:  # the model or the observation has other sizes
            reason = str(why)
        else:
            reason = _difference(world, envs)
            if reason is None:
                world = _with_threads(world, envs) if workers == "auto" else world
                world.reset(0)
                return world
    envs.close()
    return reason


def _with_threads(world: MujocoWorld, envs: EnvsWorld) -> MujocoWorld:
    """Return the world with as many threads as `choose_workers` would start processes: waking a thread costs less."""
    if world.num_envs < 2 or cores() < 2:
        return world
    action, took = np.zeros((world.num_envs, envs.envs[0].unwrapped.model.nu), np.float32), list[float]()  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(5):
        before = time.perf_counter()
        world.step(action)
        took.append((time.perf_counter() - before) / world.num_envs)
    threads = choose_workers(sorted(took)[2], world.num_envs, free_cores()).workers
    return MujocoWorld(envs, threads) if threads else world


def _why_not(envs: EnvsWorld) -> str | None:
    """Return None if the envs are Gymnasium's own in no other wrapper than a time limit, and the libraries have the functions."""
    for env in envs.envs:
        base = env.unwrapped
        if type(env) is not wrappers.TimeLimit or env.env is not base:
            return f"{envs.name} is registered with other wrappers"
        if not type(base).__module__.startswith("gymnasium.envs.mujoco.") or not type(base).__module__.endswith("_v5"):
            return f"{envs.name} is registered as {type(base).__qualname__} of {type(base).__module__}"
    try:
        _functions()
    except (OSError, IndexError, AttributeError) as why:
        return f"the functions of libmujoco or numpy were not found: {why!r}"
    return None


_agreed: set[str] = set()
"""Tasks that were compared with Gymnasium's in this process."""


def _difference(world: MujocoWorld, envs: EnvsWorld) -> str | None:
    """Compare two steps and a reset with Gymnasium's env, once per process: another version may have changed the task."""
    if world.name in _agreed:
        return None
    envs.reset(0)
    start, random = envs.state(), np.random.default_rng(0)
    shape = (world.num_envs, envs.envs[0].unwrapped.model.nu)  # pyright: ignore[reportAttributeAccessIssue]  # a MujocoEnv
    actions = [random.uniform(-0.5, 0.5, shape).astype(np.float32) for _ in range(2)]
    every = np.ones(world.num_envs, bool)

    def play(of: World) -> list[np.ndarray]:
        of.set_state(start)
        steps: list[Step] = [of.step(action) for action in actions]
        again = of.reset_streams(every)
        assert again is not None  # both have been reset
        return [again.obs["obs"], *(step.view.obs["obs"] for step in steps), *(step.reward for step in steps)]

    expected, got = play(envs), play(world)
    if not all(np.allclose(a, b, rtol=1e-6, atol=1e-9) for a, b in zip(expected, got, strict=True)):
        return f"this version's {world.name} moves, pays or starts in another way"
    _agreed.add(world.name)
    return None


def _addresses(base: Any) -> list[int]:
    """Return the addresses of an env's model, data, generator and arrays."""
    random = base.np_random.bit_generator.ctypes.bit_generator.value
    arrays = [getattr(base.data, name).ctypes.data for name in ARRAYS]
    return [base.model._address, base.data._address, random, *arrays]  # pyright: ignore[reportPrivateUsage]


def _members(envs: EnvsWorld) -> dict[str, Any]:
    """Return the numbers of a task, read off Gymnasium's env, and the functions that move it."""
    env: Any = envs.envs[0]
    base, model = env.unwrapped, env.unwrapped.model

    def number(name: str) -> float:
        return float(getattr(base, f"_{name}", 0.0))

    def bounds(name: str) -> tuple[float, float]:
        low, high = getattr(base, f"_{name}_range", (-math.inf, math.inf))
        return float(low), float(high)

    bodies = [_body(base, name) for name in _BODIES.get(envs.name, ())] or [int(getattr(base, "_main_body", 0)), 0, 0]
    z, angle, force = bounds("healthy_z"), bounds("healthy_angle"), bounds("contact_force")
    pieces = [_located(base, piece) for piece in _PIECES[envs.name]]
    return {
        "name": envs.name,
        "obs_size": int(np.prod(env.observation_space.shape)),
        "max_episode_steps": env._max_episode_steps,
        **{name: getattr(model, name) for name in ("nq", "nv", "nu", "nbody")},
        "frame_skip": base.frame_skip,
        "pieces": len(pieces),
        "fused": _dot_is_fused(),
        "functions": np.array(_functions(), np.uint64),
        **dict(zip(("body", "other", "target"), bodies, strict=True)),
        "dt": base.dt,
        "timestep": float(model.opt.timestep),
        "total_mass": float(model.body_mass.sum()),
        "reset_noise_scale": number("reset_noise_scale"),
        "healthy_reward": number("healthy_reward"),
        "state_limit": bounds("healthy_state")[1] if hasattr(base, "_healthy_state_range") else 0.0,
        "z_low": z[0],
        "z_high": z[1],
        "angle_low": angle[0],
        "angle_high": angle[1],
        "forward_reward_weight": number("forward_reward_weight"),
        "ctrl_cost_weight": number("ctrl_cost_weight") or number("reward_control_weight"),
        "contact_cost_weight": number("contact_cost_weight") or number("impact_cost_weight"),
        "force_low": force[0],
        "force_high": force[1],
        "cost_high": min(bounds("contact_cost")[1], bounds("impact_cost")[1]),
        "near_weight": number("reward_near_weight"),
        "dist_weight": number("reward_dist_weight"),
        "init_qpos": base.init_qpos,
        "init_qvel": base.init_qvel,
        "body_mass": np.array(model.body_mass),
        "piece": np.array(pieces, np.int64),
        "lengths": np.array([getattr(base.data, name).size for name in ARRAYS], np.int64),
        "low": env.action_space.low,
        "high": env.action_space.high,
    }


def _located(base: Any, piece: Piece) -> tuple[int, ...]:
    """Return a piece as numbers: array, first, count, distance to the numbers that are subtracted, function."""
    array, first, count, function = piece
    minus = 0
    if isinstance(first, tuple):
        minus = 3 * (_body(base, first[1]) - _body(base, first[0]))
        first = first[0]
    start = first if isinstance(first, int) else 3 * _body(base, first)
    rest = getattr(base.data, array).size - start if count is None else count
    return ARRAYS.index(array), start, rest, minus, _FUNCTIONS.index(function)


def _body(base: Any, name: str) -> int:
    return int(base.data.body(name).id)


@functools.cache
def _functions() -> list[int]:
    """Return the addresses of `FUNCTIONS`; both libraries are loaded already."""
    mujoco, generator = importlib.import_module("mujoco"), importlib.import_module("numpy.random._generator")
    folder = Path(mujoco.__file__ or "").parent
    libraries = [
        path for kind in ("libmujoco.so*", "libmujoco*.dylib", "mujoco.dll") for path in sorted(folder.glob(kind))
    ]
    simulator, numpy_random = ctypes.CDLL(str(libraries[0])), ctypes.CDLL(generator.__file__)
    functions = [(simulator if name.startswith("mj_") else numpy_random)[name] for name in FUNCTIONS]
    return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]


def _dot_is_fused() -> bool:
    """Return whether numpy's dot product fuses multiplication and addition: rounding of (1 + ε)(1 - ε) - 1 shows it."""
    tiny = 2.0**-30
    return float(np.dot([1.0, 1.0 + tiny], [-1.0, 1.0 - tiny])) != 0.0
