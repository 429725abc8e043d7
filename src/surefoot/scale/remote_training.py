"""A training with rollouts of a backend's workers: same learner, same run directory, same checkpoints."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch

from surefoot.data.rollout import Rollout
from surefoot.envs.api import Step, View, World
from surefoot.errors import ConfigError, EnvError
from surefoot.nets.policy import Policy
from surefoot.scale.backend import BackendSpec, Piece, RolloutBackend, join, open_backend, shares
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.episodes import Episode
from surefoot.train.spec import RunSpec
from surefoot.train.spec_worlds import WorldMaker, world_maker
from surefoot.train.training import Training

# Serials remembered per worker, to notice a piece that is delivered twice; a repeat comes within a few pieces.
REMEMBERED = 64


class RemoteTraining(Training):
    """A `Training` that collects with a `RolloutBackend` instead of environments in this process.

    With `spec.overlap` the workers collect while the learner learns: every rollout is of the policy before the newest
    one, and the report's `policy_lag` is 1. Without it, learner and workers take turns, and the lag is 0.
    """

    def __init__(
        self,
        spec: RunSpec,
        *,
        make: WorldMaker | None = None,
        backend: RolloutBackend | None = None,
        placement: BackendSpec | None = None,
    ) -> None:
        if spec.ppo.temperature != 1.0:
            raise ConfigError("temperature needs rollouts=here; leave it at 1.0, or rollouts at here")
        if spec.collect.curiosity != "none":
            raise ConfigError(f"curiosity={spec.collect.curiosity} needs rollouts=here; leave rollouts at here")
        if spec.overlap and spec.ppo.max_policy_lag == 0:
            raise ConfigError(
                "overlap gives a policy lag of 1, and max_policy_lag=0 drops all rollouts; allow at least 1"
            )
        if torch.device(spec.ppo.device if spec.ppo.device != "auto" else "cpu").type not in ("cpu", "cuda", "mps"):
            raise ConfigError(f"device is {spec.ppo.device}; workers act on cpu, a learner learns on cpu, cuda or mps")
        chosen = placement or BackendSpec.parse(spec.rollouts)
        shares(spec.ppo.envs, chosen.workers)  # raises before a process is started if they do not fit
        make = make or world_maker(spec)
        self.backend = backend or open_backend(spec, chosen)
        try:
            super().__init__(spec, make=make, world=RemoteWorld(make(1), spec.ppo.envs))
        except BaseException:
            self.backend.close()
            raise

    def make_collector(self, seed: int | None = None) -> RemoteCollector:
        return RemoteCollector(self.world, self.policy, self.backend, self.spec)

    def take_losses(self) -> list[str]:
        """Return one sentence per worker that was lost since the last call."""
        return self.backend.take_losses()

    def close(self) -> None:
        self.backend.close()
        super().close()


class RemoteWorld(World):
    """The environments of the workers as this process knows them: spaces and number of streams."""

    def __init__(self, single: World, streams: int) -> None:
        self._single = single
        self.name, self.num_envs, self.inexact = single.name, streams, single.inexact
        self.observation, self.action = single.observation, single.action

    def reset(self, seed: int) -> View:
        """Return the first stream's observation in every stream: for shapes only."""
        view, times = self._single.reset(seed), self.num_envs
        mask = view.action_mask
        return View(
            obs={name: np.repeat(x[:1], times, axis=0) for name, x in view.obs.items()},
            action_mask=None if mask is None else np.repeat(mask[:1], times, axis=0),
        )

    def step(self, action: np.ndarray) -> Step:
        raise EnvError(f"{self.name} is stepped by rollout workers; it has no step in this process")

    def state(self) -> dict[str, Any]:
        return {}

    def set_state(self, state: dict[str, Any]) -> View:
        return self.reset(0)

    def close(self) -> None:
        self._single.close()


class RemoteCollector(Collector):
    """Join the pieces of a backend's workers to rollouts; scale the rewards, which needs all streams."""

    def __init__(self, world: World, policy: Policy, backend: RolloutBackend, spec: RunSpec) -> None:
        super().__init__(
            world,
            policy,
            steps=spec.ppo.rollout_steps,
            gamma=spec.ppo.gamma,
            config=spec.collect,
            seed=spec.seed,
            path="torch",
        )
        self.backend, self.overlap = backend, spec.overlap
        self.waited = 0.0
        """Seconds that the learner waited for the last rollout."""
        self._pending = False
        self._ready: list[Piece] = []
        """Pieces that a checkpoint waited for: those of the next rollout."""
        self._serials = [deque[str](maxlen=REMEMBERED) for _ in range(backend.workers)]

    def collect(self, policy_version: int = 0) -> Rollout:
        begin = time.perf_counter()
        if not self._pending and not self._ready:
            self._order(policy_version)
        pieces, self._ready = self._ready or self._receive(), []
        self.waited = time.perf_counter() - begin
        if self.overlap:
            self._order(policy_version)
        rollout = self._join(pieces)
        slowest = max(pieces, key=lambda piece: piece.seconds.get("collect", 0.0)).seconds
        self.seconds = {"collect": time.perf_counter() - begin, **{k: slowest.get(k, 0.0) for k in ("env", "policy")}}
        return rollout

    def _order(self, version: int) -> None:
        weights = {name: x.detach().cpu().numpy() for name, x in self.policy.state_dict().items()}
        self.backend.publish(weights, version)
        self.backend.ask()
        self._pending = True

    def _receive(self) -> list[Piece]:
        pieces = self.backend.receive()
        self._pending = False
        return pieces

    def _join(self, pieces: Sequence[Piece]) -> Rollout:
        first, repeated, replaced = 0, 0, np.zeros(self.world.num_envs, dtype=bool)
        for piece, serials in zip(pieces, self._serials, strict=True):
            streams = piece.rollout.reward.shape[1]
            if piece.serial in serials:  # already learned from
                piece.rollout.valid[...] = False
                repeated += 1
            else:
                self.env_steps += piece.steps
                for episode in piece.episodes:
                    self.episodes.add(replace(episode, stream=first + episode.stream))
            serials.append(piece.serial)
            replaced[first : first + streams] = piece.began_anew
            first += streams
        self.scaler.running = np.where(replaced, 0.0, self.scaler.running)
        rollout = join(pieces)
        if repeated:
            rollout.stats["pieces_twice"] = float(repeated)
        if lost := sum(piece.began_anew for piece in pieces):
            rollout.stats["worker_restarts"] = float(lost)
        if not self.config.normalize_reward:
            return rollout
        raw = np.where(rollout.valid, rollout.reward, 0.0).astype(np.float64)
        reward = self.scaler.scale(raw, rollout.ended, rollout.valid)
        rollout.stats["return_std"] = float(np.sqrt(self.scaler.var))
        return replace(rollout, reward=np.where(rollout.valid, reward, 0.0).astype(np.float32))

    def state(self) -> dict[str, Any]:
        """Return the state of this collector and of the workers; pending pieces are awaited and included."""
        if self._pending:
            self._ready = self._receive()
        return {
            **super().state(),
            "far": {
                "workers": {str(k): state for k, state in enumerate(self.backend.states())},
                "ready": {str(k): _packed(piece) for k, piece in enumerate(self._ready)},
            },
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        remote = state.get("far", {"workers": {}, "ready": {}})
        super().set_state({name: part for name, part in state.items() if name != "far"})
        known = len(remote["workers"])
        if known != self.backend.workers:
            raise ConfigError(
                f"this run has rollouts of {known or 'no'} workers, but there are {self.backend.workers} now; "
                "resume with as many, or start a new run --from this one"
            )
        self.backend.set_states([remote["workers"][str(k)] for k in range(known)])
        self._ready = [_unpacked(remote["ready"][str(k)]) for k in range(len(remote["ready"]))]


# Fields of a `Piece` that a checkpoint holds unchanged.
_PLAIN = ("worker", "serial", "version", "steps", "began_anew")


def _packed(piece: Piece) -> dict[str, Any]:
    rollout = piece.rollout
    return {
        "arrays": {name: x for name, x in rollout.arrays().items() if "." not in name},
        **{name: dict(getattr(rollout, name)) for name in ("obs", "context", "stats")},
        "episodes": [list(asdict(episode).values()) for episode in piece.episodes],
        **{name: getattr(piece, name) for name in _PLAIN},
    }


def _unpacked(packed: dict[str, Any]) -> Piece:
    parts = {name: dict(packed[name]) for name in ("obs", "context", "stats")}
    return Piece(
        rollout=Rollout(**parts, **packed["arrays"]),
        episodes=[Episode(*fields) for fields in packed["episodes"]],
        **{name: packed[name] for name in _PLAIN},
    )
