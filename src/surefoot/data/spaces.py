"""Observation and action spaces as plain values that can be written as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.errors import SpaceError


@dataclass(frozen=True, slots=True)
class Box:
    """Real numbers (or bytes) of a fixed shape, with bounds; an observation part or a continuous action."""

    shape: tuple[int, ...]
    low: tuple[float, ...] | float = -math.inf
    high: tuple[float, ...] | float = math.inf
    dtype: str = "float32"

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds, each of `shape`, float32."""
        low = np.broadcast_to(np.asarray(self.low, np.float32), (self.size,)).reshape(self.shape)
        high = np.broadcast_to(np.asarray(self.high, np.float32), (self.size,)).reshape(self.shape)
        return low, high

    @property
    def bounded(self) -> bool:
        """True if every component has two finite bounds."""
        low, high = self.bounds()
        return bool(np.isfinite(low).all() and np.isfinite(high).all())


@dataclass(frozen=True, slots=True)
class Discrete:
    """One of `n` choices; the environment numbers them start, start + 1, …"""

    n: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class MultiDiscrete:
    """Several choices: the k-th is one of nvec[k]."""

    nvec: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Choices and real numbers in one action: a row with choice k in column k, followed by the flattened box."""

    nvec: tuple[int, ...]
    box: Box


ActionSpace = Box | Discrete | MultiDiscrete | Hybrid
ObservationSpace = dict[str, Box]
Space = Box | Discrete | MultiDiscrete | Hybrid


def choice_sizes(action: ActionSpace) -> tuple[int, ...]:
    """Return the number of options of each choice of an action; () for a Box."""
    match action:
        case Box():
            return ()
        case Discrete():
            return (action.n,)
        case MultiDiscrete() | Hybrid():
            return action.nvec


def space_to_json(space: Space) -> dict[str, Any]:
    """Return a JSON object for `space_from_json`; infinities become strings."""
    match space:
        case Box():
            return {
                "kind": "box",
                "shape": list(space.shape),
                "low": _bound_to_json(space.low),
                "high": _bound_to_json(space.high),
                "dtype": space.dtype,
            }
        case Discrete():
            return {"kind": "discrete", "n": space.n, "start": space.start}
        case MultiDiscrete():
            return {"kind": "multi_discrete", "nvec": list(space.nvec)}
        case Hybrid():
            return {"kind": "hybrid", "nvec": list(space.nvec), "box": space_to_json(space.box)}


def space_from_json(spec: dict[str, Any]) -> Space:
    """Return the space that `space_to_json` described."""
    match spec.get("kind"):
        case "box":
            return Box(
                tuple(spec["shape"]), _bound_from_json(spec["low"]), _bound_from_json(spec["high"]), spec["dtype"]
            )
        case "discrete":
            return Discrete(int(spec["n"]), int(spec["start"]))
        case "multi_discrete":
            return MultiDiscrete(tuple(int(n) for n in spec["nvec"]))
        case "hybrid":
            box = space_from_json(spec["box"])
            if not isinstance(box, Box):
                raise SpaceError(f"the real part of a hybrid action is no box but {box}")
            return Hybrid(tuple(int(n) for n in spec["nvec"]), box)
        case kind:
            raise SpaceError(f"a space of kind {kind!r} is unknown; known are box, discrete, multi_discrete and hybrid")


def _bound_to_json(bound: tuple[float, ...] | float) -> Any:
    if isinstance(bound, tuple):
        return [_bound_to_json(part) for part in bound]
    return bound if math.isfinite(bound) else str(bound)


def _bound_from_json(bound: Any) -> tuple[float, ...] | float:
    if isinstance(bound, list):
        return tuple(float(part) for part in bound)
    return float(bound)
