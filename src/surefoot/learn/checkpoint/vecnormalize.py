"""Statistics that Stable-Baselines3's VecNormalize saved: a pickle, of which only numbers are read and nothing is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.data.kinds import as_mapping
from surefoot.errors import CheckpointCorrupt, CheckpointIncompatible, CheckpointMissing
from surefoot.learn.checkpoint.pickle_reader import OBJECTS, Name, walk

_ROOT = "VecNormalize"
_MODULES = ("numpy", "gymnasium.spaces", "gym.spaces", "stable_baselines3.common", "collections")
"""Whose names may be met. They are words all the same."""
_NUMBERS = {f"{kind}{size}" for kind in "fiu" for size in (1, 2, 4, 8)} - {"f1"}


@dataclass(frozen=True, slots=True)
class Statistics:
    """What VecNormalize knows of the observations."""

    mean: np.ndarray
    var: np.ndarray
    count: float
    epsilon: float
    clip: float


@dataclass(slots=True)
class _Thing:
    """What stands for an object: what it would be made of, and its state."""

    kind: Name
    arguments: tuple[Any, ...]
    state: Any = None


class _Words:
    """Names of numpy, of spaces and of SB3; whatever is made of them is a `_Thing`."""

    def name(self, module: str, name: str) -> Name:
        if not any(module == known or module.startswith(f"{known}.") for known in _MODULES):
            raise CheckpointCorrupt(f"it names {module}.{name}, which no statistics need; nothing of it was run")
        return Name(module, name)

    def made(self, function: Any, arguments: Any) -> Any:
        if not isinstance(function, Name) or not isinstance(arguments, tuple):
            raise CheckpointCorrupt(f"it would call {function!r}; nothing of it was run")
        return _Thing(function, arguments)

    def stated(self, thing: Any, state: Any) -> None:
        if not isinstance(thing, _Thing):
            raise CheckpointCorrupt("its description sets the state of something that is no object")
        thing.state = state

    def referred(self, said: Any) -> Any:
        raise CheckpointCorrupt("it refers to something outside of the file")


def read_vecnormalize(path: Path) -> Statistics | None:
    """What `VecNormalize.save` wrote; None if it was told not to normalise observations (norm_obs=False)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CheckpointMissing(f"there is no file {path}") from None
    except OSError as why:
        raise CheckpointCorrupt(f"{path} cannot be read: {why.strerror}") from why
    found = walk(data, _Words(), path.name, more=OBJECTS)
    if not isinstance(found, _Thing) or found.kind.name != _ROOT or as_mapping(found.state) is None:
        raise CheckpointIncompatible(f"{path} holds no VecNormalize; give the file that its save wrote")
    said = as_mapping(found.state) or {}
    if said.get("norm_obs") is False:
        return None
    moments = said.get("obs_rms")
    if not isinstance(moments, _Thing):
        raise CheckpointIncompatible(f"{path}: statistics of several parts (a Dict observation) are not read")
    try:
        return _statistics(as_mapping(moments.state) or {}, said)
    except (KeyError, IndexError, TypeError, ValueError) as why:
        raise CheckpointCorrupt(f"{path}: its statistics make no sense ({type(why).__name__}: {why})") from why


def _statistics(moments: dict[Any, Any], said: dict[Any, Any]) -> Statistics:
    mean, var = _array(moments["mean"]), _array(moments["var"])
    numbers = [float(_array(x)) for x in (moments["count"], said["epsilon"], said["clip_obs"])]
    whole = np.isfinite(mean).all() and np.isfinite(var).all() and np.isfinite(numbers).all()
    if mean.shape != var.shape or not whole or (var < 0).any() or min(numbers) < 0 or numbers[2] == 0:
        raise ValueError(f"mean {list(mean.shape)}, var {list(var.shape)}, count, epsilon and clip {numbers}")
    return Statistics(mean, var, *numbers)


def _array(told: Any) -> np.ndarray:
    """Numbers, by numpy's own description of an array or of a single one."""
    if isinstance(told, int | float):
        return np.array(float(told))
    if not isinstance(told, _Thing) or not told.kind.module.startswith("numpy"):
        raise TypeError(f"{told!r} is no array")
    match told.kind.name:
        case "_reconstruct":
            _, shape, dtype, fortran, raw = told.state
        case "_frombuffer":
            (raw, dtype, shape, order), fortran = told.arguments, told.arguments[3] == "F"
        case "scalar":
            (dtype, raw), shape, fortran = told.arguments, (), False
        case name:
            raise TypeError(f"{name} makes no array")
    kind = dtype.arguments[0]
    if dtype.kind.name != "dtype" or kind not in _NUMBERS:
        raise TypeError(f"an array of {kind!r} has no numbers")
    order = ">" if dtype.state is not None and dtype.state[1] == ">" else "<"
    flat = np.frombuffer(raw, np.dtype(order + kind))
    return flat.reshape(shape, order="F" if fortran else "C").astype(np.float64)
