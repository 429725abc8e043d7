"""Dict and Tuple actions: one row of numbers in the engine, nested for the env."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.data.spaces import ActionSpace, Box, Hybrid, MultiDiscrete
from surefoot.errors import SpaceError

Form = Callable[[np.ndarray], Any]
"""Maps […, K] rows to the env's actions: one row for one env, N rows for a vector env's batch."""


def is_nest(space: gym.Space[Any]) -> bool:
    """Return whether `space` is a Dict or Tuple."""
    return isinstance(space, spaces.Dict | spaces.Tuple)


def nest_action(space: gym.Space[Any], name: str) -> ActionSpace:
    """Return the flat space: all choices first, then all real numbers, each in the order of the nest."""
    nvec: list[int] = []
    low: list[float] = []
    high: list[float] = []
    for leaf in _leaves(space):
        match leaf:
            case spaces.Discrete() | spaces.MultiDiscrete() | spaces.MultiBinary():
                nvec += _options(leaf)
            case spaces.Box() if np.issubdtype(leaf.dtype, np.floating):
                low += [float(x) for x in leaf.low.ravel()]
                high += [float(x) for x in leaf.high.ravel()]
            case _:
                raise SpaceError(
                    f"the action space of {name} has {leaf} inside, which is not supported; Discrete, "
                    "MultiDiscrete, MultiBinary and a Box of floats work"
                )
    if not nvec and not low:
        raise SpaceError(f"the action space of {name} is {space}, with nothing to decide inside; add a Discrete or Box")
    if not low:
        return MultiDiscrete(tuple(nvec))
    box = Box((len(low),), tuple(low), tuple(high))
    return Hybrid(tuple(nvec), box) if nvec else box


def former(space: gym.Space[Any]) -> Form | None:
    """Return a function from rows of `nest_action` to actions of `space`; None for a space that is not nested."""
    if not is_nest(space):
        return None
    choices = sum(len(_options(leaf)) for leaf in _leaves(space) if not isinstance(leaf, spaces.Box))
    return lambda row: _build(space, row, [0, choices])


def row_like(space: gym.Space[Any]) -> np.ndarray:
    """Return an array with the shape and dtype of one written action: the env's own, or a row for a nest."""
    if not is_nest(space):
        return np.empty(space.shape or (), space.dtype)
    width = sum(int(np.prod(leaf.shape or (1,))) for leaf in _leaves(space))
    integers = not any(isinstance(leaf, spaces.Box) for leaf in _leaves(space))
    return np.empty((width,), np.int64 if integers else np.float32)


def _build(space: gym.Space[Any], row: np.ndarray, offsets: list[int]) -> Any:
    """Return a nested action; `offsets` are the positions of the next choice and the next real number in `row`."""
    match space:
        case spaces.Dict():
            return {key: _build(part, row, offsets) for key, part in space.items()}
        case spaces.Tuple():
            return tuple(_build(part, row, offsets) for part in space.spaces)
        case _:
            shape = space.shape or ()
            is_number = isinstance(space, spaces.Box)
            begin = offsets[is_number]
            offsets[is_number] = end = begin + int(np.prod(shape))
            value = row[..., begin:end].reshape((*row.shape[:-1], *shape)).astype(space.dtype)
            if isinstance(space, spaces.Box):
                # A float32 action may be rounded to beyond a float64 bound.
                return np.asarray(np.clip(value, space.low, space.high))
            start = getattr(space, "start", 0)
            return value + np.asarray(start, space.dtype) if np.any(start) else value[()]


def _leaves(space: gym.Space[Any]) -> Iterator[gym.Space[Any]]:
    match space:
        case spaces.Dict():
            for part in space.values():
                yield from _leaves(part)
        case spaces.Tuple():
            for part in space.spaces:
                yield from _leaves(part)
        case _:
            yield space


def _options(leaf: gym.Space[Any]) -> list[int]:
    match leaf:
        case spaces.Discrete():
            return [int(leaf.n)]
        case spaces.MultiDiscrete():
            return [int(n) for n in leaf.nvec.ravel()]
        case _:
            return [2] * int(np.prod(leaf.shape or (1,)))
