"""Digests of seeded town runs, so that no refactoring changes the simulation.

`python tests/golden/test_town_digits.py --rewrite` writes them again; the commit that does so says why they changed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.town.scenarios.scenario import load_scenario, parse_scenario, shipped
from surefoot.town.sim.town_loop import decider
from surefoot.town.sim.world import TownWorld

DIGITS = Path(__file__).with_name("town.json")
TICKS, TOWNS, SEED = 300, 2, 11
# Seven decimals: sums in another order (another BLAS, other vector instructions) change the sixteenth.
DECIMALS = 7
VARIANTS = {"script": "hybrid", "random": "compact", "idle": "full"}

# Everything that the shipped scenarios rarely reach: several days, absences, evictions, respawns, fixed outages.
HARSH = """
name: harsh
ticks: 130
ticks_per_day: 30
grid: [6, 5]
walls: ["......", "..#...", "..#...", "......", "......"]
decay: {hunger: 0.012, hygiene: 0.01, energy: 0.01}
objects:
  - {id: shower_1, type: shower, position: [0, 0]}
  - {id: fridge_1, type: fridge, position: [3, 0]}
  - {id: fridge_2, type: fridge, position: [5, 4]}
  - {id: stove_1, type: stove, position: [4, 2]}
  - {id: desk_1, type: desk, position: [1, 3]}
agents:
  - {id: ada, position: [1, 1], job: day, profile: socialite}
  - {id: bo, position: [1, 2], job: day, profile: industrious}
  - {id: cy, position: [4, 1], job: night, profile: stoic, wallet: 0.3}
  - {id: di, position: [4, 3], schedule: ["to:fridge_2", use_fridge, chat, wait]}
jobs:
  day: {start: 4, end: 12, location: desk_1, wage: 0.05}
  night: {start: 15, end: 28, location: desk_1}
affordances:
  shower: {duration: 4}
  fridge: {duration: 3}
  stove: {duration: 5}
meals: 3
queue: {cooldown: 3, ghost_step_after: 1, commit: false}
rivalry: {conflict: 0.3, decay: 0.01, avoid_threshold: 0.4, max_ties: 2, chafe: 0.02, begin: {ada-cy: 0.6}, chat_cooldown: 4}
employment: {grace: 1, absent_cutoff: 4, absence_slack: 2, max_absent_shifts: 2, daily_exits: 1}
perturbations:
  window: 40
  grace: 5
  events:
    - {kind: blackout, tick: 7, duration: 6}
    - {kind: outage, duration: 9}
    - {kind: price_spike, duration: 12, factor: 3.0}
lifecycle: {faint_at: 0.05, respawn_delay: 6}
rewards: {commute: 0.1, commute_ahead: 3, rivalry: 0.02}
spawn: {position: 2, needs: 0.1}
behavior: {job_arrival_buffer: 4}
"""

RUNS = ["harsh-idle", *(f"{name}-{behaviour}" for name in ("harsh", *shipped()) for behaviour in ("script", "random"))]


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, dict):
        for key in sorted(value):
            digest.update(key.encode())
            _feed(digest, value[key])
    elif value is not None:
        # + 0.0 turns -0.0 into 0.0.
        digest.update((np.round(np.asarray(value, np.float64), DECIMALS) + 0.0).tobytes())


def digits(run: str) -> dict[str, Any]:
    """Return digests of state, view and events, and what the run counted, in clear, to see where it differs."""
    name, _, behaviour = run.rpartition("-")
    scenario = parse_scenario(HARSH) if name == "harsh" else load_scenario(name)
    world = TownWorld(scenario, TOWNS, variant=VARIANTS[behaviour], central=behaviour == "idle")
    decide, view = decider(world, behaviour, SEED), world.reset(SEED)
    states, views, events = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
    for _ in range(TICKS):
        step = world.step(decide(world, view))
        view = step.view
        _feed(states, world.now.to_arrays())
        _feed(
            views,
            {**view.obs, "mask": view.action_mask, **{f"final {k}": x for k, x in (step.final_obs or {}).items()}},
        )
        _feed(events, {"0": step.reward, "1": step.terminated, "2": step.truncated, "3": step.valid})
        for town in range(TOWNS):
            for event in world.happened.of(town):
                events.update(f"{event.kind} {event.town} {event.actor} {event.other} {event.object}".encode())
                _feed(events, event.value)
    return {
        "states": states.hexdigest(),
        "views": views.hexdigest(),
        "events": events.hexdigest(),
        "counts": {name: round(value, DECIMALS) for name, value in world.take_counts().items()},
    }


@pytest.mark.parametrize("run", RUNS)
def test_a_seeded_town_is_the_same_as_before(run):
    expected = json.loads(DIGITS.read_text("utf-8"))[run]
    result = digits(run)
    assert result["counts"] == pytest.approx(expected["counts"], rel=1e-6, abs=1e-6)
    assert result == {**expected, "counts": result["counts"]}


def test_the_runs_reach_the_rare_events():
    expected = json.loads(DIGITS.read_text("utf-8"))
    for name in ("queue_conflict_events", "shared_meal_events", "shift_takeover_events", "late_help_events"):
        assert any(run["counts"][name] > 0 for run in expected.values()), name


if __name__ == "__main__":
    if sys.argv[1:] != ["--rewrite"]:
        sys.exit("usage: python tests/golden/test_town_digits.py --rewrite")
    DIGITS.write_text(json.dumps({run: digits(run) for run in RUNS}, indent=1) + "\n", "utf-8")
    print(f"wrote {DIGITS.name}; say in the commit why the digits changed")
