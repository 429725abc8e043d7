"""CartPole: Barto, Sutton and Anderson's (1983) with two actions, and Isaac Gym's with a continuous one."""

from __future__ import annotations

import math

import numpy as np

from surefoot.data.spaces import ActionSpace, Box, Discrete
from surefoot.envs.builtin import draw
from surefoot.envs.builtin.streams import Task, Transition

# Gymnasium's numbers. 0-d arrays: in an expression of short arrays numpy takes half the time for them that it takes
# for Python floats.
_GRAVITY = np.array(9.8)
_TOTAL_MASS = np.array(1.0 + 0.1)
_POLE_MASS = np.array(0.1)
_HALF_LENGTH = np.array(0.5)
_POLE_MOMENT = np.array(0.1 * 0.5)
_FOUR_THIRDS = np.array(4.0 / 3.0)
_TAU = np.array(0.02)
_PUSH = np.array([-10.0, 10.0])
_EDGE = np.array(2.4)
_LEAN = np.array(12 * 2 * math.pi / 360)


def _box(*reach: float) -> Box:
    return Box((len(reach),), tuple(-x for x in reach), reach)


class CartPole(Task):
    """Balance the pole by pushing the cart left (0) or right (1); +1 per step until the pole or the cart is out of range.

    Operations are in the order of Gymnasium's `CartPoleEnv`, so that the float64 digits are the same.
    """

    observation = _box(2 * float(_EDGE), math.inf, 2 * float(_LEAN), math.inf)
    action: ActionSpace = Discrete(2)
    edge = float(_EDGE)

    def __init__(self, max_episode_steps: int = 500) -> None:
        self.max_episode_steps = max_episode_steps

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.uniform(-0.05, 0.05, (4, n))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        """Take one Euler step of 0.02 s; the step on which the pole falls still pays 1."""
        x_dot, theta, theta_dot = state[1], state[2], state[3]
        cos, sin = np.cos(theta), np.sin(theta)
        push = (_PUSH[action] + _POLE_MOMENT * np.square(theta_dot) * sin) / _TOTAL_MASS
        theta_acc = (_GRAVITY * sin - cos * push) / (
            _HALF_LENGTH * (_FOUR_THIRDS - _POLE_MASS * np.square(cos) / _TOTAL_MASS)
        )
        x_acc = push - _POLE_MOMENT * theta_acc * cos / _TOTAL_MASS
        after = state + _TAU * np.array((x_dot, x_acc, theta_dot, theta_acc))
        reward = np.empty(len(theta))
        reward.fill(1.0)
        return after, reward, (np.abs(after[0]) > _EDGE) | (np.abs(after[2]) > _LEAN)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return state.T.astype(np.float32, order="C")

    def draw(self, state: np.ndarray) -> np.ndarray:
        edge, x, theta = self.edge, float(state[0]), float(state[2])
        canvas = draw.Canvas(left=-edge - 0.1, right=edge + 0.1, middle=0.4)
        canvas.line((-edge, 0.0), (edge, 0.0), 0.03, draw.GREY)
        for end in (-edge, edge):
            canvas.line((end, -0.12), (end, 0.12), 0.03, draw.GREY)
        hinge = (x, 0.15)
        canvas.box((x - 0.25, -0.15), (x + 0.25, 0.15), draw.BLACK)
        tip = (x + math.sin(theta), hinge[1] + math.cos(theta))
        canvas.line(hinge, tip, 0.1, draw.BROWN)
        canvas.disc(hinge, 0.05, draw.BLUE)
        return canvas.picture()


class CartPoleNoVel(CartPole):
    """CartPole without velocities in the observation: balancing it takes memory."""

    observation = _box(2 * float(_EDGE), 2 * float(_LEAN))

    def observe(self, state: np.ndarray) -> np.ndarray:
        return state[::2].T.astype(np.float32, order="C")


# Isaac Gym's cartpole asset: a cart of 1 kg, and a pole of 1 kg that is a box of 0.06 m by 1 m with its centre 0.47 m
# above the hinge. The hinge turns no faster than 8 rad/s.
_ISAAC_GRAVITY = np.array(9.81)
_ISAAC_MASS = np.array(1.0 + 1.0)
_ISAAC_MOMENT = np.array(1.0 * 0.47)
_ISAAC_INERTIA = np.array(1.0 / 12 * (0.06**2 + 1.0**2) + 1.0 * 0.47**2)
_ISAAC_FASTEST = 8.0
_ISAAC_FORCE = np.array(400.0)
_ISAAC_EDGE = 3.0
_SUBSTEPS = 2
_SUBSTEP = np.array(0.0166 / _SUBSTEPS)


class CartPoleContinuous(CartPole):
    """Isaac Gym's Cartpole: an action in [-1, 1] is a push of up to 400 N, and the pole may lean up to 90°.

    The reward is 1 - angle² - 0.01 |cart velocity| - 0.005 |pole velocity|, and -2 on the last step. The equations
    are those of a frictionless cart and a rigid pole, integrated semi-implicitly (velocities first), in two substeps of
    0.0083 s per action. A positive angle leans towards a positive position, as in CartPole.
    """

    observation = Box((4,))
    action = Box((1,), -1.0, 1.0)
    edge = _ISAAC_EDGE

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        reach = np.array([[0.1], [0.25], [0.1], [0.25]])
        return rng.uniform(-reach, reach, (4, n))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        """Take two substeps under one constant force."""
        force = _ISAAC_FORCE * action[:, 0].clip(-1.0, 1.0).astype(np.float64)
        x, x_dot, theta, theta_dot = state
        for _ in range(_SUBSTEPS):
            x_acc, theta_acc = _accelerations(theta, theta_dot, force)
            x_dot = x_dot + _SUBSTEP * x_acc
            theta_dot = (theta_dot + _SUBSTEP * theta_acc).clip(-_ISAAC_FASTEST, _ISAAC_FASTEST)
            x = x + _SUBSTEP * x_dot
            theta = theta + _SUBSTEP * theta_dot
        lost = (np.abs(x) > _ISAAC_EDGE) | (np.abs(theta) > math.pi / 2)
        reward = 1.0 - np.square(theta) - 0.01 * np.abs(x_dot) - 0.005 * np.abs(theta_dot)
        return np.array((x, x_dot, theta, theta_dot)), np.where(lost, -2.0, reward), lost


def _accelerations(theta: np.ndarray, theta_dot: np.ndarray, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the accelerations of cart and pole, from the equations of a cart M and a pole m, l, J (about the hinge):

    (M + m) x″ + m l (θ″ cos θ - θ′² sin θ) = F        J θ″ + m l x″ cos θ = m g l sin θ
    """
    cos, sin = np.cos(theta), np.sin(theta)
    push = (force + _ISAAC_MOMENT * np.square(theta_dot) * sin) / _ISAAC_MASS
    theta_acc = (_ISAAC_MOMENT * (_ISAAC_GRAVITY * sin - push * cos)) / (
        _ISAAC_INERTIA - np.square(_ISAAC_MOMENT * cos) / _ISAAC_MASS
    )
    return push - _ISAAC_MOMENT * theta_acc * cos / _ISAAC_MASS, theta_acc
