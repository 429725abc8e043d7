"""Data-parallel training: the first process owns the run, the others follow its commands."""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch

from surefoot.data.rollout import Rollout
from surefoot.data.seeds import seed_for
from surefoot.errors import ConfigError
from surefoot.learn.checkpoint.checkpoint import from_bytes, to_bytes
from surefoot.learn.checkpoint.typed_state import restoring
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.nets.policy import load_weights
from surefoot.scale.backend import shares
from surefoot.scale.process_group import ProcessGroup
from surefoot.scale.shared_learner import SharedLearner, moments_of_all
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.reward import RewardScaler
from surefoot.train.spec import RunSpec
from surefoot.train.spec_worlds import WorldMaker
from surefoot.train.training import Training

# Commands of the first process.
UPDATE, STATE, STOP = range(1, 4)


class SharedTraining(Training):
    """A `Training` of this process's share of the streams, with a learner shared by all processes."""

    def __init__(self, spec: RunSpec, group: ProcessGroup, *, make: WorldMaker | None = None) -> None:
        if spec.collect.curiosity != "none" or spec.rollouts != "here":
            raise ConfigError("data-parallel learning supports neither curiosity nor rollouts other than here")
        self.group, self.full_spec = group, replace(spec, learners=group.size)
        streams = shares(spec.ppo.envs, group.size)[group.rank]
        self._steps = 0
        super().__init__(replace(self.full_spec, ppo=spec.ppo.replace(envs=streams)), make=make)
        self.spec = self.full_spec

    def make_learner(self) -> Learner:
        spec = self.full_spec
        learner = SharedLearner(self.policy, spec.ppo, self.group, total_updates=spec.total_updates, device=self.device)
        learner.check_same_weights()
        return learner

    def make_collector(self, seed: int | None = None) -> Collector:
        spec = self.spec
        collector = super().make_collector(seed_for(f"process {self.group.rank}", spec.seed) % 2**31)
        collector.scaler = RewardScaler(
            self.world.num_envs,
            gamma=spec.ppo.gamma,
            clip=spec.collect.reward_clip,
            moments=lambda returns: moments_of_all(self.group, returns),
        )
        return collector

    @property
    def env_steps(self) -> int:
        """Env steps of all processes."""
        return self._steps

    def update(self, rollouts: list[Rollout] | None = None) -> UpdateReport:
        self._lead(UPDATE)
        report = super().update(rollouts)
        self._steps = int(self.group.sum_(torch.tensor([self.collector.env_steps])))
        return report

    def state(self) -> dict[str, Any]:
        """Return the parts of a checkpoint, with the streams of all processes."""
        self._lead(STATE)
        assert isinstance(self.learner, SharedLearner)
        self.learner.check_same_weights()
        local = to_bytes({"collector": self.collector_state()})
        packed = b"".join(len(part).to_bytes(8, "little") + part for part in local)
        collectors = [from_bytes(_split(data))["collector"] for data in self.group.gather_bytes(packed)]
        ranks = {str(rank): state for rank, state in enumerate(collectors)}
        return {**super().state(), "collector": {**collectors[0], "env_steps": self._steps, "ranks": ranks}}

    @restoring("run")
    def set_state(self, parts: dict[str, Any]) -> None:
        """Restore a checkpoint; each process takes its own streams. All processes must pass the same parts."""
        ranks = parts["collector"].get("ranks", {})
        if len(ranks) != self.group.size:
            raise ConfigError(
                f"this run has {len(ranks) or 1} learner processes, but there are {self.group.size} now; resume with as many"
            )
        load_weights(self.policy, parts["weights"])
        self.learner.set_state(parts)
        self.diagnostics.resume(self.learner.updates)
        self.collector.set_state(ranks[str(self.group.rank)])
        self._steps = int(parts["collector"]["env_steps"])

    def follow(self) -> None:
        """Follow the commands of the first process until it stops. Only the first process handles Ctrl-C."""
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_IGN)
        while (command := self.group.broadcast()) != STOP:
            if command == UPDATE:
                self.update()
            else:
                self.state()
        super().close()

    def close(self) -> None:
        with suppress(RuntimeError):  # the other processes may have ended
            self._lead(STOP)
        super().close()

    def _lead(self, command: int) -> None:
        if self.group.rank == 0:
            self.group.broadcast(command)


def _split(data: bytes) -> list[bytes]:
    parts: list[bytes] = []
    while data:
        size = int.from_bytes(data[:8], "little")
        parts.append(data[8 : 8 + size])
        data = data[8 + size :]
    return parts
