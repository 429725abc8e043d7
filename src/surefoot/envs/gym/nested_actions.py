"""Dict and Tuple actions: a row of numbers here, nested as its author wrote it there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.data.spaces import ActionSpace, Box, Hybrid, MultiDiscrete
from surefoot.errors import SpaceError

Form = Callable[[np.ndarray], Any]
"""[…, K] rows to whatever the env takes: one row for one env, N rows for a vector env's batch."""


def is_nest(space: gym.Space[Any]) -> bool:
    """True for a Dict or Tuple of actions."""
    return isinstance(space, spaces.Dict | spaces.Tuple)


def nest_action(space: gym.Space[Any], name: str) -> ActionSpace:
    """All choices first, then all real numbers, each in the order of the nest; one kind alone is a plain space of it."""
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
                    f"the action space of {name} has {leaf} inside, which no policy here can act in; Discrete, "
                    "MultiDiscrete, MultiBinary and a Box of floats work"
                )
    if not nvec and not low:
        raise SpaceError(
            f"the action space of {name} is {space}, with nothing to decide inside; put a Discrete or Box in"
        )
    if not low:
        return MultiDiscrete(tuple(nvec))
    box = Box((len(low),), tuple(low), tuple(high))
    return Hybrid(tuple(nvec), box) if nvec else box


def former(space: gym.Space[Any]) -> Form | None:
    """From rows of `nest_action` to actions of `space`; None where there is nothing to nest."""
    if not is_nest(space):
        return None
    choices = sum(len(_options(leaf)) for leaf in _leaves(space) if not isinstance(leaf, spaces.Box))
    return lambda row: _build(space, row, _Cursor(0, choices))


def row_like(space: gym.Space[Any]) -> np.ndarray:
    """One action of an env as it is handed over: of the env's own shape and dtype, or a row for a nest."""
    if not is_nest(space):
        return np.empty(space.shape or (), space.dtype)
    width = sum(int(np.prod(leaf.shape or (1,))) for leaf in _leaves(space))
    whole = not any(isinstance(leaf, spaces.Box) for leaf in _leaves(space))
    return np.empty((width,), np.int64 if whole else np.float32)


class _Cursor:
    """Where the next choice and the next number are in a row."""

    def __init__(self, choice: int, number: int) -> None:
        self.choice, self.number = choice, number

    def take(self, *, numbers: bool, count: int) -> slice:
        begin = self.number if numbers else self.choice
        if numbers:
            self.number += count
        else:
            self.choice += count
        return slice(begin, begin + count)


def _build(space: gym.Space[Any], row: np.ndarray, at: _Cursor) -> Any:
    match space:
        case spaces.Dict():
            return {key: _build(part, row, at) for key, part in space.items()}
        case spaces.Tuple():
            return tuple(_build(part, row, at) for part in space.spaces)
        case _:
            shape = space.shape or ()
            columns = at.take(numbers=isinstance(space, spaces.Box), count=int(np.prod(shape)))
            value = row[..., columns].reshape((*row.shape[:-1], *shape)).astype(space.dtype)
            if isinstance(space, spaces.Box):
                return np.asarray(np.clip(value, space.low, space.high))  # a float64 bound is no float32
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
