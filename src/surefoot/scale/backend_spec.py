"""Which backend makes the rollouts, as a few letters: here, local:2, ray:8, ray:8@ADDRESS."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from surefoot.errors import ConfigError

if TYPE_CHECKING:
    from surefoot.scale.backend import RolloutBackend
    from surefoot.train.spec import RunSpec

WORLDS = "surefoot.train.training:world_maker"
_FORM = re.compile(r"(local|ray):([1-9][0-9]{0,3})(?:@(\S+))?")


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """Where rollouts are made, and by how many workers."""

    kind: Literal["local", "ray"]
    workers: int
    address: str = ""
    """Of a Ray cluster; "" is one that is connected already, "here" starts one on this machine, "auto" finds one."""
    insecure: bool = False
    """True lets in a cluster that asks nobody who they are."""
    worlds: str = WORLDS
    """`module:function`, from a spec to what makes its worlds; the workers call it."""

    @classmethod
    def parse(cls, text: str, *, insecure: bool = False) -> BackendSpec:
        """local:2 or ray:8@ADDRESS, as a value."""
        match = _FORM.fullmatch(text)
        if match is None or (match[1] == "local" and match[3]):
            raise ConfigError(
                f"rollouts is {text!r}; it is here, local:N (processes of this machine) or ray:N@ADDRESS, where ADDRESS is "
                "auto, host:port, or here to start Ray on this machine"
            )
        return cls("ray" if match[1] == "ray" else "local", int(match[2]), match[3] or "", insecure)


def open_backend(spec: RunSpec, placement: BackendSpec) -> RolloutBackend:
    """The workers of a placement, built and waiting."""
    if placement.kind == "local":
        from surefoot.scale.local_backend import local_backend

        return local_backend(spec, placement.workers, worlds=placement.worlds)
    from surefoot.scale.ray_backend import ray_backend

    return ray_backend(
        spec,
        placement.workers,
        address=placement.address,
        allow_insecure_cluster=placement.insecure,
        worlds=placement.worlds,
    )
