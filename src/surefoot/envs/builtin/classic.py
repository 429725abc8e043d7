"""The classic-control environments, N streams at a time, with Gymnasium's digits; and the units of their numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from surefoot import native
from surefoot.data.shipped_yaml import read_shipped
from surefoot.envs.api import World
from surefoot.envs.builtin.cartpole import CartPole, CartPoleContinuous, CartPoleNoVel
from surefoot.envs.builtin.mountain_car import MountainCar, MountainCarContinuous
from surefoot.envs.builtin.native import NativeWorld
from surefoot.envs.builtin.pendulum_acrobot import Acrobot, Pendulum
from surefoot.envs.builtin.streams import Streams, Task, maker
from surefoot.envs.ids import short_name

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
"""Ids that the C kernel implements too."""
Components = tuple[tuple[str, str], ...]
"""(name, unit) of each number."""


def definition(name: str, num_envs: int) -> Streams:
    """Return N streams in numpy: the definition that the kernel's environment must match digit by digit."""
    return Streams(name, _TASKS[name](), num_envs)


def _make(name: str, num_envs: int) -> World:
    if native.kernel is None:
        return definition(name, num_envs)
    return NativeWorld(name, name, num_envs, _TASKS[name]())


CLASSIC: dict[str, Callable[[int], World]] = {
    **{name: partial(_make, name) for name in _TASKS},
    "surefoot/CartPoleNoVel-v0": maker("surefoot/CartPoleNoVel-v0", CartPoleNoVel),
}
"""Constructors by id that take the number of streams; the kernel steps those it implements, numpy the others."""


def units_of(env: str) -> tuple[Components | None, Components | None]:
    """Return (name, unit) of each observed number and of each action number of `env`; None where they are not known."""
    name = short_name(env).rpartition("/")[2].partition("-")[0]
    tables = read_shipped("surefoot.envs.builtin", "units.yaml")
    rows = (tables[kind].get(name) for kind in ("observations", "actions"))
    observed, acted = (None if row is None else tuple((label, unit) for label, unit in row) for row in rows)
    return observed, acted
