"""What Gymnasium's spaces, masks and infos are here: named arrays of our own, read without guessing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.data.spaces import ActionSpace, Box, Discrete, MultiDiscrete, ObservationSpace, choice_sizes
from surefoot.envs.api import Arrays
from surefoot.envs.gym.nested_actions import is_nest, nest_action, row_like
from surefoot.errors import AllActionsMasked, EnvError, SpaceError

MASK = "action_mask"
"""What an env calls the actions it allows, in its info or as a part of a Dict observation."""


@dataclass(frozen=True, slots=True)
class Part:
    """One named piece of an observation: how large it is here, and how Gymnasium's value becomes numbers."""

    key: str | None
    """Where a Dict observation has it; None if it is the whole observation."""
    shape: tuple[int, ...]
    """What Gymnasium's value looks like."""
    box: Box
    encode: Callable[[np.ndarray], np.ndarray] | None
    """[…, *shape] to […, *box.shape]; None if there is nothing to do but to copy."""


@dataclass(frozen=True, slots=True)
class ObservationReader:
    """Copies what Gymnasium shows into arrays of our own, so that a buffer it uses again is never shared."""

    parts: dict[str, Part]
    masked: bool
    """A Dict part called "action_mask" says what is allowed; it is not observed."""

    @property
    def space(self) -> ObservationSpace:
        return {name: part.box for name, part in self.parts.items()}

    def empty(self, n: int) -> Arrays:
        return {name: np.empty((n, *part.box.shape), part.box.dtype) for name, part in self.parts.items()}

    def write(self, out: Arrays, rows: int | slice, obs: Any) -> None:
        """Put one observation (`rows` an int) or a batch (a slice) into `out`, cast to its dtype on the way."""
        for name, part in self.parts.items():
            value = obs if part.key is None else obs[part.key]
            out[name][rows] = value if part.encode is None else part.encode(np.asarray(value))


def observation_reader(space: gym.Space[Any], name: str = "this env", *, masks: bool = False) -> ObservationReader:
    """How to read observations of `space`; with `masks` a Dict part called "action_mask" is left out of them."""
    if not isinstance(space, spaces.Dict):
        return ObservationReader({"obs": _part(None, space, name)}, False)
    masked = masks and MASK in space.spaces
    return ObservationReader({k: _part(k, s, name) for k, s in space.items() if not (masked and k == MASK)}, masked)


def observation_from_gym(space: gym.Space[Any], name: str = "this env") -> ObservationSpace:
    """Named boxes of float32, or of uint8 where Gymnasium's are.

    Box → {"obs": Box}. Discrete(n) → n floats, one-hot; MultiDiscrete → its one-hots side by side; MultiBinary → flat
    zeros and ones. A Dict of those keeps its names.
    """
    return observation_reader(space, name).space


def _part(key: str | None, space: gym.Space[Any], name: str) -> Part:
    match space:
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
            where = "the observation" if key is None else f"the observation part {key!r}"
            raise SpaceError(
                f"{where} of {name} is {space}, which no policy here can see; Box, Discrete, MultiDiscrete, "
                "MultiBinary and a flat Dict of those work (gymnasium.wrappers.FlattenObservation lays a nest flat)"
            )


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
    """Our action space. MultiBinary becomes MultiDiscrete of twos; several axes are laid flat, but for a Box.

    A Dict or Tuple becomes one row: a Hybrid where it has both choices and real numbers.
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
                f"the action space of {name} is {space}, which no policy here can act in; Discrete, MultiDiscrete, "
                "MultiBinary, a Box of floats, and Dicts and Tuples of those work"
            )


def action_writer(space: gym.Space[Any], *, shared: bool = False) -> Callable[[np.ndarray], np.ndarray]:
    """A function from our actions [N, …] to fresh Gymnasium ones [N, *space.shape], which an env may scribble on.

    With `shared`, where envs are handed the numbers one by one, an array of choices is given as it is. Of a Dict or
    Tuple they are still rows; `former` nests them where they are taken.
    """
    if is_nest(space):
        return lambda action: np.array(action, row_like(space).dtype).reshape(len(action), -1)
    shape, dtype = space.shape or (), space.dtype
    if shared and isinstance(space, spaces.Discrete) and not space.start:
        return lambda action: action.astype(dtype, copy=False)
    if isinstance(space, spaces.Discrete) and space.start:
        low, high = int(space.start), int(space.start + space.n)

        def named(action: np.ndarray) -> np.ndarray:
            if action.min() < low or action.max() >= high:
                raise EnvError(
                    f"action {action.tolist()} is not within {low}…{high - 1}, this world's names for its choices"
                )
            return np.array(action, dtype)

        return named
    start = space.start if isinstance(space, spaces.MultiDiscrete) and space.start.any() else None
    # A policy's float32 may lie beyond a bound that only a float64 can tell.
    double = space if isinstance(space, spaces.Box) and dtype == np.float64 else None

    def write(action: np.ndarray) -> np.ndarray:
        fresh = np.array(action, dtype)
        if fresh.shape[1:] != shape:
            fresh = fresh.reshape(len(action), *shape)
        if double is not None:
            np.clip(fresh, double.low, double.high, out=fresh)
        return fresh if start is None else fresh + start

    return write


def choices(action: ActionSpace) -> int:
    """How many entries an action mask has; 0 for a continuous action, which has none."""
    return sum(choice_sizes(action))


def read_mask(value: Any, size: int, where: str) -> np.ndarray:
    """[A] bool from one env's mask: an array, a list, or a tuple with one array for each head."""
    heads: list[Any] = list(value) if isinstance(value, tuple | list) else [value]
    flat = np.concatenate([np.ravel(head) for head in heads]).astype(np.bool_)
    if flat.size != size:
        raise EnvError(f"the action mask of {where} has {flat.size} entries; its action space has {size} choices")
    return flat


def refuse_empty(mask: np.ndarray, name: str, first: int = 0) -> None:
    """Raise if a row of `mask` [N, A] allows nothing; its row 0 is stream `first`."""
    empty = ~mask.any(axis=1)
    if empty.any():
        i = int(np.flatnonzero(empty)[0])
        raise AllActionsMasked(f"stream {first + i} of {name} allows no action at all; a mask needs at least one True")


def column(info: Any, key: str, n: int) -> tuple[Any, np.ndarray] | None:
    """What n streams say about `key`: their values, and [n] bool where there is one. None if none says anything.

    Gymnasium 1.x keeps {key: values, _key: present}; older vector envs, arrays of one dict (or None) for each stream.
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
    """{"success": [N]} where an ended stream says `is_success`, NaN elsewhere; {} if none does."""
    if "is_success" not in info and "final_info" not in info:
        return {}
    n = len(ended)
    # Where a stream was reset in the same step, `info` is the new episode's and `final_info` the old one's.
    found = column(info.get("final_info"), "is_success", n) or column(info, "is_success", n)
    if found is None:
        return {}
    values, present = found
    out = np.full(n, np.nan)
    for i in np.flatnonzero(ended & present):
        out[i] = float(values[i])
    return {"success": out}
