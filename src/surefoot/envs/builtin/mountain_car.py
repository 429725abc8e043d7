"""MountainCar: an underpowered car in a valley, with three discrete actions (Moore, 1990) or a continuous one."""

from __future__ import annotations

import math

import numpy as np

from surefoot.data.spaces import ActionSpace, Box, Discrete
from surefoot.envs.builtin import draw
from surefoot.envs.builtin.streams import Task, Transition

# Gymnasium's numbers, here and below.
_LEFT, _RIGHT, _MAX_SPEED = -1.2, 0.6, 0.07


class MountainCar(Task):
    """Push left (0), coast (1) or push right (2); -1 per step until the car is at 0.5 or beyond."""

    observation = Box((2,), (_LEFT, -_MAX_SPEED), (_RIGHT, _MAX_SPEED))
    action: ActionSpace = Discrete(3)
    max_episode_steps = 200
    goal = 0.5

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return np.array((rng.uniform(-0.6, -0.4, n), np.zeros(n)))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        """Follow Gymnasium's `MountainCarEnv`, operation by operation."""
        position, velocity = state
        pedal = (action.astype(np.int64) - 1) * 0.001
        velocity = velocity + (pedal + np.cos(3 * position) * -0.0025)
        after = _roll(position, velocity)
        return after, np.full(len(pedal), -1.0), _arrived(after, self.goal)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return state.T.astype(np.float32, order="C")

    def draw(self, state: np.ndarray) -> np.ndarray:
        position, goal = float(state[0]), self.goal
        canvas = draw.Canvas(left=_LEFT - 0.05, right=_RIGHT + 0.05, middle=0.65)
        canvas.ground(_height, draw.GREEN)

        def on_hill(x: float, above: float) -> tuple[float, float]:
            """Return the point `above` the hill at x, measured at right angles to the slope."""
            slope = math.atan(3 * 0.45 * math.cos(3 * x))
            return x - above * math.sin(slope), float(_height(np.array(x))) + above * math.cos(slope)

        foot, top = on_hill(goal, 0.0), (goal, on_hill(goal, 0.0)[1] + 0.25)
        canvas.line(foot, top, 0.012, draw.GREY)
        canvas.box((goal, top[1] - 0.08), (goal + 0.12, top[1]), draw.RED)
        slope = math.atan(3 * 0.45 * math.cos(3 * position))
        along = (0.06 * math.cos(slope), 0.06 * math.sin(slope))
        x, y = on_hill(position, 0.07)
        canvas.line((x - along[0], y - along[1]), (x + along[0], y + along[1]), 0.07, draw.BLACK)
        x, y = on_hill(position, 0.03)
        for side in (-1, 1):
            canvas.disc((x + side * along[0], y + side * along[1]), 0.03, draw.GREY)
        return canvas.picture()


class MountainCarContinuous(MountainCar):
    """Push with an action in [-1, 1]; +100 at 0.45 or beyond, and -0.1 action² on every step.

    Gymnasium computes this car in float32, except its first state. Here the first state is float32 too, so every step
    has the same digits.
    """

    action = Box((1,), -1.0, 1.0)
    max_episode_steps = 999
    goal = 0.45

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return super().start(rng, n).astype(np.float32)

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        """Follow Gymnasium's `Continuous_MountainCarEnv`, operation by operation; only the cosine is float64."""
        position, velocity = state
        pedal = action[:, 0]
        slope = 0.0025 * np.cos((3 * position).astype(np.float64))
        velocity = velocity + (pedal.clip(-1.0, 1.0) * 0.0015 - slope.astype(np.float32))
        after = _roll(position, velocity)
        arrived = _arrived(after, self.goal)
        return after, 100.0 * arrived - np.square(pedal.astype(np.float64)) * 0.1, arrived

    def observe(self, state: np.ndarray) -> np.ndarray:
        return state.T.copy(order="C")


def _roll(position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Move by the velocity; the left wall sets it to 0, the right one only limits the position."""
    velocity = velocity.clip(-_MAX_SPEED, _MAX_SPEED)
    position = (position + velocity).clip(_LEFT, _RIGHT)
    velocity[(position == _LEFT) & (velocity < 0)] = 0.0
    return np.array((position, velocity))


def _arrived(state: np.ndarray, goal: float) -> np.ndarray:
    return (state[0] >= goal) & (state[1] >= 0)


def _height(x: np.ndarray) -> np.ndarray:
    return np.sin(3 * x) * 0.45 + 0.55
