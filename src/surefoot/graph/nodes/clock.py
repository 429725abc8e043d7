"""How long a graph runs, and where the random numbers of its nodes come from."""

from __future__ import annotations

import math

from surefoot.data.seeds import seed_for


def ticks_for(total_steps: int, streams: int, *horizons: int) -> int:
    """Ticks in which `streams` copies take at least `total_steps` steps, rounded up to whole rollouts."""
    whole = math.lcm(*horizons) if horizons else 1
    ticks = -(-total_steps // max(1, streams))
    return -(-ticks // whole) * whole


def node_seed(id: str, seed: int) -> int:
    """Where a node is not the only one of its kind: a seed of its own, whoever fires first (31 bits)."""
    return seed_for(f"node:{id}", seed) >> 32
