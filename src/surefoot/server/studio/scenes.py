"""Environments that the page shows: drawn from observations, for towns as maps, else as the environment renders itself."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.envs.api import World
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.runtime.worlds import ScenarioNode
from surefoot.graph.schedule import Firing, Schedule
from surefoot.graph.spec.model import End
from surefoot.town.view.picture import picture

# Environments that the page draws from their observations, by their whole name: InvertedPendulum has others than Pendulum.
DRAWN = re.compile(r"(?:surefoot/)?(CartPole|Pendulum|Acrobot|MountainCar)(?:Continuous)?-v\d+")
# As many as fit beside each other in the page's panel.
COPIES = 4
# Seconds between two pictures that an environment renders: one takes 10 ms and more, which the run waits for.
RENDER_GAP = 0.2
# Pixels of the longer side of such a picture in the page.
LONGEST = 320


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvScene:
    """An environment and the node that steps it."""

    kind: str
    env_id: str
    env: str
    step: str

    @property
    def gap(self) -> float:
        """Seconds between two frames, at least."""
        return RENDER_GAP if self.kind == "Rendered" else 0.0

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
        if self.kind == "Rendered":
            return frame | rendered(node.world)
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
        kind = "Town" if source.declared.name == "Scenario" else kind_of(env_id)
        scenes.append(EnvScene(kind=kind, env_id=env_id, env=source.id, step=firing.id))
    return scenes


def kind_of(env_id: str) -> str:
    """Return how the page draws an environment; `Rendered` if it shows a picture of it."""
    known = DRAWN.fullmatch(env_id)
    return "Rendered" if known is None else known[1]


def rendered(world: World) -> dict[str, Any]:
    """Return a picture of the first copy as the environment renders it, or why there is none."""
    first = getattr(world, "envs", [None])[0]
    if isinstance(first, gym.Env) and first.render_mode is None and "rgb_array" in first.metadata["render_modes"]:
        # Environments of a graph are made without a render mode, which would cost time in every run; they read it here.
        first.unwrapped.render_mode = "rgb_array"
    try:
        image = world.render()
    except Exception as error:
        # An environment may raise anything, for instance without a display or without pygame.
        return {"states": [], "pictures": [], "why": f"{world.name} cannot be rendered: {error}"}
    if image is None:
        return {"states": [], "pictures": [], "why": f"{world.name} renders no picture"}
    stride = max(1, -(-max(image.shape[:2]) // LONGEST))
    return {"states": [], "pictures": [png(np.ascontiguousarray(image[::stride, ::stride]))]}


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
