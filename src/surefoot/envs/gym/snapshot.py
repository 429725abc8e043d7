"""Where a single Gymnasium env is, kept so that another one goes on from there to the last digit.

An env is a chain of wrappers around a base. Each layer is asked for its own memory only: by `get_state()` and
`set_state(state)` if it has them, else by the attributes that are known to be its memory. A layer that is neither is
named by `why_inexact`. The base's random generator is always kept, so `get_state()` need not.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import time
from collections import deque
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium import wrappers

from surefoot.envs.gym.vector_env import HasState
from surefoot.errors import CheckpointIncompatible

State = dict[str, Any]

_CLASSIC = "gymnasium.envs.classic_control."
_TEXT = "gymnasium.envs.toy_text."
_MUJOCO = "gymnasium.envs.mujoco."

_BASES: dict[str, tuple[str, ...]] = {
    f"{_CLASSIC}cartpole.CartPoleEnv": ("state", "steps_beyond_terminated"),
    f"{_CLASSIC}acrobot.AcrobotEnv": ("state",),
    f"{_CLASSIC}mountain_car.MountainCarEnv": ("state",),
    f"{_CLASSIC}continuous_mountain_car.Continuous_MountainCarEnv": ("state",),
    f"{_CLASSIC}pendulum.PendulumEnv": ("state", "last_u"),
    f"{_TEXT}frozen_lake.FrozenLakeEnv": ("s", "lastaction"),
    f"{_TEXT}cliffwalking.CliffWalkingEnv": ("s", "lastaction"),
    f"{_TEXT}taxi.TaxiEnv": ("s", "lastaction", "fickle_step", "taxi_orientation"),
}
"""What a base remembers besides its random generator; by exact class, since a subclass may remember more."""

_WRAPPERS: dict[type, tuple[str, ...]] = {
    wrappers.TimeLimit: ("_elapsed_steps",),
    wrappers.OrderEnforcing: ("_has_reset",),
    wrappers.PassiveEnvChecker: (),
    wrappers.Autoreset: ("autoreset",),
    wrappers.RecordEpisodeStatistics: (
        "episode_count",
        "episode_returns",
        "episode_lengths",
        "time_queue",
        "return_queue",
        "length_queue",
    ),
    wrappers.TimeAwareObservation: ("timesteps",),
    wrappers.FrameStackObservation: ("obs_queue", "padding_value"),
    wrappers.DelayObservation: ("observation_queue",),
    wrappers.MaxAndSkipObservation: ("_obs_buffer",),  # an end in mid-skip leaves older frames in it
    wrappers.NormalizeObservation: ("obs_rms.mean", "obs_rms.var", "obs_rms.count", "_update_running_mean"),
    wrappers.NormalizeReward: (
        "return_rms.mean",
        "return_rms.var",
        "return_rms.count",
        "discounted_reward",
        "_update_running_mean",
    ),
    wrappers.StickyAction: ("last_action", "is_sticky_actions", "num_repeats", "repeats_taken"),
    # These compute each step from that step alone.
    wrappers.ClipAction: (),
    wrappers.ClipReward: (),
    wrappers.DtypeObservation: (),
    wrappers.FilterObservation: (),
    wrappers.FlattenObservation: (),
    wrappers.GrayscaleObservation: (),
    wrappers.RescaleAction: (),
    wrappers.RescaleObservation: (),
    wrappers.ReshapeObservation: (),
    wrappers.ResizeObservation: (),
}

_OF_ANY_WRAPPER = {"env", "_action_space", "_observation_space", "_metadata", "_cached_spec", "_saved_kwargs"}

_MUJOCO_DERIVED = (
    *("xpos", "xquat", "xmat", "xipos", "ximat", "geom_xpos", "geom_xmat", "site_xpos", "site_xmat", "cam_xpos"),
    *("cam_xmat", "light_xpos", "light_xdir", "subtree_com", "cinert", "cvel", "cfrc_ext", "qfrc_actuator"),
    *("qfrc_constraint", "actuator_force", "sensordata", "qacc"),
)
"""Computed by MuJoCo *before* it moves the joints, so an env that reads them sees the step before (Ant, Humanoid)."""


def why_inexact(env: gym.Env[Any, Any]) -> str | None:
    """None if `export_state` keeps everything, else one sentence that names the layer that does not say where it is."""
    for layer in _layers(env):
        if _speaks(layer):
            continue
        kind = type(layer)
        if isinstance(layer, gym.Wrapper):
            fields = _WRAPPERS.get(kind)
            known = set(vars(layer)) <= _OF_ANY_WRAPPER if fields is None else all(_has(layer, f) for f in fields)
            what = "wrapper"
        else:
            known = _name(kind) in _BASES or kind.__module__.startswith(_MUJOCO)
            what = "env"
        if not known:
            return (
                f"the {what} {kind.__name__} does not export its state; give the {what} get_state() "
                "and set_state(state) and a resumed run is exact"
            )
    return None


def export_state(env: gym.Env[Any, Any]) -> State:
    """A nested dict of arrays and JSON values. Only as complete as `why_inexact` says."""
    base = env.unwrapped
    layers = [{"layer": type(layer).__name__, **_export_layer(layer)} for layer in _layers(env)]
    return {"layers": layers, "random": rng_to_json(base._np_random), "seed": base._np_random_seed}  # pyright: ignore[reportPrivateUsage]  # reading `np_random` would make one


def import_state(env: gym.Env[Any, Any], state: State) -> None:
    """Put an env made like the exported one where that one was; it need not have been reset."""
    layers = list(_layers(env))
    there, here = [kept["layer"] for kept in state["layers"]], [type(layer).__name__ for layer in layers]
    if there != here:
        raise CheckpointIncompatible(
            f"the env's state was kept for {' < '.join(there)}, but this env is {' < '.join(here)}; make it alike"
        )
    for layer, kept in zip(layers, state["layers"], strict=True):
        _import_layer(layer, kept)
    base = env.unwrapped
    if state["random"] is not None:
        base.np_random = rng_from_json(state["random"])
    base._np_random_seed = state["seed"]  # pyright: ignore[reportPrivateUsage]  # the setter above writes -1


def rng_to_json(rng: np.random.Generator | None) -> Any:
    """A generator's state in JSON values; its 128-bit numbers as text, which every JSON reader keeps whole."""
    return None if rng is None else _to_json(rng.bit_generator.state)


def rng_from_json(state: Any) -> np.random.Generator:
    """The generator that `rng_to_json` described."""
    known = {
        kind.__name__: kind for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox)
    }
    kind = known.get(state["bit_generator"])
    if kind is None:
        raise CheckpointIncompatible(f"a random generator {state['bit_generator']!r}; known are {', '.join(known)}")
    bits = kind()
    bits.state = _from_json(state)
    return np.random.Generator(bits)


def _to_json(value: Any) -> Any:
    match value:
        case dict():
            return {key: _to_json(part) for key, part in value.items()}
        case np.ndarray():
            return {"array": [_to_json(number) for number in value.tolist()], "dtype": str(value.dtype)}
        case int() if abs(value) >= 2**53:
            return hex(value)
        case _:
            return value


def _from_json(value: Any) -> Any:
    match value:
        case {"array": numbers, "dtype": dtype}:
            return np.array([_from_json(number) for number in numbers], dtype)
        case dict():
            return {key: _from_json(part) for key, part in value.items()}
        case str() if value.startswith("0x"):
            return int(value, 16)
        case _:
            return value


def _layers(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """From the outermost wrapper to the base."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _speaks(layer: gym.Env[Any, Any]) -> bool:
    """True if the layer has get_state() and a set_state that takes one argument; MuJoCo's takes qpos and qvel."""
    if not isinstance(layer, HasState):
        return False
    try:
        inspect.signature(layer.set_state).bind(None)
    except TypeError:
        return False
    return True


def _export_layer(layer: gym.Env[Any, Any]) -> State:
    if _speaks(layer):
        return {"own": copy.deepcopy(layer.get_state())}  # pyright: ignore[reportAttributeAccessIssue]  # _speaks looked
    fields = _WRAPPERS.get(type(layer), ()) or _BASES.get(_name(type(layer)), ())
    kept: State = {"fields": {path: pack(attrgetter(path)(layer)) for path in fields if _has(layer, path)}}
    if type(layer).__module__.startswith(_MUJOCO):
        env, mujoco = cast(Any, layer), importlib.import_module("mujoco")
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(mujoco.mj_stateSize(env.model, kind))
        mujoco.mj_getState(env.model, env.data, state, kind)
        derived = {name: np.array(getattr(env.data, name)) for name in _MUJOCO_DERIVED}
        kept["mujoco"] = {"state": state, "derived": derived}
    return kept


def _import_layer(layer: gym.Env[Any, Any], kept: State) -> None:
    if "own" in kept:
        layer.set_state(copy.deepcopy(kept["own"]))  # pyright: ignore[reportAttributeAccessIssue]  # it had one to export
        return
    for path, value in kept["fields"].items():
        _set(layer, path, unpack(value))
    if "mujoco" in kept:
        env, mujoco, state = cast(Any, layer), importlib.import_module("mujoco"), kept["mujoco"]
        mujoco.mj_setState(env.model, env.data, np.array(state["state"]), mujoco.mjtState.mjSTATE_INTEGRATION)
        for name, value in state["derived"].items():
            getattr(env.data, name)[:] = value
    if isinstance(layer, wrappers.PassiveEnvChecker):
        for flag in [name for name in vars(layer) if name.startswith("checked_")]:
            setattr(layer, flag, True)
    if isinstance(layer, wrappers.RecordEpisodeStatistics):
        layer.episode_start_time = time.perf_counter()


def pack(value: Any) -> Any:
    """Arrays as they are, the rest as JSON values that remember their type (a float32 scalar rounds otherwise)."""
    match value:
        case None | bool() | str():
            return value
        case np.ndarray():
            return value.copy()
        case np.generic():
            return {"scalar": value.item(), "dtype": str(value.dtype)}
        case int() | float():
            return value
        case tuple() | list() | deque():
            return {type(value).__name__: [pack(part) for part in value]}
        case dict():
            return {"dict": {key: pack(part) for key, part in value.items()}}
        case _:
            raise CheckpointIncompatible(
                f"a {type(value).__name__} cannot be kept; arrays, numbers and nests of them can"
            )


def unpack(value: Any) -> Any:
    match value:
        case np.ndarray():
            return value.copy()
        case {"scalar": number, "dtype": dtype}:
            return np.dtype(dtype).type(number)
        case {"tuple": parts}:
            return tuple(unpack(part) for part in parts)
        case {"list": parts}:
            return [unpack(part) for part in parts]
        case {"deque": parts}:
            return deque(unpack(part) for part in parts)
        case {"dict": parts}:
            return {key: unpack(part) for key, part in parts.items()}
        case _:
            return value


def _has(layer: Any, path: str) -> bool:
    try:
        attrgetter(path)(layer)
    except AttributeError:
        return False
    return True


def _set(layer: Any, path: str, value: Any) -> None:
    outer, _, name = path.rpartition(".")
    owner = attrgetter(outer)(layer) if outer else layer
    old = getattr(owner, name, None)
    if isinstance(old, deque):  # it has a length of its own
        old.clear()
        old.extend(value)
    else:
        setattr(owner, name, value)
