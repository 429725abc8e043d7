"""Reads the statistics that Stable-Baselines3's VecNormalize saved: from its pickle, without executing it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.data.kinds import as_mapping
from surefoot.errors import CheckpointCorrupt, CheckpointIncompatible, CheckpointMissing
from surefoot.learn.checkpoint.pickle_reader import OBJECTS, Name, read_pickle

# Modules whose globals may occur; they are read as strings like all others.
_MODULES = ("numpy", "gymnasium.spaces", "gym.spaces", "stable_baselines3.common", "collections")
_NUMBERS = {f"{kind}{size}" for kind in "fiu" for size in (1, 2, 4, 8)} - {"f1"}


@dataclass(frozen=True, slots=True)
class Statistics:
    """VecNormalize's statistics of the observations."""

    mean: np.ndarray
    var: np.ndarray
    count: float
    epsilon: float
    clip: float


@dataclass(slots=True)
class _Object:
    """Stands for an object: its class or function, the arguments, and its state."""

    kind: Name
    arguments: tuple[Any, ...]
    state: Any = None


class _ObjectHandler:
    """Allows globals of numpy, of spaces and of SB3, and represents every object by an `_Object`."""

    def name(self, module: str, name: str) -> Name:
        if not any(module == known or module.startswith(f"{known}.") for known in _MODULES):
            raise CheckpointCorrupt(f"it names {module}.{name}, which no statistics need; nothing of it was run")
        return Name(module, name)

    def call(self, function: Any, arguments: Any) -> Any:
        if not isinstance(function, Name) or not isinstance(arguments, tuple):
            raise CheckpointCorrupt(f"it would call {function!r}; nothing of it was run")
        return _Object(function, arguments)

    def set_state(self, target: Any, state: Any) -> None:
        if not isinstance(target, _Object):
            raise CheckpointCorrupt("its pickle sets the state of a value that is not an object")
        target.state = state

    def persistent(self, reference: Any) -> Any:
        raise CheckpointCorrupt("it refers to an object outside of the file")


def read_vecnormalize(path: Path) -> Statistics | None:
    """Return what `VecNormalize.save` wrote; None if it does not normalise observations (norm_obs=False)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CheckpointMissing(f"there is no file {path}") from None
    except OSError as why:
        raise CheckpointCorrupt(f"{path} cannot be read: {why.strerror}") from why
    content = read_pickle(data, _ObjectHandler(), path.name, more=OBJECTS)
    fields = as_mapping(content.state) if isinstance(content, _Object) and content.kind.name == "VecNormalize" else None
    if fields is None:
        raise CheckpointIncompatible(f"{path} holds no VecNormalize; pass the file that its save method wrote")
    if fields.get("norm_obs") is False:
        return None
    rms = fields.get("obs_rms")
    if not isinstance(rms, _Object):
        raise CheckpointIncompatible(f"{path}: statistics of a Dict observation are not supported")
    try:
        moments = as_mapping(rms.state) or {}
        mean, var = _array(moments["mean"]), _array(moments["var"])
        numbers = [float(_array(x)) for x in (moments["count"], fields["epsilon"], fields["clip_obs"])]
        finite = np.isfinite(mean).all() and np.isfinite(var).all() and np.isfinite(numbers).all()
        if mean.shape != var.shape or not finite or (var < 0).any() or min(numbers) < 0 or numbers[2] == 0:
            raise ValueError(f"mean {list(mean.shape)}, var {list(var.shape)}, count, epsilon and clip {numbers}")
        return Statistics(mean, var, *numbers)
    except (KeyError, IndexError, TypeError, ValueError) as why:
        raise CheckpointCorrupt(f"{path}: its statistics are damaged ({type(why).__name__}: {why})") from why


def _array(value: Any) -> np.ndarray:
    """Return the numbers that numpy's pickled form of an array or a scalar describes, in float64."""
    if isinstance(value, int | float):
        return np.array(float(value))
    if not isinstance(value, _Object) or not value.kind.module.startswith("numpy"):
        raise TypeError(f"{value!r} is not an array")
    # numpy has pickled arrays by _reconstruct (all versions) and _frombuffer (protocol 5).
    match value.kind.name:
        case "_reconstruct":
            _, shape, dtype, fortran, raw = value.state
        case "_frombuffer":
            (raw, dtype, shape, order), fortran = value.arguments, value.arguments[3] == "F"
        case "scalar":
            (dtype, raw), shape, fortran = value.arguments, (), False
        case name:
            raise TypeError(f"{name} does not create an array")
    kind = dtype.arguments[0]
    if dtype.kind.name != "dtype" or kind not in _NUMBERS:
        raise TypeError(f"an array of {kind!r} has no numbers")
    order = ">" if dtype.state is not None and dtype.state[1] == ">" else "<"
    flat = np.frombuffer(raw, np.dtype(order + kind))
    return flat.reshape(shape, order="F" if fortran else "C").astype(np.float64)
