"""Collect rollouts by actors of a Ray cluster. Weights and pieces travel through the object store, weights once for all.

Ray is only started if the address is "here". A cluster without authentication is refused unless it is allowed: anyone
who reaches such a cluster can run code on it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.errors import ConfigError, EnvError, SurefootError
from surefoot.scale.backend import WORLDS, Piece, Weights, shares
from surefoot.scale.ray_probe import token_demanded
from surefoot.scale.rollout_pool import Lost, Patience, RolloutPool
from surefoot.scale.rollout_worker import RolloutWorker

if TYPE_CHECKING:
    from surefoot.train.spec import RunSpec

# Timeouts as in the local backend, but longer: an actor may be on another machine.
PIECE, START = 120.0, 180.0


def ray_backend(
    spec: RunSpec,
    workers: int,
    *,
    address: str = "",
    allow_insecure_cluster: bool = False,
    timeout: float | None = None,
    worlds: str = WORLDS,
) -> RolloutPool:
    """Start W actors, each with a share of the streams."""
    ray, settings = load_ray(), spec.to_json()
    started = connect(ray, address, allow_insecure_cluster=allow_insecure_cluster)
    # No restarts by Ray: a restarted actor would have lost its state under the same name. The pool starts new ones.
    kind = ray.remote(max_restarts=0, max_task_retries=0, num_cpus=1)(Actor)

    def make(number: int, streams: int, generation: int) -> Any:
        return kind.remote(settings, number, streams, generation, worlds)

    def start() -> _Handle:  # no spare actor in reserve: it would hold a CPU of the cluster
        return _Handle(ray, make)

    def share(weights: Weights) -> Any:
        return ray.put({name: x.copy() for name, x in weights.items()})

    return RolloutPool(
        "ray",
        start,
        shares(spec.ppo.envs, workers),
        Patience(piece=PIECE, start=START, fixed=timeout),
        share=share,
        close=ray.shutdown if started else lambda: None,
        advice="; each needs a free CPU of the cluster, which `ray status` shows",
    )


class _Handle:
    """One actor and its pending piece."""

    def __init__(self, ray: Any, make: Callable[[int, int, int], Any]) -> None:
        self._ray, self._make = ray, make
        self._actor: Any = None
        self._pending: Any = None

    @property
    def process(self) -> int:
        return self._get(self._actor.process.remote(), START)

    def build(self, number: int, streams: int, generation: int) -> None:
        self._actor = self._make(number, streams, generation)

    def ready(self, limit: float) -> None:
        self._get(self._actor.ready.remote(), limit)

    def begin(self, weights: Any, version: int) -> None:
        self._pending = self._actor.collect.remote(weights, version)

    def piece(self, limit: float) -> Piece:
        return self._get(self._pending, limit)

    def call(self, command: str, arguments: Sequence[Any], limit: float) -> Any:
        return self._get(self._actor.call.remote(command, list(arguments)), limit)

    def end(self, *, silent: bool) -> str | None:
        self._ray.kill(self._actor, no_restart=True)
        return None if silent else "was lost"

    def _get(self, reference: Any, limit: float) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference, timeout=limit)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, SurefootError) and type(cause).__module__ == "surefoot.errors":
                raise cause from error
            raise EnvError(f"a rollout worker failed: {cause!r}") from error
        except (errors.RayActorError, errors.GetTimeoutError, errors.ObjectLostError, errors.WorkerCrashedError) as why:
            raise Lost(silent=isinstance(why, errors.GetTimeoutError)) from why


class Actor:
    """A rollout worker in a Ray actor."""

    def __init__(self, *arguments: Any) -> None:
        self._worker = RolloutWorker(*arguments)

    def ready(self) -> bool:
        """Return when the environments are created."""
        return True

    def process(self) -> int:
        return os.getpid()

    def collect(self, weights: Weights, version: int) -> Piece:
        """Collect one piece with these weights."""
        self._worker.load(weights)
        return self._worker.collect(version)

    def call(self, command: str, arguments: Sequence[Any]) -> Any:
        """Call a method of the worker."""
        return getattr(self._worker, command)(*arguments)


def load_ray(extra: str = "ray") -> Any:
    """Return the ray module. Raise `ConfigError` with the extra to install if it is missing."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ConfigError(f"Ray is not installed: pip install 'surefoot[{extra}]'") from error


def connect(ray: Any, address: str, *, allow_insecure_cluster: bool) -> bool:
    """Connect to a cluster. Return True if Ray was started by this call, and must be shut down by the caller."""
    if ray.is_initialized():
        return False
    if not address:
        raise ConfigError(
            "no Ray cluster is connected; add its address after an @: auto or host:port for a running one (ray:8@auto), here "
            "to start one on this machine"
        )
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    if address == "here":
        ray.init(address="local", **quiet)  # without "local" Ray would join a cluster that already runs on this machine
        return True
    if not allow_insecure_cluster and not has_token():
        raise ConfigError(
            f"the Ray cluster at {address} is not known to require a token, so anyone who reaches it can run code on it; set "
            "RAY_AUTH_MODE=token there and here (`ray get-auth-token --generate`), or allow it with --insecure-cluster"
        )
    # A token here does not mean that the cluster demands it: it may take requests without one.
    if not allow_insecure_cluster and (demanded := token_demanded(address)) != "yes":
        why = (
            "answers requests without a token" if demanded == "no" else f"is not known to require a token ({demanded})"
        )
        raise ConfigError(
            f"the Ray cluster at {address} {why}, so anyone who reaches it can run code on it; start it with "
            "RAY_AUTH_MODE=token, or allow it with --insecure-cluster"
        )
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(f"the Ray cluster at {address} was not found or refused the connection: {reason}") from error
    return False


def has_token() -> bool:
    """Return whether this machine sends a token to a cluster, by Ray's settings."""
    mode = os.environ.get("RAY_AUTH_MODE")
    if mode is not None and mode.lower() != "token":
        return False
    path = os.environ.get("RAY_AUTH_TOKEN_PATH")
    file = Path(path) if path else Path.home() / ".ray" / "auth_token"
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or file.is_file()
