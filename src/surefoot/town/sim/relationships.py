"""Trust, familiarity and rivalry: each agent remembers a few others, the weakest tie gives way, all of them fade."""

from __future__ import annotations

import numpy as np

from surefoot.town.sim.layout import Layout, first_of_each
from surefoot.town.sim.state import State

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
    twice = np.empty((2 * n, 3))
    for column, delta in enumerate(deltas):
        twice[:n, column] = delta
    twice[n:] = twice[:n]
    change(state, np.concatenate([town, town]), np.concatenate([one, other]), np.concatenate([other, one]), twice)


def change(state: State, town: np.ndarray, one: np.ndarray, other: np.ndarray, deltas: np.ndarray) -> None:
    """Add `deltas` [n, 3] to the tie that `one` has with `other`; a new tie takes a free place, or the weakest's."""
    key = town * state.present.shape[1] + one
    key[(one == other) | (other < 0)] = -1
    order = key.argsort(kind="stable")
    order = order[int(np.count_nonzero(key < 0)) :]
    while len(order):
        # Two changes for one agent in the same tick come one after the other.
        first = first_of_each(key[order])
        now = order[first]
        _change_once(state, town[now], one[now], other[now], deltas[now])
        if len(now) == len(order):
            return
        order = order[~first]


def _change_once(state: State, town: np.ndarray, one: np.ndarray, other: np.ndarray, deltas: np.ndarray) -> None:
    agents, places = state.tie_with.shape[1:]
    row = town * agents + one
    known = state.tie_with.reshape(-1, places).take(row, axis=0)
    same = known == other[:, None]
    slot, ties = same.argmax(axis=1), state.ties.reshape(-1, 3)
    new = np.flatnonzero(~same.any(axis=1))
    if len(new):
        strength = np.abs(state.ties.reshape(-1, places, 3).take(row[new], axis=0)).max(axis=2)
        strength[known[new] < 0] = -1.0
        slot[new] = strength.argmin(axis=1)
        at = row[new] * places + slot[new]
        state.tie_with.reshape(-1)[at] = other[new]
        ties[at] = 0.0
    at = row * places + slot
    ties[at] = np.minimum(np.maximum(ties.take(at, axis=0) + deltas, _LEAST), 1.0)


_LEAST = np.array([-1.0, -1.0, 0.0])


def fade(state: State, layout: Layout) -> None:
    """One tick of forgetting; rivals near each other chafe instead. `state` changes."""
    rules = layout.scenario.rivalry
    tied = state.tie_with >= 0
    if not np.count_nonzero(tied):
        return
    rivalry = state.rivalry - rules.decay
    if rules.chafe > 0.0:
        near = tied & (rivalry > 0.0) & (tie_distance(state, layout) <= rules.chafe_distance)
        rivalry[near] = np.minimum(rivalry[near] + rules.chafe + rules.decay, 1.0)
    state.rivalry[...] = rivalry = np.maximum(rivalry, 0.0)
    weak = tied & (rivalry <= rules.eviction_threshold)
    if np.count_nonzero(weak):
        friendship = np.maximum(np.abs(state.trust), np.abs(state.familiarity))
        weak &= (friendship < rules.eviction_threshold) | (friendship == 0.0)
    if np.count_nonzero(weak):
        state.tie_with[weak], state.ties[weak] = -1, 0.0


def forget(state: State, who: np.ndarray) -> None:
    """Whoever is gone is forgotten by the others; `who` [B, A] bool."""
    town, gone = np.nonzero(who)
    for b, a in zip(town.tolist(), gone.tolist(), strict=True):
        was = state.tie_with[b] == a
        state.tie_with[b][was], state.ties[b][was] = -1, 0.0
    state.tie_with[who], state.ties[who] = -1, 0.0


def tie_distance(state: State, layout: Layout) -> np.ndarray:
    """[B, A, E] tiles (without walls) between an agent and those it has ties with; far for free places."""
    b = np.arange(state.towns)[:, None, None]
    other = np.maximum(state.tie_with, 0)
    y, x = np.divmod(state.cell, layout.width)
    apart = np.abs(x[:, :, None] - x[b, other]) + np.abs(y[:, :, None] - y[b, other])
    gone = (state.tie_with < 0) | ~state.present[b, other]
    return np.where(gone, 30_000, apart)


def rivalry_with(state: State, other: np.ndarray) -> np.ndarray:
    """[B, A] rivalry of each agent with `other` ([B, A], -1 for nobody)."""
    same = (state.tie_with == other[:, :, None]) & (other >= 0)[:, :, None]
    return np.where(same, state.rivalry, 0.0).max(axis=2)


def strongest(values: np.ndarray) -> np.ndarray:
    """[B, A] the largest of [B, A, E]; place by place, which is faster than a reduction where there are few places."""
    found = values[:, :, 0]
    for place in range(1, values.shape[2]):
        found = np.maximum(found, values[:, :, place])
    return found


def added(values: np.ndarray) -> np.ndarray:
    """[B, A] the sum of [B, A, E], likewise."""
    found = values[:, :, 0]
    for place in range(1, values.shape[2]):
        found = found + values[:, :, place]
    return found
