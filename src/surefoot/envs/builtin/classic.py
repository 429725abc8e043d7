"""The classic-control worlds, N streams at a time, with Gymnasium's digits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from surefoot import native
from surefoot.envs.api import World
from surefoot.envs.builtin.cartpole import CartPole, CartPoleContinuous, CartPoleNoVel
from surefoot.envs.builtin.mountain_car import MountainCar, MountainCarContinuous
from surefoot.envs.builtin.native import NativeWorld
from surefoot.envs.builtin.pendulum_acrobot import Acrobot, Pendulum
from surefoot.envs.builtin.streams import Streams, Task, maker

_TASKS: dict[str, Callable[[], Task]] = {
    "CartPole-v0": lambda: CartPole(max_episode_steps=200),
    "CartPole-v1": CartPole,
    "Acrobot-v1": Acrobot,
    "MountainCar-v0": MountainCar,
    "MountainCarContinuous-v0": MountainCarContinuous,
    "Pendulum-v1": Pendulum,
    "surefoot/CartPoleContinuous-v0": CartPoleContinuous,
}

IN_KERNEL = tuple(_TASKS)
"""Those the kernel has, too."""


def definition(name: str, num_envs: int) -> Streams:
    """N streams in numpy: what the kernel's world of that name is held to, digit by digit."""
    return Streams(name, _TASKS[name](), num_envs)


def _make(name: str, num_envs: int) -> World:
    if native.kernel is None:
        return definition(name, num_envs)
    return NativeWorld(name, name, num_envs, _TASKS[name]())


CLASSIC: dict[str, Callable[[int], World]] = {
    **{name: partial(_make, name) for name in _TASKS},
    "surefoot/CartPoleNoVel-v0": maker("surefoot/CartPoleNoVel-v0", CartPoleNoVel),
}
"""Constructors that take the number of streams, by id: stepped by the kernel where it has them, else in numpy."""
