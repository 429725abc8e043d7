"""The classic-control worlds, N streams at a time, with Gymnasium's digits."""

from __future__ import annotations

from collections.abc import Callable

from surefoot.envs.api import World
from surefoot.envs.classic_cartpole import CartPole, CartPoleContinuous
from surefoot.envs.classic_hill import MountainCar, MountainCarContinuous
from surefoot.envs.classic_swing import Acrobot, Pendulum
from surefoot.envs.streams import maker

CLASSIC: dict[str, Callable[[int], World]] = {
    name: maker(name, task)
    for name, task in {
        "CartPole-v0": lambda: CartPole(max_episode_steps=200),
        "CartPole-v1": CartPole,
        "Acrobot-v1": Acrobot,
        "MountainCar-v0": MountainCar,
        "MountainCarContinuous-v0": MountainCarContinuous,
        "Pendulum-v1": Pendulum,
        "surefoot/CartPoleContinuous-v0": CartPoleContinuous,
    }.items()
}
"""Constructors that take the number of streams, by id."""
