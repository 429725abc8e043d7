"""Throughput of walkers and one learner, from a handful of measured costs: no fitting to what it is to predict.

What one process costs is measured (`scale.py`): the policy asked once for all streams, a step of one stream, learning from a
step, handing a piece over, and by how much that slows down when no core is idle. What W walkers give follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

GIGABIT = 1.25e8
"""Bytes a second of an ordinary network."""
CORES = 8
"""Of a machine that is not here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    """What it costs the learner's process to be given pieces, and what passes between the two while neither works."""

    piece: float
    step: float
    travel: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds, all of them; per step of one stream unless told."""

    ask: float
    """Of a walker, once for all its streams: the policy's call has a price however few they are."""
    walk: float
    learn: float
    behind: float
    """To learn from a step that the policy before made: more, as it is found out how much it still counts for."""
    jitter: float
    """By which share of itself a piece's time differs from one to the next: the latest of many is waited for."""
    crowd_walk: float
    crowd_learn: float
    """How many times as long walking and learning take while a walker keeps another core busy."""
    bytes: float


def piece(cost: Cost, steps: int, streams: float) -> float:
    """Seconds a walker takes for its share of a rollout."""
    return steps * (cost.ask + cost.walk * streams)


def late(cost: Cost, walkers: int) -> float:
    """How many times the mean the slowest of so many pieces takes, by the normal distribution (Blom's formula)."""
    return 1.0 + cost.jitter * NormalDist().inv_cdf((walkers - 0.375) / (walkers + 0.25))


def update(
    cost: Cost,
    handing: Handing,
    *,
    steps: int,
    streams: int,
    walkers: int,
    cores: float,
    overlap: bool,
) -> float:
    """Seconds from one update to the next, walkers and learner on the cores of one machine.

    In turn, the walkers' time and the learner's add up. Overlapped, they share the cores evenly until one side has done its
    part, and the other goes on with what is left of its own.
    """
    walking = piece(cost, steps, streams / walkers) * late(cost, walkers)
    taking = steps * streams * handing.step + walkers * handing.piece
    crowded = cost.crowd_walk if walkers >= cores else 1.0
    slower = crowded * max(1.0, walkers / cores)
    if not overlap:
        return walking * slower + handing.travel + taking + steps * streams * cost.learn
    learning = steps * streams * cost.behind + taking
    queue, busy = max(1.0, (walkers + 1) / cores), walkers + 1 >= cores
    walks, learns = (queue * (crowd if busy else 1.0) for crowd in (cost.crowd_walk, cost.crowd_learn))
    together = min(walking * walks, learning * learns)
    rest = max((walking - together / walks) * slower, learning - together / learns)
    return together + rest + (handing.travel if walking * walks > learning * learns else 0.0)


def machines(cost: Cost, handing: Handing, *, steps: int, streams: int, weights: int, count: int) -> float:
    """Seconds from one update to the next: `count` machines of walkers and one for the learner, a gigabit into it and out.

    Every core of a walker's machine walks `streams` streams, so the batch grows with the machines. Each machine is sent the
    weights once. Learner and walkers overlap.
    """
    walkers = count * CORES
    batch = steps * streams * walkers
    walking = piece(cost, steps, streams) * late(cost, walkers) * cost.crowd_walk + handing.travel
    learning = batch * (cost.behind + handing.step) + walkers * handing.piece
    return max(walking, learning, batch * cost.bytes / GIGABIT, count * weights / GIGABIT)


def full(cost: Cost, handing: Handing, *, steps: int, streams: int) -> float:
    """How many walkers of `streams` streams keep one learner busy."""
    walking = piece(cost, steps, streams) * cost.crowd_walk + handing.travel
    return max(1.0, walking / (steps * streams * (cost.behind + handing.step) + handing.piece))


def line(points: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Offset and slope through (x, y), errors weighed by 1 / y; neither below zero."""
    x, y = np.array(list(points)).T
    slope, offset = np.polyfit(x, y, 1, w=1.0 / y)
    return (max(0.0, float(offset)), float(slope)) if slope > 0 else (float(np.average(y, weights=1.0 / y**2)), 0.0)
