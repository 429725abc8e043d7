"""Towns in C against the numpy definition: random scenarios, random actions, every array of the state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surefoot import native
from surefoot.town.scenarios.scenario import Scenario
from surefoot.town.sim.engine import KernelEngine, NumpyEngine
from surefoot.town.sim.layout import make_layout
from surefoot.town.sim.script import random_actions
from surefoot.town.sim.state import begin, make_randomness
from surefoot.town.sim.tick import spawn_due_agents

pytestmark = pytest.mark.skipif(native.kernel is None, reason="the kernel is not built")
TYPES = ("shower", "fridge", "stove", "bed", "cafe", "desk")


def random_scenario(seed: int) -> Scenario:
    """Return a small, crowded town with many rules switched on, so that rare events happen often."""
    rng = np.random.default_rng(seed)
    width, height, day = int(rng.integers(3, 8)), int(rng.integers(3, 7)), int(rng.integers(10, 40))
    cells = [(int(x), int(y)) for y in range(height) for x in range(width)]
    places = [cells[i] for i in rng.permutation(len(cells))]
    kinds = [TYPES[i] for i in rng.integers(len(TYPES), size=rng.integers(1, 5))]
    objects = [{"id": f"o{i}", "type": k, "position": list(places[i])} for i, k in enumerate(kinds)]
    agents = [
        {
            "id": f"a{i}",
            "position": list(cells[int(rng.integers(len(cells)))]),
            "job": str(rng.choice(["early", "night"])) if rng.random() < 0.7 else None,
            "profile": str(rng.choice(["balanced", "socialite", "industrious", "stoic"])),
            "wallet": float(rng.random()),
        }
        for i in range(int(rng.integers(1, 8)))
    ]
    wall = places[len(kinds) :][:1]
    rows = ["".join("#" if [(x, y)] == wall else "." for x in range(width)) for y in range(height)]
    clear = all(tuple(a["position"]) not in wall for a in agents) and width > 4 and height > 4
    values: dict[str, Any] = {
        "name": "random",
        "ticks": 3 * day,
        "ticks_per_day": day,
        "grid": [width, height],
        "walls": rows if clear else [],
        "objects": objects,
        "agents": agents,
        "decay": {"hunger": 0.02, "hygiene": 0.01, "energy": 0.01},
        "affordances": {kind: {"duration": int(rng.integers(1, 6))} for kind in set(kinds)},
        "jobs": {
            "early": {"start": 1, "end": day // 2, "location": "o0", "wage": 0.1},
            "night": {"start": day - 4, "end": 3, "location": objects[-1]["id"]},
        },
        "meals": int(rng.integers(0, 4)),
        "queue": {"cooldown": 2, "ghost_step_after": int(rng.integers(1, 3)), "commit": bool(rng.random() < 0.5)},
        "rivalry": {"conflict": 0.3, "decay": 0.01, "avoid_threshold": float(rng.choice([0.0, 0.4, 0.8])), "chafe": 0.02,
                    "max_ties": int(rng.integers(1, 4)), "chat_cooldown": 2},
        "employment": {"grace": 1, "absent_cutoff": 3, "absence_slack": 1, "max_absent_shifts": 2, "daily_exits": 1},
        "perturbations": {"window": 15, "grace": 2, "events": [{"kind": k, "duration": 5} for k in
                                                               ("price_spike", "blackout", "outage")]},
        "rewards": {"commute_ahead": 3, "rivalry": 0.02, "social": bool(rng.random() < 0.8)},
        "lifecycle": {"faint_at": 0.05, "respawn_delay": int(rng.integers(0, 4))},
    }  # fmt: skip
    return Scenario.from_json(values)


@pytest.mark.parametrize("seed", range(12))
def test_the_kernel_and_numpy_go_the_same_way(seed: int) -> None:
    layout = make_layout(random_scenario(seed))
    kernel, plain, rng = KernelEngine(layout), NumpyEngine(layout), np.random.default_rng(seed)
    one, two = make_randomness(seed), make_randomness(seed)
    a, b = begin(layout, 3, one), begin(layout, 3, two)
    for _ in range(80):
        (features, mask), (wanted, wanted_mask) = kernel.view(a), plain.view(b)
        np.testing.assert_array_equal(mask, wanted_mask)
        np.testing.assert_allclose(features, wanted, rtol=0, atol=1e-6)
        # Every fifth action may be forbidden: it does nothing, but the engines must agree on that.
        action = random_actions(mask, rng) if rng.random() < 0.8 else rng.integers(layout.actions, size=mask.shape[:2])
        (a, got), (b, expected) = kernel.tick(a, action, one), plain.tick(b, action, two)
        for name in ("acted", "terminated", "avoid"):
            np.testing.assert_array_equal(getattr(got, name), getattr(expected, name), name)
        for name in ("reward", "parts", "rivalry"):
            np.testing.assert_allclose(getattr(got, name), getattr(expected, name), rtol=0, atol=1e-9, err_msg=name)
        for town in range(3):
            shown = [(e.kind, e.actor, e.other, e.object, round(e.value, 9)) for e in got.happened.of(town)]
            assert shown == [
                (e.kind, e.actor, e.other, e.object, round(e.value, 9)) for e in expected.happened.of(town)
            ]
        a, b = spawn_due_agents(layout, a, one), spawn_due_agents(layout, b, two)
        arrays, others = a.to_arrays(), b.to_arrays()
        for name, x in arrays.items():
            np.testing.assert_allclose(x, others[name], rtol=0, atol=1e-9, err_msg=name)


def test_a_state_that_points_outside_of_the_town_is_refused() -> None:
    layout = make_layout(random_scenario(1))
    engine, rng = KernelEngine(layout), make_randomness(1)
    for name, value in (
        ("cell", len(layout.floor)),
        ("using", layout.objects),
        ("tie_with", -2),
        ("shift", 9),
        ("tick", -1),
    ):
        state = begin(layout, 2, rng)
        getattr(state, name).reshape(-1)[-1] = value
        with pytest.raises(ValueError, match=f"{name} of the town's state is out of range"):
            engine.view(state)
    with pytest.raises(ValueError, match="an action is 99"):
        engine.tick(begin(layout, 2, rng), np.full((2, layout.agents), 99), rng)
