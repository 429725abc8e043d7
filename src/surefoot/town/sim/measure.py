"""What counts in a scenario, from what its towns counted: waiting, quarrels, punctuality, wages, rivalry, needs."""

from __future__ import annotations

import numpy as np

from surefoot.town.scenarios.check import MEASURES
from surefoot.town.sim.state import COUNT

SMALLER_IS_BETTER = frozenset(
    {"waiting", "unserved", "conflict_intensity", "conflicts", "rivalry_integral", "need_deficit"}
)


def measures(counts: np.ndarray, agents: int) -> dict[str, np.ndarray]:
    """{measure: [n]} of n finished episodes, whose counts are [n, COUNTS].

    `waiting`: an agent's ticks in a queue. `unserved`: those, and those with a need below the script's threshold that it
    does nothing about; who never goes where the queue is does not wait, but is not served either. `rivalry_integral`: the
    sum over ticks of an agent's strongest rivalry. `need_deficit`: the mean of 1 - need. `punctuality`: the share of
    scheduled ticks at work of those who came in time.
    """
    get = {name: counts[:, i] for name, i in COUNT.items()}
    ticks = np.maximum(get["agent_ticks"], 1.0)
    found = {
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
    return {name: found[name] for name in MEASURES}


def better(name: str, one: float, other: float) -> bool:
    """True if `one` is the better value of a measure."""
    return one < other if name in SMALLER_IS_BETTER else one > other
