"""What the numbers of the classic worlds are, and in which units: for whoever must feed a policy outside of here."""

from __future__ import annotations

from surefoot.envs.ids import short_name

Components = tuple[tuple[str, str], ...]
"""(name, unit) of each number; "1" is a pure number."""

_CART: Components = (
    ("cart position", "m"),
    ("cart velocity", "m/s"),
    ("pole angle", "rad"),
    ("pole angular velocity", "rad/s"),
)
_CAR: Components = (("position", "1"), ("velocity", "1/step"))

OBSERVATIONS: dict[str, Components] = {
    "CartPole": _CART,
    "CartPoleContinuous": _CART,
    "Pendulum": (("cos of the angle", "1"), ("sin of the angle", "1"), ("angular velocity", "rad/s")),
    "Acrobot": (
        ("cos of angle 1", "1"),
        ("sin of angle 1", "1"),
        ("cos of angle 2", "1"),
        ("sin of angle 2", "1"),
        ("angular velocity 1", "rad/s"),
        ("angular velocity 2", "rad/s"),
    ),
    "MountainCar": _CAR,
    "MountainCarContinuous": _CAR,
}
ACTIONS: dict[str, Components] = {
    "CartPole": (("push: 0 left, 1 right", "10 N"),),
    "Pendulum": (("torque", "N m"),),
    "Acrobot": (("torque: 0 is -1, 1 is 0, 2 is 1", "N m"),),
    "MountainCar": (("0 left, 1 nothing, 2 right", "1"),),
    "MountainCarContinuous": (("force", "1"),),
}


def meaning(env: str) -> tuple[Components | None, Components | None]:
    """What is observed and what is done, number by number; None for what nobody wrote down."""
    name = short_name(env).rpartition("/")[2].partition("-")[0]
    return OBSERVATIONS.get(name), ACTIONS.get(name)
