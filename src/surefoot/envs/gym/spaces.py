"""Convert Gymnasium's spaces, observations, actions, masks and infos to and from the engine's arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.data.spaces import ActionSpace, Box, Discrete, MultiDiscrete, ObservationSpace, choice_sizes
from surefoot.envs.api import Arrays
from surefoot.envs.gym.nested_actions import is_nest, nest_action, row_like
from surefoot.errors import AllActionsMasked, EnvError, SpaceError

MASK = "action_mask"
"""Key of the allowed actions in an info or in a Dict observation."""


@dataclass(frozen=True, slots=True)
class Part:
    """One named part of an observation, and how it is encoded."""

    key: str | None
    """Its key in a Dict observation; None if the observation is not a Dict."""
    shape: tuple[int, ...]
    """Shape of Gymnasium's value."""
    box: Box
    encode: Callable[[np.ndarray], np.ndarray] | None
    """Maps […, *shape] to […, *box.shape]; None if the value is only copied."""


@dataclass(frozen=True, slots=True)
class ObservationReader:
    """Copies Gymnasium's observations into new arrays, so that a buffer that an env reuses is never shared."""

    parts: dict[str, Part]
    masked: bool
    """The Dict part "action_mask" holds the allowed actions; it is not part of the observation."""

    @property
    def space(self) -> ObservationSpace:
        return {name: part.box for name, part in self.parts.items()}

    @property
    def plain(self) -> bool:
        """Whether the observation is one array that is only copied."""
        return all(part.key is None and part.encode is None for part in self.parts.values())

    @property
    def first(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and dtype of the first part."""
        box = next(iter(self.parts.values())).box
        return box.shape, np.dtype(box.dtype)

    def empty(self, n: int) -> Arrays:
        return {name: np.empty((n, *part.box.shape), part.box.dtype) for name, part in self.parts.items()}

    def write(self, out: Arrays, rows: int | slice, obs: Any) -> None:
        """Write one observation (`rows` an int) or a batch (a slice) into `out`, cast to its dtype."""
        for name, part in self.parts.items():
            value = obs if part.key is None else obs[part.key]
            out[name][rows] = value if part.encode is None else part.encode(np.asarray(value))


def observation_reader(space: gym.Space[Any], name: str = "this env", *, masks: bool = False) -> ObservationReader:
    """Return a reader of observations of `space`; with `masks`, a Dict part "action_mask" is not observed."""
    if not isinstance(space, spaces.Dict):
        return ObservationReader({"obs": _part(None, space, name)}, False)
    masked = masks and MASK in space.spaces
    return ObservationReader({k: _part(k, s, name) for k, s in space.items() if not (masked and k == MASK)}, masked)


def observation_from_gym(space: gym.Space[Any], name: str = "this env") -> ObservationSpace:
    """Return named boxes of float32, or of uint8 where Gymnasium's are.

    Box → {"obs": Box}. Discrete(n) → n floats, one-hot; MultiDiscrete → its one-hots side by side; MultiBinary → flat
    zeros and ones. A Dict of those keeps its names.
    """
    return observation_reader(space, name).space


def _part(key: str | None, space: gym.Space[Any], name: str) -> Part:
    where = "the observation" if key is None else f"the observation part {key!r}"
    match space:
        case spaces.Box() if 0 in space.shape:
            raise SpaceError(f"{where} of {name} has no numbers ({space}); leave it out, or observe a constant")
        case spaces.Box():
            dtype = "uint8" if space.dtype == np.uint8 else "float32"
            box = Box(space.shape or (1,), _bound(space.low), _bound(space.high), dtype)
            return Part(key, space.shape, box, None if space.shape else lambda value: value[..., None])
        case spaces.Discrete():
            return _one_hot(key, space, np.array([space.n]), np.array([space.start]))
        case spaces.MultiDiscrete():
            return _one_hot(key, space, space.nvec.ravel(), space.start.ravel())
        case spaces.MultiBinary():
            depth = len(space.shape)
            box = Box((int(np.prod(space.shape)),), 0.0, 1.0)
            return Part(key, space.shape, box, lambda value: value.reshape(*value.shape[: value.ndim - depth], -1))
        case _:
            what = f"{where} of {name} is {space}, which is not supported"
            known = "Box, Discrete, MultiDiscrete, MultiBinary and a flat Dict of those work"
            if key is not None and not isinstance(space, spaces.Dict | spaces.Tuple):
                raise SpaceError(f"{what}; {known} (gymnasium.wrappers.FilterObservation leaves {key!r} out)")
            raise SpaceError(f"{what}; {known} (gymnasium.wrappers.FlattenObservation flattens nested ones)")


def _one_hot(key: str | None, space: gym.Space[Any], nvec: np.ndarray, start: np.ndarray) -> Part:
    shape = space.shape or ()
    codes = np.concatenate([np.arange(s, s + n) for n, s in zip(nvec, start, strict=True)])

    def encode(value: np.ndarray) -> np.ndarray:
        flat = value.reshape(*value.shape[: value.ndim - len(shape)], -1)
        return np.repeat(flat, nvec, axis=-1) == codes

    return Part(key, shape, Box((len(codes),), 0.0, 1.0), encode)


def _bound(bound: np.ndarray) -> tuple[float, ...] | float:
    flat = bound.ravel()
    if flat.size and (flat == flat[0]).all():
        return float(flat[0])
    return tuple(float(b) for b in flat)


def action_from_gym(space: gym.Space[Any], name: str = "this env") -> ActionSpace:
    """Return the engine's action space. MultiBinary becomes MultiDiscrete of twos; all but a Box are flattened.

    A Dict or Tuple becomes one row: a Hybrid if it has both choices and real numbers.
    """
    match space:
        case spaces.Dict() | spaces.Tuple():
            return nest_action(space, name)
        case spaces.Discrete():
            return Discrete(int(space.n), int(space.start))
        case spaces.MultiDiscrete():
            return MultiDiscrete(tuple(int(n) for n in space.nvec.ravel()))
        case spaces.MultiBinary():
            return MultiDiscrete((2,) * int(np.prod(space.shape)))
        case spaces.Box() if np.issubdtype(space.dtype, np.floating):
            return Box(space.shape or (1,), _bound(space.low), _bound(space.high))
        case _:
            raise SpaceError(
                f"the action space of {name} is {space}, which is not supported; Discrete, MultiDiscrete, "
                "MultiBinary, a Box of floats, and Dicts and Tuples of those work"
            )


def action_writer(space: gym.Space[Any], *, shared: bool = False) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from the engine's actions [N, …] to new Gymnasium ones [N, *space.shape], which envs may modify.

    With `shared`, for envs that get the numbers one by one, an array of choices is not copied. Actions of a Dict or Tuple
    stay rows, which `former` nests.
    """
    if is_nest(space):
        return lambda action: np.array(action, row_like(space).dtype).reshape(len(action), -1)
    shape, dtype = space.shape or (), space.dtype
    if shared and isinstance(space, spaces.Discrete) and not space.start:
        return lambda action: action.astype(dtype, copy=False)
    if isinstance(space, spaces.Discrete) and space.start:
        low, high = int(space.start), int(space.start + space.n)

        def checked(action: np.ndarray) -> np.ndarray:
            if action.min() < low or action.max() >= high:
                raise EnvError(f"action {action.tolist()} is not within {low}…{high - 1}, the choices of its space")
            return np.array(action, dtype)

        return checked
    start = space.start if isinstance(space, spaces.MultiDiscrete) and space.start.any() else None
    # A float32 action may be rounded to beyond a float64 bound.
    double = space if isinstance(space, spaces.Box) and dtype == np.float64 else None

    def write(action: np.ndarray) -> np.ndarray:
        result = np.array(action, dtype)
        if result.shape[1:] != shape:
            result = result.reshape(len(action), *shape)
        if double is not None:
            np.clip(result, double.low, double.high, out=result)
        return result if start is None else result + start

    return write


def choices(action: ActionSpace) -> int:
    """Return the number of entries of an action mask; 0 for a continuous action, which has none."""
    return sum(choice_sizes(action))


def read_mask(value: Any, size: int, where: str) -> np.ndarray:
    """Return one env's mask as [A] bool; it may be an array, a list, or a tuple with one array per head."""
    heads: list[Any] = list(value) if isinstance(value, tuple | list) else [value]
    flat = np.concatenate([np.ravel(head) for head in heads]).astype(np.bool_)
    if flat.size != size:
        raise EnvError(f"the action mask of {where} has {flat.size} entries; its action space has {size} choices")
    return flat


def refuse_empty(mask: np.ndarray, name: str, first: int = 0) -> None:
    """Raise `AllActionsMasked` if a row of `mask` [N, A] is all False; its row 0 is stream `first`."""
    empty = ~mask.any(axis=1)
    if empty.any():
        i = int(np.flatnonzero(empty)[0])
        raise AllActionsMasked(f"stream {first + i} of {name} allows no action at all; a mask needs at least one True")


def missing_mask(who: str) -> EnvError:
    """Return the error for an env that returned an action mask at its reset but not now."""
    return EnvError(
        f"{who} gave an {MASK} at its reset but gives none now; put one into every info (all True where everything is "
        "allowed)"
    )


@runtime_checkable
class HasMasks(Protocol):
    """An env with sb3-contrib's method for the allowed actions."""

    def action_masks(self) -> Any: ...


def masker(env: gym.Env[Any, Any]) -> HasMasks | None:
    """Return the outermost layer of an env that has `action_masks()`."""
    while True:
        if isinstance(env, HasMasks):
            return env
        if not isinstance(env, gym.Wrapper):
            return None
        env = env.env


def column(info: Any, key: str, n: int) -> tuple[Any, np.ndarray] | None:
    """Return the values of `key` of n streams and where they are present, [n] bool; None if they are nowhere.

    Gymnasium 1.x has {key: values, _key: present}; older vector envs have an array of one dict (or None) per stream.
    """
    if isinstance(info, dict):
        if key not in info:
            return None
        return info[key], np.asarray(info.get(f"_{key}", np.ones(n, np.bool_)), np.bool_)
    if info is None:
        return None
    each: list[dict[str, Any]] = [entry or {} for entry in info]
    present = np.array([key in entry for entry in each])
    return ([entry.get(key) for entry in each], present) if present.any() else None


def success(info: Any, ended: np.ndarray) -> Arrays:
    """Return {"success": [N]}, NaN where no ended stream reports `is_success`; {} if none does."""
    if "is_success" not in info and "final_info" not in info:
        return {}
    n = len(ended)
    # Where a stream was reset in the same step, `info` is the new episode's and `final_info` the old one's.
    reported = column(info.get("final_info"), "is_success", n) or column(info, "is_success", n)
    if reported is None:
        return {}
    values, present = reported
    out = np.full(n, np.nan)
    for i in np.flatnonzero(ended & present):
        out[i] = float(values[i])
    return {"success": out}
