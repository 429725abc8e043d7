"""Save and restore the state of a single Gymnasium env, to the last digit.

An env is a chain of wrappers around a base env. The state of each layer is saved with its methods `get_state()` and
`set_state(state)` if it has them, otherwise by its attributes if the class is known. `why_inexact` names the first layer
that is neither. The base's random generator is always saved, so `get_state()` need not include it.
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
"""State attributes of base envs besides the random generator; by exact class, since a subclass may have more."""

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
    wrappers.MaxAndSkipObservation: ("_obs_buffer",),  # an end in the middle of a skip leaves older frames in it
    wrappers.NormalizeObservation: ("obs_rms.mean", "obs_rms.var", "obs_rms.count", "_update_running_mean"),
    wrappers.NormalizeReward: (
        "return_rms.mean",
        "return_rms.var",
        "return_rms.count",
        "discounted_reward",
        "_update_running_mean",
    ),
    wrappers.StickyAction: ("last_action", "is_sticky_actions", "num_repeats", "repeats_taken"),
    # Stateless.
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
"""MuJoCo computes these *before* it moves the joints, so Ant and Humanoid observe those of the previous step."""


def why_inexact(env: gym.Env[Any, Any]) -> str | None:
    """Return None if `export_state` is complete, otherwise a sentence about the first layer that cannot be saved."""
    for layer in _layers(env):
        if _has_state(layer):
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
                f"the {what} {kind.__name__} does not export its state; add get_state() and set_state(state) to the {what} "
                "for an exact resume"
            )
    return None


def export_state(env: gym.Env[Any, Any]) -> State:
    """Return a nested dict of arrays and JSON values; complete if `why_inexact` returns None."""
    base = env.unwrapped
    layers = [{"layer": type(layer).__name__, **_export_layer(layer)} for layer in _layers(env)]
    return {"layers": layers, "random": rng_to_json(base._np_random), "seed": base._np_random_seed}  # pyright: ignore[reportPrivateUsage]  # `np_random` would create one


def import_state(env: gym.Env[Any, Any], state: State) -> None:
    """Restore the state into an env with the same layers; it need not have been reset."""
    layers = list(_layers(env))
    saved, names = [entry["layer"] for entry in state["layers"]], [type(layer).__name__ for layer in layers]
    if saved != names:
        raise CheckpointIncompatible(
            f"the state is of {' < '.join(saved)}, but this env is {' < '.join(names)}; use the same wrappers"
        )
    for layer, entry in zip(layers, state["layers"], strict=True):
        _import_layer(layer, entry)
    base = env.unwrapped
    if state["random"] is not None:
        base.np_random = rng_from_json(state["random"])
    base._np_random_seed = state["seed"]  # pyright: ignore[reportPrivateUsage]  # the setter above writes -1


def rng_to_json(rng: np.random.Generator | None) -> Any:
    """Return a generator's state as JSON values; 128-bit numbers as text, because many JSON readers round them."""
    return None if rng is None else _to_json(rng.bit_generator.state)


def rng_from_json(state: Any) -> np.random.Generator:
    """Return a generator with a state from `rng_to_json`."""
    known = {
        kind.__name__: kind for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox)
    }
    kind = known.get(state["bit_generator"])
    if kind is None:
        raise CheckpointIncompatible(
            f"the random generator is {state['bit_generator']!r}; supported are {', '.join(known)}"
        )
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
    """Yield the layers from the outermost wrapper to the base."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _has_state(layer: gym.Env[Any, Any]) -> bool:
    """Return whether a layer has get_state() and a set_state of one argument; MuJoCo's set_state takes qpos and qvel."""
    if not isinstance(layer, HasState):
        return False
    try:
        inspect.signature(layer.set_state).bind(None)
    except TypeError:
        return False
    return True


def _export_layer(layer: gym.Env[Any, Any]) -> State:
    if _has_state(layer):
        return {"own": copy.deepcopy(layer.get_state())}  # pyright: ignore[reportAttributeAccessIssue]  # _has_state checked
    fields = _WRAPPERS.get(type(layer), ()) or _BASES.get(_name(type(layer)), ())
    entry: State = {"fields": {path: pack(attrgetter(path)(layer)) for path in fields if _has(layer, path)}}
    if type(layer).__module__.startswith(_MUJOCO):
        env, mujoco = cast(Any, layer), importlib.import_module("mujoco")
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(mujoco.mj_stateSize(env.model, kind))
        mujoco.mj_getState(env.model, env.data, state, kind)
        derived = {name: np.array(getattr(env.data, name)) for name in _MUJOCO_DERIVED}
        entry["mujoco"] = {"state": state, "derived": derived}
    return entry


def _import_layer(layer: gym.Env[Any, Any], entry: State) -> None:
    if "own" in entry:
        layer.set_state(copy.deepcopy(entry["own"]))  # pyright: ignore[reportAttributeAccessIssue]  # it has the method, since it exported a state
        return
    for path, value in entry["fields"].items():
        _set(layer, path, unpack(value))
    if "mujoco" in entry:
        env, mujoco, state = cast(Any, layer), importlib.import_module("mujoco"), entry["mujoco"]
        mujoco.mj_setState(env.model, env.data, np.array(state["state"]), mujoco.mjtState.mjSTATE_INTEGRATION)
        for name, value in state["derived"].items():
            getattr(env.data, name)[:] = value
    if isinstance(layer, wrappers.PassiveEnvChecker):
        for flag in [name for name in vars(layer) if name.startswith("checked_")]:
            setattr(layer, flag, True)
    if isinstance(layer, wrappers.RecordEpisodeStatistics):
        layer.episode_start_time = time.perf_counter()


def pack(value: Any) -> Any:
    """Return copies of arrays, and JSON values with their type for the rest (a float32 scalar rounds differently)."""
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
                f"a {type(value).__name__} cannot be saved; arrays, numbers, and lists and dicts of them can"
            )


def unpack(value: Any) -> Any:
    """Return the value that `pack` was called with."""
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
    if isinstance(old, deque):  # keeps its maxlen
        old.clear()
        old.extend(value)
    else:
        setattr(owner, name, value)
