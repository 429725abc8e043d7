"""Trust, familiarity and rivalry: each agent remembers a few others, the weakest tie gives way, all of them fade."""

from __future__ import annotations

import numpy as np

from surefoot.town.layout import Layout, first_of_each, numbers
from surefoot.town.state import State

HANDOVER = (0.05, 0.05, -0.05)
SHARED_MEAL = (0.10, 0.25, 0.0)
TOOK_SHIFT = (-0.10, 0.0, 0.30)
HELPED_WHEN_LATE = (0.20, 0.10, -0.10)
FAILED_CHAT = (0.0, -0.05, 0.05)
"""What a happening adds to trust, familiarity and rivalry."""

Deltas = tuple[np.ndarray | float, np.ndarray | float, np.ndarray | float]


def both_ways(state: State, town: np.ndarray, one: np.ndarray, other: np.ndarray, deltas: Deltas) -> None:
    """Change the ties between two, as each of them sees it; `state` changes."""
    n = len(town)
    if n == 0:
        return
    twice = [np.concatenate([x, x]) if isinstance(x, np.ndarray) else np.full(2 * n, x) for x in deltas]
    change(state, np.concatenate([town, town]), np.concatenate([one, other]), np.concatenate([other, one]), twice)


def change(state: State, town: np.ndarray, one: np.ndarray, other: np.ndarray, deltas: list[np.ndarray]) -> None:
    """Add `deltas` (each [n]) to the tie that `one` has with `other`; a new tie takes a free place, or the weakest's."""
    left = np.flatnonzero((one != other) & (other >= 0))
    agents = state.here.shape[1]
    while len(left):
        # Two changes for one agent in the same tick come one after the other.
        key = town[left] * agents + one[left]
        order = key.argsort(kind="stable")
        first = first_of_each(key[order])
        now = left[order[first]]
        _change_once(state, town[now], one[now], other[now], [x[now] for x in deltas])
        left = left[order[~first]]


def _change_once(state: State, town: np.ndarray, one: np.ndarray, other: np.ndarray, deltas: list[np.ndarray]) -> None:
    known = state.tie_with[town, one]
    same = known == other[:, None]
    strength = _strength(state.trust[town, one], state.familiarity[town, one], state.rivalry[town, one])
    new = ~same.any(axis=1)
    slot = np.where(new, np.where(known < 0, -1.0, strength).argmin(axis=1), same.argmax(axis=1))
    at = (town, one, slot)
    state.tie_with[at] = other
    for array, delta, low in zip(
        (state.trust, state.familiarity, state.rivalry), deltas, (-1.0, -1.0, 0.0), strict=True
    ):
        array[at] = np.minimum(np.maximum(np.where(new, 0.0, array[at]) + delta, low), 1.0)


def fade(state: State, layout: Layout) -> None:
    """One tick of forgetting; rivals near each other chafe instead. `state` changes."""
    rules = layout.scenario.rivalry
    tied = state.tie_with >= 0
    if not np.count_nonzero(tied):
        return
    np.subtract(state.rivalry, rules.decay, out=state.rivalry)
    if rules.chafe > 0.0:
        near = tied & (state.rivalry > 0.0) & (tie_distance(state, layout) <= rules.chafe_distance)
        state.rivalry[near] += rules.chafe + rules.decay
        np.minimum(state.rivalry, 1.0, out=state.rivalry)
    np.maximum(state.rivalry, 0.0, out=state.rivalry)
    weak = tied & (state.rivalry <= rules.eviction_threshold)
    if np.count_nonzero(weak):
        friendship = np.maximum(np.abs(state.trust), np.abs(state.familiarity))
        weak &= (friendship < rules.eviction_threshold) | (friendship == 0.0)
    if np.count_nonzero(weak):
        state.tie_with[weak] = -1
        state.trust[weak], state.familiarity[weak], state.rivalry[weak] = 0.0, 0.0, 0.0


def forget(state: State, who: np.ndarray) -> None:
    """Whoever is gone is forgotten by the others; `who` [B, A] bool."""
    town, gone = np.nonzero(who)
    for b, a in zip(town.tolist(), gone.tolist(), strict=True):
        was = state.tie_with[b] == a
        state.tie_with[b][was] = -1
        state.trust[b][was], state.familiarity[b][was], state.rivalry[b][was] = 0.0, 0.0, 0.0
    state.tie_with[who], state.rivalry[who] = -1, 0.0


def tie_distance(state: State, layout: Layout) -> np.ndarray:
    """[B, A, E] tiles (without walls) between an agent and those it has ties with; far for free places."""
    b = numbers(*state.here.shape)[0][:, :, None]
    other = np.maximum(state.tie_with, 0)
    y, x = np.divmod(state.cell, layout.width)
    apart = np.abs(x[:, :, None] - x[b, other]) + np.abs(y[:, :, None] - y[b, other])
    gone = (state.tie_with < 0) | ~state.here[b, other]
    return np.where(gone, 30_000, apart)


def rivalry_with(state: State, other: np.ndarray) -> np.ndarray:
    """[B, A] rivalry of each agent with `other` ([B, A], -1 for nobody)."""
    same = (state.tie_with == other[:, :, None]) & (other >= 0)[:, :, None]
    return np.where(same, state.rivalry, 0.0).max(axis=2)


def _strength(trust: np.ndarray, familiarity: np.ndarray, rivalry: np.ndarray) -> np.ndarray:
    return np.maximum(np.maximum(np.abs(trust), np.abs(familiarity)), rivalry)
