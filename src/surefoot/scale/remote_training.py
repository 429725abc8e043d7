"""A training whose rollouts are made elsewhere: same learner, same run directory, same checkpoints."""

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
from surefoot.scale.backend import Piece, RolloutBackend, join, shares
from surefoot.scale.backend_spec import BackendSpec, open_backend
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.episodes import Episode
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training, WorldMaker, world_maker

REMEMBERED = 64
"""Serials kept of each worker, to notice a piece that comes twice."""


class FarTraining(Training):
    """Collects by a `RolloutBackend` in place of a world of its own.

    With `spec.overlap` the workers walk while the learner learns: every rollout is made by the policy before the newest
    one, which `policy_lag` in the report says. Without it, learner and workers take turns, and lag is 0.
    """

    def __init__(
        self,
        spec: RunSpec,
        *,
        make: WorldMaker | None = None,
        backend: RolloutBackend | None = None,
        placement: BackendSpec | None = None,
    ) -> None:
        _refuse_what_stays_here(spec)
        chosen = placement or BackendSpec.parse(spec.rollouts)
        shares(spec.ppo.envs, chosen.workers)  # says so before a process is started, if they do not fit
        make = make or world_maker(spec)
        self.backend = backend or open_backend(spec, chosen)
        try:
            super().__init__(spec, make=make, world=FarWorld(make(1), spec.ppo.envs))
        except BaseException:
            self.backend.close()
            raise

    def make_collector(self) -> FarCollector:
        return FarCollector(self.world, self.policy, self.backend, self.spec)

    def take_losses(self) -> list[str]:
        """A sentence for each worker that was lost since last asked."""
        return self.backend.take_losses()

    def close(self) -> None:
        """End the workers."""
        self.backend.close()
        super().close()


class FarWorld(World):
    """What this process knows of a world that is walked elsewhere: its spaces, and how many streams there are."""

    def __init__(self, one: World, streams: int) -> None:
        self._one = one
        self.name, self.num_envs, self.inexact = one.name, streams, one.inexact
        self.observation, self.action = one.observation, one.action

    def reset(self, seed: int) -> View:
        """What the first stream would see, in every stream: for shapes only."""
        view, times = self._one.reset(seed), self.num_envs
        mask = view.action_mask
        return View(
            obs={name: np.repeat(x[:1], times, axis=0) for name, x in view.obs.items()},
            action_mask=None if mask is None else np.repeat(mask[:1], times, axis=0),
        )

    def step(self, action: np.ndarray) -> Step:
        raise EnvError(f"{self.name} is walked by workers elsewhere; it has no step here")

    def state(self) -> dict[str, Any]:
        return {}

    def set_state(self, state: dict[str, Any]) -> View:
        return self.reset(0)

    def close(self) -> None:
        self._one.close()


class FarCollector(Collector):
    """Joins the pieces of a backend's workers to rollouts; whatever needs all streams at once is done here."""

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
        """Seconds of the last rollout that the learner had nothing to do."""
        self._under_way = False
        self._ready: list[Piece] = []
        """Pieces that a checkpoint had to wait for: the next rollout's."""
        self._serials = [deque[str](maxlen=REMEMBERED) for _ in range(backend.workers)]

    def collect(self, policy_version: int = 0) -> Rollout:
        begin = time.perf_counter()
        if not self._under_way and not self._ready:
            self._order(policy_version)
        pieces = self._ready or self._hear()
        self._ready = []
        self.waited = time.perf_counter() - begin
        if self.overlap:
            self._order(policy_version)
        rollout = self._joined(pieces)
        slowest = max(pieces, key=lambda piece: piece.seconds.get("collect", 0.0)).seconds
        self.seconds = {"collect": time.perf_counter() - begin, **{k: slowest.get(k, 0.0) for k in ("env", "policy")}}
        return rollout

    def _order(self, version: int) -> None:
        weights = {name: x.detach().cpu().numpy() for name, x in self.policy.state_dict().items()}
        self.backend.publish(weights, version)
        self.backend.ask()
        self._under_way = True

    def _hear(self) -> list[Piece]:
        pieces = self.backend.hear()
        self._under_way = False
        return pieces

    def _joined(self, pieces: Sequence[Piece]) -> Rollout:
        first, twice, anew = 0, 0, np.zeros(self.world.num_envs, dtype=bool)
        for piece, seen in zip(pieces, self._serials, strict=True):
            streams = piece.rollout.reward.shape[1]
            if piece.serial in seen:  # learned from already
                piece.rollout.valid[...] = False
                twice += 1
            else:
                self.env_steps += piece.steps
                for episode in piece.episodes:
                    self.episodes.add(replace(episode, stream=first + episode.stream))
            seen.append(piece.serial)
            anew[first : first + streams] = piece.began_anew
            first += streams
        self.scaler.running = np.where(anew, 0.0, self.scaler.running)
        rollout = join(pieces)
        if twice:
            rollout.stats["pieces_twice"] = float(twice)
        if lost := sum(piece.began_anew for piece in pieces):
            rollout.stats["worker_restarts"] = float(lost)
        if not self.config.normalize_reward:
            return rollout
        raw = np.where(rollout.valid, rollout.reward, 0.0).astype(np.float64)
        reward = self.scaler.scale(raw, rollout.ended, rollout.valid)
        rollout.stats["return_std"] = float(np.sqrt(self.scaler.var))
        return replace(rollout, reward=np.where(rollout.valid, reward, 0.0).astype(np.float32))

    def state(self) -> dict[str, Any]:
        """Everything that moves, here and there; what the workers are at is waited for, and kept."""
        if self._under_way:
            self._ready = self._hear()
        return {
            **super().state(),
            "far": {
                "workers": {str(k): state for k, state in enumerate(self.backend.states())},
                "ready": {str(k): _packed(piece) for k, piece in enumerate(self._ready)},
            },
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken."""
        far = state.get("far", {"workers": {}, "ready": {}})
        super().set_state({name: part for name, part in state.items() if name != "far"})
        known = len(far["workers"])
        if known != self.backend.workers:
            raise ConfigError(
                f"this run's rollouts were made by {known or 'no'} workers, and {self.backend.workers} are here; "
                "go on with as many, or begin a new run --from this one"
            )
        self.backend.set_states([far["workers"][str(k)] for k in range(known)])
        self._ready = [_unpacked(far["ready"][str(k)]) for k in range(len(far["ready"]))]


_PLAIN = ("worker", "serial", "version", "steps", "began_anew")
"""Fields of a `Piece` that a checkpoint holds as they are."""


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


def _refuse_what_stays_here(spec: RunSpec) -> None:
    if spec.ppo.temperature != 1.0:
        raise ConfigError("temperature is not known to workers elsewhere; leave it at 1.0, or rollouts at here")
    if spec.collect.curiosity != "none":
        raise ConfigError(f"curiosity={spec.collect.curiosity} needs its rollouts made here; leave rollouts at here")
    if spec.overlap and spec.ppo.max_policy_lag == 0:
        raise ConfigError(
            "overlap makes rollouts one policy old, and max_policy_lag=0 drops them all; allow at least 1"
        )
    if torch.device(spec.ppo.device if spec.ppo.device != "auto" else "cpu").type not in ("cpu", "cuda", "mps"):
        raise ConfigError(f"device is {spec.ppo.device}; workers act on cpu, a learner learns on cpu, cuda or mps")
