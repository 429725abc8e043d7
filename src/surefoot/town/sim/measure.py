"""Measures of finished episodes, computed from a town's counters."""

from __future__ import annotations

import numpy as np

from surefoot.town.scenarios.check import MEASURES
from surefoot.town.sim.state import COUNT

SMALLER_IS_BETTER = frozenset(
    {"waiting", "unserved", "conflict_intensity", "conflicts", "rivalry_integral", "need_deficit"}
)


def measures(counts: np.ndarray, agents: int) -> dict[str, np.ndarray]:
    """Return {measure: [n]} of n finished episodes with counters [n, COUNTS].

    `waiting`: ticks in a queue per agent. `unserved`: those, and ticks with a need below the script's threshold without
    using an object, so that agents that avoid the queue do not look better. `rivalry_integral`: the sum over ticks of an
    agent's strongest rivalry. `need_deficit`: the mean of 1 - need. `punctuality`: the share of scheduled ticks at work
    after a punctual start.
    """
    get = {name: counts[:, i] for name, i in COUNT.items()}
    ticks = np.maximum(get["agent_ticks"], 1.0)
    values = {
        "return": get["return_sum"] / agents,
        "waiting": get["waiting_ticks"] / agents,
        "unserved": get["unserved_ticks"] / agents,
        "conflict_intensity": get["queue_conflict_intensity_sum"],
        "conflicts": get["queue_conflict_events"],
        "punctuality": get["punctual_ticks"] / np.maximum(get["shift_ticks"], 1.0),
        "wages": get["wages_sum"] / agents,
        "rivalry_integral": get["rivalry_max_sum"] / agents,
        "need_deficit": get["need_deficit_sum"] / ticks,
        "uses": get["use_events"] / agents,
    }
    return {name: values[name] for name in MEASURES}


def better(name: str, one: float, other: float) -> bool:
    """Return whether `one` is the better value of a measure."""
    return one < other if name in SMALLER_IS_BETTER else one > other
