"""Pendulum (one link, driven at the hinge) and Acrobot (two links, driven at the elbow)."""

from __future__ import annotations

import math

import numpy as np

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.builtin import draw
from surefoot.envs.builtin.streams import Task, Transition


def _square(x: np.ndarray) -> np.ndarray:
    """Return x² as computed by the C library's pow, like `scalar ** 2` in Gymnasium.

    It differs from x·x in the last digit about once in a thousand times. `x ** 2` on an array is x·x, and `np.power` is
    another pow on machines with AVX-512. `np.float_power` is the C library's everywhere, but only for float64.
    """
    if x.dtype == np.float64:
        return np.float_power(x, 2.0)
    return np.array([one**2 for one in x], x.dtype)


# Gymnasium's numbers for both environments.
_DT = np.array(0.05)
_MAX_SPEED = 8.0
_MAX_TORQUE = 2.0


class Pendulum(Task):
    """Swing the link up with a torque in [-2, 2] and hold it; the reward is minus a cost, episodes never terminate.

    Operations are in the order of Gymnasium's `PendulumEnv`: the torque stays float32, everything else is float64.
    """

    observation = Box((3,), (-1.0, -1.0, -_MAX_SPEED), (1.0, 1.0, _MAX_SPEED))
    action = Box((1,), -_MAX_TORQUE, _MAX_TORQUE)
    max_episode_steps = 200

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        reach = np.array([[np.pi], [1.0]])
        return rng.uniform(-reach, reach, (2, n))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        """Take one step; the cost is computed from the state before it and the clipped torque."""
        theta, theta_dot = state
        torque = action[:, 0].clip(-_MAX_TORQUE, _MAX_TORQUE)
        upright = ((theta + np.pi) % (2 * np.pi)) - np.pi
        cost = _square(upright) + 0.1 * _square(theta_dot) + 0.001 * _square(torque)
        theta_dot = theta_dot + (15.0 * np.sin(theta) + 3.0 * torque) * _DT
        theta_dot = theta_dot.clip(-_MAX_SPEED, _MAX_SPEED)
        return np.array((theta + theta_dot * _DT, theta_dot)), -cost, np.zeros(len(cost), bool)

    def observe(self, state: np.ndarray) -> np.ndarray:
        """Return the cosine and sine of the angle from upright, and the angular velocity."""
        return np.array((np.cos(state[0]), np.sin(state[0]), state[1])).T.astype(np.float32, order="C")

    def draw(self, state: np.ndarray) -> np.ndarray:
        theta = float(state[0])
        canvas = draw.Canvas(left=-1.6, right=1.6, middle=0.0)
        canvas.line((0.0, 0.0), (-math.sin(theta), math.cos(theta)), 0.2, draw.RED)
        canvas.disc((0.0, 0.0), 0.05, draw.BLACK)
        return canvas.picture()


_MAX_VEL = np.array([[4 * np.pi], [9 * np.pi]])
_TORQUE = np.array([-1.0, 0.0, 1.0])
_STEP = 0.2
# 0-d arrays: in an expression of short arrays numpy takes half the time for them that it takes for Python floats.
_G1, _G2 = np.array((0.5 + 1.0) * 9.8), np.array(0.5 * 9.8)
_QUARTER_TURN = np.array(np.pi / 2)
_QUARTER, _HALF, _MINUS_HALF, _ONE, _FIVE_QUARTERS, _TWO = (np.array(x) for x in (0.25, 0.5, -0.5, 1.0, 1.25, 2.0))
_STEP_HALF, _STEP_WHOLE, _STEP_SIXTH = np.array(_STEP / 2), np.array(_STEP), np.array(_STEP / 6)


class Acrobot(Task):
    """Drive the elbow with -1, 0 or 1 N m until the tip is one link above the hinge; -1 per step, 0 on the last.

    Operations are in the order of Gymnasium's `AcrobotEnv` (Runge-Kutta, links of 1 m and 1 kg, the equations of Sutton
    and Barto's book), with products of constants folded where that is exact.
    """

    observation = Box(
        (6,), (-1.0, -1.0, -1.0, -1.0, -4 * math.pi, -9 * math.pi), (1.0, 1.0, 1.0, 1.0, 4 * math.pi, 9 * math.pi)
    )
    action = Discrete(3)
    max_episode_steps = 500

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        # Rounded to float32: Gymnasium's first state is float32 too.
        return rng.uniform(-0.1, 0.1, (4, n)).astype(np.float32).astype(np.float64)

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        """Take one Runge-Kutta step of 0.2 s, then wrap angles to ±π and clip velocities to 4π and 9π."""
        torque = _TORQUE[action]
        k1 = _rates(state, torque)
        k2 = _rates(state + _STEP_HALF * k1, torque)
        k3 = _rates(state + _STEP_HALF * k2, torque)
        k4 = _rates(state + _STEP_WHOLE * k3, torque)
        after = state + _STEP_SIXTH * (k1 + _TWO * k2 + _TWO * k3 + k4)
        angles = after[:2]
        while np.count_nonzero(over := np.abs(angles) > np.pi):  # by whole turns
            angles[over] -= np.copysign(2 * np.pi, angles[over])
        after[2:].clip(-_MAX_VEL, _MAX_VEL, out=after[2:])
        up = -np.cos(after[0]) - np.cos(after[1] + after[0]) > 1.0
        return after, up - 1.0, up

    def observe(self, state: np.ndarray) -> np.ndarray:
        """Return cosine and sine of the first link's angle from hanging and of the elbow's, and both velocities."""
        obs = np.empty((state.shape[1], 6), np.float32)
        obs[:, 0:4:2] = np.cos(state[:2]).T
        obs[:, 1:4:2] = np.sin(state[:2]).T
        obs[:, 4:] = state[2:].T
        return obs

    def draw(self, state: np.ndarray) -> np.ndarray:
        first, second = float(state[0]), float(state[0] + state[1])
        elbow = (math.sin(first), -math.cos(first))
        tip = (elbow[0] + math.sin(second), elbow[1] - math.cos(second))
        canvas = draw.Canvas(left=-2.95, right=2.95, middle=0.0)
        canvas.line((-2.95, 1.0), (2.95, 1.0), 0.03, draw.GREY)
        canvas.line((0.0, 0.0), elbow, 0.2, draw.BLUE)
        canvas.line(elbow, tip, 0.2, draw.GREEN)
        for joint in ((0.0, 0.0), elbow):
            canvas.disc(joint, 0.1, draw.BROWN)
        return canvas.picture()


def _rates(state: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """Return the time derivatives of both angles and both velocities, [4, N] (Sutton & Barto, §11.3)."""
    theta1, theta2, dtheta1, dtheta2 = state
    cos2, sin2 = np.cos(theta2), np.sin(theta2)
    d1 = _QUARTER + (_FIVE_QUARTERS + cos2) + _ONE + _ONE
    d2 = _QUARTER + _HALF * cos2 + _ONE
    squares = _square(np.array((dtheta1, dtheta2, d2)))
    phi2 = _G2 * np.cos(theta1 + theta2 - _QUARTER_TURN)
    phi1 = _MINUS_HALF * squares[1] * sin2 - dtheta2 * dtheta1 * sin2 + _G1 * np.cos(theta1 - _QUARTER_TURN) + phi2
    pull = torque + d2 / d1 * phi1 - _HALF * squares[0] * sin2 - phi2
    ddtheta2 = pull / (_FIVE_QUARTERS - squares[2] / d1)
    ddtheta1 = -(d2 * ddtheta2 + phi1) / d1
    return np.array((dtheta1, dtheta2, ddtheta1, ddtheta2))
