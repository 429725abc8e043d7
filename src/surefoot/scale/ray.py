"""Rollouts by actors of a Ray cluster; weights go once into the object store, pieces come back through it.

Ray is never started unless the address says so ("here"), and a cluster that asks nobody who they are is refused unless
that is allowed: whoever reaches such a cluster can run code on it.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.errors import ConfigError, EnvError, SurefootError, WorkersLost
from surefoot.scale.backend import Piece, Weights, shares
from surefoot.scale.choose import WORLDS
from surefoot.scale.worker import RolloutWorker

if TYPE_CHECKING:
    from surefoot.train.spec import RunSpec

TIMEOUT, SLOWER, START, TRIES = 120.0, 10.0, 180.0, 5
"""As of the local backend, with more patience: an actor may be far away."""


class RayBackend:
    """W actors, each with a share of the streams; one that dies or is silent is replaced by a new one."""

    name = "ray"

    def __init__(
        self,
        spec: RunSpec,
        workers: int,
        *,
        address: str = "",
        allow_insecure_cluster: bool = False,
        timeout: float | None = None,
        worlds: str = WORLDS,
    ) -> None:
        self._ray = load_ray()
        self._started = connect(self._ray, address, allow_insecure_cluster=allow_insecure_cluster)
        self.workers, self.timeout, self._worlds = workers, timeout, worlds
        self._spec, self._streams = spec.to_json(), shares(spec.ppo.envs, workers)
        # No restarts by Ray: a restarted actor would be a stranger with an old one's name. We make new ones, and ask again.
        self._kind = self._ray.remote(max_restarts=0, max_task_retries=0, num_cpus=1)(Actor)
        self._weights: Any = None
        self._version = 0
        self._slowest = 0.0
        self._losses: list[str] = []
        self._in_a_row, self._generation = [0] * workers, [0] * workers
        self._begun, self._pending = [0.0] * workers, list[Any]([None] * workers)
        self._actors: list[Any] = []
        self._closed = False
        try:
            self._actors = [self._new(number) for number in range(workers)]
            for actor in self._actors:
                self._first_word(actor)
        except BaseException:
            self.close()
            raise

    def publish(self, weights: Weights, version: int) -> None:
        self._weights, self._version = self._ray.put({name: x.copy() for name, x in weights.items()}), version

    def ask(self) -> None:
        for number in range(self.workers):
            self._ask(number)

    def hear(self) -> list[Piece]:
        return [self._piece(number) for number in range(self.workers)]

    def states(self) -> list[dict[str, Any]]:
        return [self._insist(number, "state") for number in range(self.workers)]

    def set_states(self, states: Sequence[dict[str, Any]]) -> None:
        for number, state in enumerate(states):
            self._insist(number, "set_state", state)
            self._generation[number] = int(state["generation"])

    def take_losses(self) -> list[str]:
        said, self._losses = self._losses, []
        return said

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for actor in self._actors:
            self._ray.kill(actor, no_restart=True)
        if self._started:
            self._ray.shutdown()

    @property
    def processes(self) -> list[int]:
        """Process ids, by worker; they mean something on the machine the worker is on."""
        return [self._get(actor.process.remote(), START) for actor in self._actors]

    def _first_word(self, actor: Any) -> None:
        try:
            self._get(actor.ready.remote(), START)
        except self._ray.exceptions.GetTimeoutError as error:
            raise WorkersLost(
                f"{self.workers} rollout workers did not all start within {START:g} s; each needs a free CPU of the cluster, "
                "which `ray status` shows"
            ) from error

    def _new(self, number: int) -> Any:
        return self._kind.remote(self._spec, number, self._streams[number], self._generation[number], self._worlds)

    def _ask(self, number: int) -> None:
        self._begun[number] = time.monotonic()
        self._pending[number] = self._actors[number].collect.remote(self._weights, self._version)

    def _piece(self, number: int) -> Piece:
        while True:
            try:
                piece = self._get(self._pending[number], self._limit)
            except self._lost as why:
                self._replace(number, why)
                self._ask(number)
                continue
            self._in_a_row[number] = 0
            self._slowest = max(self._slowest, time.monotonic() - self._begun[number])
            return piece

    def _insist(self, number: int, command: str, *arguments: Any) -> Any:
        while True:
            try:
                return self._get(getattr(self._actors[number], command).remote(*arguments), max(START, self._limit))
            except self._lost as why:
                self._replace(number, why)

    @property
    def _limit(self) -> float:
        return self.timeout if self.timeout is not None else max(TIMEOUT, SLOWER * self._slowest)

    @property
    def _lost(self) -> tuple[type[Exception], ...]:
        errors = self._ray.exceptions
        return (errors.RayActorError, errors.GetTimeoutError, errors.ObjectLostError, errors.WorkerCrashedError)

    def _get(self, reference: Any, limit: float) -> Any:
        try:
            return self._ray.get(reference, timeout=limit)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, SurefootError) and type(cause).__module__ == "surefoot.errors":
                raise cause from error
            raise EnvError(f"a rollout worker failed: {cause!r}") from error

    def _replace(self, number: int, error: Exception) -> None:
        while True:
            self._ray.kill(self._actors[number], no_restart=True)
            silent = isinstance(error, self._ray.exceptions.GetTimeoutError)
            why = f"gave no answer in {self._limit:.3g} s" if silent else "was lost"
            what = f"rollout worker {number + 1} of {self.workers} (ray) {why}"
            self._in_a_row[number] += 1
            if self._in_a_row[number] >= TRIES:
                raise WorkersLost(
                    f"{what}; that is the {TRIES}th time in a row, so it is not replaced again"
                ) from error
            self._losses.append(f"{what}; what it was at is asked for again, in new episodes")
            self._generation[number] += 1
            self._actors[number] = self._new(number)
            try:
                self._get(self._actors[number].ready.remote(), START)
            except self._lost as again:
                error = again
                continue
            return


class Actor(RolloutWorker):
    """A rollout worker as Ray talks to it."""

    def ready(self) -> bool:
        """Answers once the world is built."""
        return True

    def process(self) -> int:
        """Its process id."""
        return os.getpid()

    def collect(self, weights: Weights, version: int) -> Piece:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One piece, made with these weights."""
        self.load(weights)
        return super().collect(version)


def load_ray() -> Any:
    """The ray module, or one sentence."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ConfigError("a Ray cluster is reached with `ray`: pip install 'surefoot[ray]'") from error


def connect(ray: Any, address: str, *, allow_insecure_cluster: bool) -> bool:
    """Be connected to a cluster; True if Ray was started for it here, and is ours to stop."""
    if ray.is_initialized():
        return False
    if not address:
        raise ConfigError(
            "no Ray cluster is connected; say which, after an @: auto or host:port for one that runs (ray:8@auto), here to "
            "start one on this machine"
        )
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    if address == "here":
        ray.init(**quiet)
        return True
    if not allow_insecure_cluster and not has_token():
        raise ConfigError(
            f"the Ray cluster at {address} is not known to ask for a token, so anyone who reaches it can run code on it; set "
            "RAY_AUTH_MODE=token there and here (`ray get-auth-token --generate`), or allow it with --insecure-cluster"
        )
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError) as error:
        raise ConfigError(f"no Ray cluster was found at {address}: {' '.join(str(error).split())[:300]}") from error
    return False


def has_token() -> bool:
    """True if this machine will show a token to a cluster, by Ray's own settings."""
    mode = os.environ.get("RAY_AUTH_MODE")
    if mode is not None and mode.lower() != "token":
        return False
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    file = Path(named) if named else Path.home() / ".ray" / "auth_token"
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or file.is_file()
