"""Trust, familiarity and rivalry: agents remember a few others, the weakest is replaced, and rivalry decays."""

from __future__ import annotations

import numpy as np

from surefoot.town.sim.layout import FAR, Layout, first_of_each
from surefoot.town.sim.state import State

# Changes of trust, familiarity and rivalry per event; the original town's numbers (docs/explain/origins.md).
HANDOVER = (0.05, 0.05, -0.05)
SHARED_MEAL = (0.10, 0.25, 0.0)
TOOK_SHIFT = (-0.10, 0.0, 0.30)
HELPED_WHEN_LATE = (0.20, 0.10, -0.10)
FAILED_CHAT = (0.0, -0.05, 0.05)

Deltas = tuple[np.ndarray | float, np.ndarray | float, np.ndarray | float]


def both_ways(state: State, town: np.ndarray, one: np.ndarray, other: np.ndarray, deltas: Deltas) -> None:
    """Change the relationship of two agents on both sides; `state` changes."""
    n = len(town)
    if n == 0:
        return
    twice = np.empty((2 * n, 3))
    for column, delta in enumerate(deltas):
        twice[:n, column] = delta
    twice[n:] = twice[:n]
    change(state, np.concatenate([town, town]), np.concatenate([one, other]), np.concatenate([other, one]), twice)


def change(state: State, town: np.ndarray, one: np.ndarray, other: np.ndarray, deltas: np.ndarray) -> None:
    """Add `deltas` [n, 3] to the relationship of `one` with `other`; a new one takes a free slot or the weakest."""
    key = town * state.present.shape[1] + one
    key[(one == other) | (other < 0)] = -1
    order = key.argsort(kind="stable")
    order = order[int(np.count_nonzero(key < 0)) :]
    while len(order):
        # Several changes of one agent are applied one after the other: each may replace a slot.
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
        index = row[new] * places + slot[new]
        state.tie_with.reshape(-1)[index] = other[new]
        ties[index] = 0.0
    index = row * places + slot
    ties[index] = np.minimum(np.maximum(ties.take(index, axis=0) + deltas, _LEAST), 1.0)


_LEAST = np.array([-1.0, -1.0, 0.0])


def decay_relations(state: State, layout: Layout) -> None:
    """Decay rivalry by a tick, increase it for rivals near each other, and forget weak ties. `state` changes."""
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
    """Remove the relationships of agents that left, on both sides; `who` is [B, A] bool."""
    for b, a in zip(*(index.tolist() for index in np.nonzero(who)), strict=True):
        was = state.tie_with[b] == a
        state.tie_with[b][was], state.ties[b][was] = -1, 0.0
    state.tie_with[who], state.ties[who] = -1, 0.0


def tie_distance(state: State, layout: Layout) -> np.ndarray:
    """Return the distance in tiles without walls to the other agent of each slot, [B, A, E]; FAR for free slots."""
    b = np.arange(state.towns)[:, None, None]
    other = np.maximum(state.tie_with, 0)
    y, x = np.divmod(state.cell, layout.width)
    apart = np.abs(x[:, :, None] - x[b, other]) + np.abs(y[:, :, None] - y[b, other])
    return np.where((state.tie_with < 0) | ~state.present[b, other], FAR, apart)


def rivalry_with(state: State, other: np.ndarray) -> np.ndarray:
    """Return the rivalry of each agent with `other` ([B, A], -1 for none), [B, A]."""
    same = (state.tie_with == other[:, :, None]) & (other >= 0)[:, :, None]
    return np.where(same, state.rivalry, 0.0).max(axis=2)


def strongest(values: np.ndarray) -> np.ndarray:
    """Return the maximum over the last axis; slot by slot, which is faster than a reduction for few slots."""
    result = values[:, :, 0].copy()  # with one slot a view would change with the state
    for slot in range(1, values.shape[2]):
        result = np.maximum(result, values[:, :, slot])
    return result


def sum_over_ties(values: np.ndarray) -> np.ndarray:
    """Return the sum over the last axis, likewise."""
    result = values[:, :, 0]
    for slot in range(1, values.shape[2]):
        result = result + values[:, :, slot]
    return result
