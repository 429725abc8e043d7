"""K3b: every rollout backend through the contract that is exported to users, kills and stops included."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

from campaign.frame import Block, Found, is_here

OLD_PIECE = "a replaced worker delivers its previous piece again"


class _Forgetful:
    """A backend that answers with an old piece after a loss: the defect."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._last: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def receive(self) -> list[Any]:
        pieces = self._inner.receive()
        if any(piece.began_anew for piece in pieces):
            pieces = [replace(piece, serial=old.serial) for piece, old in zip(pieces, self._last, strict=True)]
        self._last = pieces
        return pieces


def check(count: int, defect: str = "") -> Found:
    from surefoot.scale.backend_check import check_backend
    from surefoot.scale.local_backend import local_backend

    found, (spec, weights) = Found(), _subject()
    stops = max(1, count // 4)
    names = ["local", *(["ray"] if is_here("ray") and not defect else [])]
    for name in names:

        def make(name: str = name) -> Any:
            if name == "ray":
                return importlib.import_module("surefoot.scale.ray_backend").ray_backend(spec, 2, timeout=10.0)
            backend: Any = local_backend(spec, 2, timeout=5.0)
            return _Forgetful(backend) if defect == OLD_PIECE else backend

        if name == "ray":
            importlib.import_module("ray").init(
                address="local", include_dashboard=False, log_to_driver=False, logging_level="error"
            )
        for broken in check_backend(make, spec, weights, kills=count, stops=stops):
            found.fault(f"{name}: {broken}")
        found.tried += count + stops
        found.kills += count
    found.notes["backends"] = ", ".join(names)
    return found


def _subject() -> tuple[Any, Any]:
    """A small run, and the weights of its policy."""
    from surefoot.envs.make import make_world
    from surefoot.nets.actor_critic import ActorCritic
    from surefoot.train.spec import make_spec

    world = make_world("CartPole-v1")
    settings = {"rollout_steps": 16, "envs": 4, "minibatch_size": 32, "hidden": (8,)}
    spec = make_spec("CartPole-v1", world.action, preset_name="sb3", settings=settings, total_steps=10_000)
    policy = ActorCritic(world.observation, world.action, spec.net, seed=0)
    world.close()
    return spec, {name: x.numpy().copy() for name, x in policy.state_dict().items()}


BLOCK = Block(
    name="K3b",
    title="the contract of every rollout backend, kills included",
    over="engine",
    unit="kills and stops",
    smoke=1,
    count=10,
    long=100,
    check=check,
    mutants={OLD_PIECE: 1},
)
