"""A small town to test the rules on, one tick at a time."""

import numpy as np
import pytest

from surefoot.town.scenarios.scenario import parse_scenario
from surefoot.town.sim.layout import make_layout
from surefoot.town.sim.observe import action_mask, neighbours
from surefoot.town.sim.state import COUNT, begin, make_randomness
from surefoot.town.sim.tick import tick, utilities_of

TOWN = """\
name: small
ticks: 40
ticks_per_day: 40
grid: [7, 3]
decay: {hunger: 0.01, hygiene: 0.0, energy: 0.0}
objects:
  - {id: shower_1, type: shower, position: [3, 1]}
agents:
  - {id: anna, position: [2, 1], wallet: 1.0, needs: {hygiene: 0.3}}
  - {id: ben, position: [4, 1], wallet: 1.0, needs: {hygiene: 0.3}}
  - {id: cara, position: [3, 2], wallet: 1.0, needs: {hygiene: 0.3}}
affordances:
  shower: {duration: 3}
queue: {cooldown: 5, ghost_step_after: 1}
rivalry: {conflict: 0.2, decay: 0.01, avoid_threshold: 0.9}
"""
WORK = """\
name: work
ticks: 40
ticks_per_day: 40
grid: [12, 3]
objects:
  - {id: counter, type: checkout, position: [1, 1]}
agents:
  - {id: dawn, position: [1, 1], job: shift, wallet: 1.0}
  - {id: erin, position: [8, 1], job: shift, wallet: 1.0}
jobs:
  shift: {start: 2, end: 20, wage: 0.1, lateness_penalty: 0.2, location: counter}
employment: {grace: 1, absent_cutoff: 8, absence_slack: 3, late_tick_penalty: 0.01, absence_penalty: 0.5}
"""


class Town:
    """One town to push about."""

    TOWN, WORK = TOWN, WORK

    def __init__(self, text: str = TOWN) -> None:
        self.layout = make_layout(parse_scenario(text))
        self.rng = make_randomness(0)
        self.state = begin(self.layout, 1, self.rng)

    def go(self, *actions: int):
        self.state, self.outcome = tick(self.layout, self.state, np.array([actions]), self.rng)
        return self.outcome

    def count(self, name: str) -> float:
        return float(self.state.counts[0, COUNT[name]])

    def mask(self) -> np.ndarray:
        utilities, near = utilities_of(self.state, self.layout), neighbours(self.state, self.layout)
        return action_mask(self.state, self.layout, utilities, near[0], near[1])[0]


@pytest.fixture
def small_town() -> type[Town]:
    """Return the class; calling it builds a town from YAML."""
    return Town
