"""Environments as the page shows them."""

import base64
import io
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.templates import template
from surefoot.server.studio.scenes import kind_of, scenes_of


def test_a_town_is_shown_as_pictures(tmp_path) -> None:
    graph = template("town")
    graph.remove("print")
    graph.nodes["env"].params["towns"] = 2
    with Interpreter(graph, into=tmp_path) as engine:
        (scene,) = scenes_of(engine)
        assert scene.frame(engine) is None
        engine.tick()
        told = scene.frame(engine)
    assert told is not None
    assert told["env_id"] == "town/queue_conflict"
    assert len(told["pictures"]) == 2
    with Image.open(io.BytesIO(base64.b64decode(told["pictures"][0].partition(",")[2]))) as seen:
        assert seen.size == (168, 168)
        assert len(seen.convert("RGB").getcolors(1 << 16) or []) > 3


@pytest.mark.parametrize(
    ("env_id", "kind"),
    [
        ("Pendulum-v1", "Pendulum"),
        ("surefoot/CartPoleContinuous-v0", "CartPole"),
        ("MountainCarContinuous-v0", "MountainCar"),
        # Of the names of others a part means nothing: this one's observations are no angle.
        ("InvertedPendulum-v5", "Rendered"),
        ("MyCartPole-v0", "Rendered"),
    ],
)
def test_only_known_environments_are_drawn_from_their_observations(env_id: str, kind: str) -> None:
    assert kind_of(env_id) == kind


class Boxes(gym.Env):
    """An environment that nobody here can draw; it renders a red picture, or fails."""

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 30}
    observation_space = gym.spaces.Box(-1, 1, (3,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode: str | None = None, broken: bool = False) -> None:
        self.render_mode, self.broken = render_mode, broken

    def reset(self, *, seed=None, options=None):
        return np.zeros(3, np.float32), {}

    def step(self, action):
        return np.zeros(3, np.float32), 0.0, False, False, {}

    def render(self):
        if self.broken:
            raise RuntimeError("no display")
        return np.full((700, 400, 3), (200, 0, 0), np.uint8)


@pytest.mark.parametrize("broken", [False, True])
def test_any_environment_that_renders_is_shown(broken: bool, tmp_path) -> None:
    gym.register("Boxes-v0", Boxes, kwargs={"broken": broken}, max_episode_steps=20)
    try:
        graph = template("cartpole")
        graph.remove("print")
        graph.nodes["env"].params |= {"env_id": "Boxes-v0", "num_envs": 2}
        graph.nodes["agent"].params["input_size"] = 3
        with Interpreter(graph, into=tmp_path) as engine:
            (scene,) = scenes_of(engine)
            engine.tick()
            frame = scene.frame(engine)
    finally:
        del gym.registry["Boxes-v0"]
    assert frame is not None
    if broken:
        assert (frame["pictures"], frame["why"]) == ([], "Boxes-v0 cannot be rendered: no display")
        return
    with Image.open(io.BytesIO(base64.b64decode(frame["pictures"][0].partition(",")[2]))) as seen:
        assert seen.size == (134, 234)
        assert seen.getpixel((5, 5)) == (200, 0, 0)
