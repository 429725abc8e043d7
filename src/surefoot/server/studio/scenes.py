"""Environments that the page shows: drawn from the first copies' observations or, for towns, as images."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.runtime.worlds import ScenarioNode
from surefoot.graph.schedule import Firing, Schedule
from surefoot.graph.spec.model import End
from surefoot.town.view.picture import picture

DRAWN = ("CartPole", "Pendulum", "Acrobot", "MountainCar")
# As many as fit beside each other in the page's panel.
COPIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvScene:
    """An environment and the node that steps it."""

    kind: str
    env_id: str
    env: str
    step: str

    def frame(self, engine: Interpreter) -> dict[str, Any] | None:
        """Return the state of the first copies as numbers or images; None before the first step."""
        observations = engine.machine.value(End(self.step, "observations"))
        if not observations:
            return None
        frame: dict[str, Any] = {"kind": self.kind, "env_id": self.env_id, "step": self.step, "tick": engine.ticks}
        node = engine.nodes[self.env]
        if isinstance(node, ScenarioNode):
            town, most = node.town, min(COPIES, node.town.towns)
            return frame | {"states": [], "pictures": [png(picture(town.layout, town.now, k)) for k in range(most)]}
        rows = next(iter(observations.values()))[:COPIES]
        return frame | {"states": [[round(float(x), 4) for x in row.ravel()[:8]] for row in rows]}


def scenes_of(engine: Interpreter) -> list[EnvScene]:
    """Return a scene for every step node whose environment can be shown."""
    scenes: list[EnvScene] = []
    for firing in engine.plan.firings:
        if firing.declared.name not in ("Step", "TownStep"):
            continue
        source = _env_source(engine.plan, firing.id)
        if source is None:
            continue
        env_id = env_of(source)
        kind = "Town" if source.declared.name == "Scenario" else next((name for name in DRAWN if name in env_id), None)
        if kind is not None:
            scenes.append(EnvScene(kind=kind, env_id=env_id, env=source.id, step=firing.id))
    return scenes


def env_of(firing: Firing) -> str:
    """Return the name of a source of experience in a record."""
    params = firing.params
    return f"town/{params['scenario']}" if "scenario" in params else str(params.get("env_id", firing.declared.name))


def _env_source(plan: Schedule, id: str) -> Firing | None:
    """Return the node at the start of a chain of `sim_handle` inputs."""
    firings = {each.id: each for each in plan.firings}
    for _ in range(len(firings)):
        firing = firings[id]
        if firing.declared.streams is not None:
            return firing
        source = next((each.source for each in firing.inputs if each.port.name == "sim_handle"), None)
        if source is None:
            return None
        id = source.node
    return None


def png(image: np.ndarray) -> str:
    """Return an image, [H, W, 3] uint8, as a data URL."""
    height, width, _ = image.shape
    # Every row starts with its filter type; 0 means unfiltered.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    parts = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    parts += chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()
