"""Worlds that a page can draw from what they show: which they are, and what their first copies show now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.schedule import Schedule
from surefoot.graph.spec.model import End

DRAWN = ("CartPole", "Pendulum", "Acrobot", "MountainCar")
COPIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An environment and the node that steps it."""

    kind: str
    env_id: str
    step: str

    def frame(self, engine: Interpreter) -> dict[str, Any] | None:
        """The states of the first copies, as plain numbers; None before the first step."""
        seen = engine.machine.value(End(self.step, "observations"))
        if not seen:
            return None
        rows = next(iter(seen.values()))[:COPIES]
        return {
            "kind": self.kind,
            "env_id": self.env_id,
            "step": self.step,
            "tick": engine.ticks,
            "states": [[round(float(x), 4) for x in row.ravel()[:8]] for row in rows],
        }


def scenes_of(engine: Interpreter) -> list[Scene]:
    """Of every step whose environment is one that can be drawn."""
    found: list[Scene] = []
    for firing in engine.plan.firings:
        if firing.declared.name == "Step" and (env_id := _world(engine.plan, firing.id)):
            kind = next((name for name in DRAWN if name in env_id), None)
            if kind is not None:
                found.append(Scene(kind=kind, env_id=env_id, step=firing.id))
    return found


def _world(plan: Schedule, id: str) -> str:
    """The env_id at the beginning of a chain of handles."""
    firings = {each.id: each for each in plan.firings}
    for _ in range(len(firings)):
        firing = firings[id]
        if firing.declared.name == "Environment":
            return str(firing.params["env_id"])
        source = next((each.source for each in firing.inputs if each.port.name == "sim_handle"), None)
        if source is None:
            return ""
        id = source.node
    return ""
