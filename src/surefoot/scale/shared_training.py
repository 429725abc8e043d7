"""A training that several processes share; the first of them owns the run, the others do as it says."""

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
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.nets.policy import load_weights
from surefoot.scale.backend import shares
from surefoot.scale.process_group import ProcessGroup
from surefoot.scale.shared_learner import SharedLearner, moments_of_all
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.reward import RewardScaler
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training, WorldMaker

UPDATE, STATE, STOP = range(1, 4)


class TogetherTraining(Training):
    """A `Training` of this process's share of the streams, whose learner is everybody's."""

    def __init__(self, spec: RunSpec, group: ProcessGroup, *, make: WorldMaker | None = None) -> None:
        if spec.collect.curiosity != "none" or spec.rollouts != "here":
            raise ConfigError("learning together goes neither with curiosity nor with rollouts made elsewhere")
        self.group, self.whole = group, replace(spec, learners=group.size)
        streams = shares(spec.ppo.envs, group.size)[group.rank]
        self._steps = 0
        super().__init__(replace(self.whole, ppo=spec.ppo.replace(envs=streams)), make=make)
        self.spec = self.whole

    def make_learner(self) -> Learner:
        spec = self.whole
        learner = SharedLearner(self.policy, spec.ppo, self.group, total_updates=spec.total_updates, device=self.device)
        learner.refuse_to_part()
        return learner

    def make_collector(self) -> Collector:
        spec, rank = self.spec, self.group.rank
        collector = Collector(
            self.world,
            self.policy,
            steps=spec.ppo.rollout_steps,
            gamma=spec.ppo.gamma,
            config=spec.collect,
            seed=seed_for(f"process {rank}", spec.seed) % 2**31,
            device=self.device,
            path=spec.ppo.path,
        )
        collector.scaler = RewardScaler(
            self.world.num_envs,
            gamma=spec.ppo.gamma,
            clip=spec.collect.reward_clip,
            moments=lambda returns: moments_of_all(self.group, returns),
        )
        return collector

    @property
    def env_steps(self) -> int:
        """Real steps of all processes."""
        return self._steps

    def update(self, rollouts: list[Rollout] | None = None) -> UpdateReport:
        self._lead(UPDATE)
        report = super().update(rollouts)
        self._steps = int(self.group.sum_(torch.tensor([self.collector.env_steps])))
        return report

    def state(self) -> dict[str, Any]:
        """The parts of a checkpoint, the streams of all processes in it."""
        self._lead(STATE)
        assert isinstance(self.learner, SharedLearner)
        self.learner.refuse_to_part()
        own = to_bytes({"collector": self.collector_state()})
        sent = b"".join(len(part).to_bytes(8, "little") + part for part in own)
        everybody = [from_bytes(_split(data))["collector"] for data in self.group.gather_bytes(sent)]
        ranks = {str(rank): state for rank, state in enumerate(everybody)}
        return {**super().state(), "collector": {**everybody[0], "env_steps": self._steps, "ranks": ranks}}

    def set_state(self, parts: dict[str, Any]) -> None:
        """Go on from a checkpoint's parts, each process with its own streams. All must be given the same."""
        ranks = parts["collector"].get("ranks", {})
        if len(ranks) != self.group.size:
            raise ConfigError(
                f"this run was learned by {len(ranks) or 1} processes, and {self.group.size} are here; go on with as many"
            )
        load_weights(self.policy, parts["weights"])
        self.learner.set_state(parts)
        self.diagnostics.resume(self.learner.updates)
        self.collector.set_state(ranks[str(self.group.rank)])
        self._steps = int(parts["collector"]["env_steps"])

    def follow(self) -> None:
        """Do what the first process does, until it stops. Ctrl-C is the first one's to answer."""
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_IGN)
        while (word := self.group.tell()) != STOP:
            if word == UPDATE:
                self.update()
            else:
                self.state()
        super().close()

    def close(self) -> None:
        with suppress(RuntimeError):  # where the others are gone, there is nobody to tell
            self._lead(STOP)
        super().close()

    def _lead(self, word: int) -> None:
        if self.group.rank == 0:
            self.group.tell(word)


def _split(data: bytes) -> list[bytes]:
    parts: list[bytes] = []
    while data:
        size = int.from_bytes(data[:8], "little")
        parts.append(data[8 : 8 + size])
        data = data[8 + size :]
    return parts
