"""A world, a policy, a collector and a learner put together from a spec, with one state that is all of them."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch

from surefoot.data.rollout import Rollout
from surefoot.envs.api import World
from surefoot.envs.make import make_world
from surefoot.envs.workers.placement import Workers
from surefoot.envs.workers.process_world import ProcessWorld
from surefoot.errors import ConfigError
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.networks import refuse_stateful_layers
from surefoot.nets.policy import Policy, load_weights
from surefoot.train.algorithms.curiosity import Curiosity
from surefoot.train.allocator import keep_large_blocks
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.lost_workers import state_with_all_workers
from surefoot.train.device import choose_device
from surefoot.train.diagnose.diagnostics import Vitals
from surefoot.train.spec import RunSpec


class WorldMaker(Protocol):
    """Makes worlds of one kind: for a number of streams, stepped by a number of workers."""

    def __call__(self, streams: int, workers: Workers = 0, /) -> World: ...


@runtime_checkable
class Counting(Protocol):
    """A world that counts what happens in it."""

    def take_counts(self) -> dict[str, float]:
        """What happened since last asked, by name; it goes into the report's stats."""
        ...


class Training:
    """One run in memory. `update` makes one rollout and learns from it; `state` is everything that moves.

    Iterating gives a report per update until the spec's steps are done.
    """

    def __init__(
        self,
        spec: RunSpec,
        *,
        make: WorldMaker | None = None,
        world: World | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.spec = spec
        self.device = choose_device(spec.ppo.device)
        self.make = make or world_maker(spec)
        """Worlds of this run's kind, for a number of streams."""
        self.world = world or self.make(spec.ppo.envs, spec.collect.workers)
        if isinstance(self.world, ProcessWorld) and spec.collect.worker_timeout != "auto":
            self.world.worker_timeout = spec.collect.worker_timeout
        self._losses: list[str] = []
        if self.world.num_envs != spec.ppo.envs:
            raise ConfigError(f"the world has {self.world.num_envs} envs but the config says envs={spec.ppo.envs}")
        self.policy = policy or ActorCritic(self.world.observation, self.world.action, spec.net, seed=spec.seed)
        if not spec.net.allow_stateful_norm and isinstance(self.policy, torch.nn.Module):
            refuse_stateful_layers(self.policy)
        self.learner = self.make_learner()
        keep_large_blocks(self.policy)
        self.collector = self.make_collector()
        self.vitals = Vitals(self.policy, self.world.action)
        """Numbers for the doctor."""
        self.curiosity: Curiosity | None = None
        """Adds a bonus to each rollout, where that is asked for."""
        if spec.collect.curiosity != "none":
            self.curiosity = Curiosity(
                spec.collect,
                self.world.observation,
                self.world.action,
                streams=self.world.num_envs,
                gamma=spec.ppo.gamma,
                seed=spec.seed,
                device=self.device,
            )

    def make_learner(self) -> Learner:
        """What moves the weights."""
        return Learner(self.policy, self.spec.ppo, total_updates=self.spec.total_updates, device=self.device)

    def make_collector(self) -> Collector:
        """What walks the world with the policy."""
        spec = self.spec
        return Collector(
            self.world,
            self.policy,
            steps=spec.ppo.rollout_steps,
            gamma=spec.ppo.gamma,
            config=spec.collect,
            seed=spec.seed,
            device=self.device,
            path=spec.ppo.path if spec.ppo.temperature == 1.0 else "torch",
        )

    @property
    def env_steps(self) -> int:
        """Real steps taken so far."""
        return self.collector.env_steps

    @property
    def finished(self) -> bool:
        """True once the spec's steps are done."""
        return self.env_steps >= self.spec.total_steps

    def update(self, kept: list[Rollout] | None = None) -> UpdateReport:
        """Collect one rollout and learn from it; `kept` takes the rollout in."""
        # By steps, not by updates: where rows are ghosts or dropped, there are more updates than planned.
        progress = min(1.0, self.env_steps / self.spec.total_steps)
        with self.learner.acting(progress):
            rollout = self.collector.collect(self.learner.policy_version)
        if kept is not None:
            kept.append(rollout)
        if isinstance(self.world, ProcessWorld) and (lost := self.world.take_losses()):
            rollout.stats["worker_restarts"] = float(len(lost))
            self._losses += lost
        if isinstance(self.world, Counting):
            rollout.stats.update(self.world.take_counts())
        if self.vitals.due(self.learner.updates):
            rollout.stats.update(self.vitals.seen(rollout))
        else:
            self.vitals.forget()
        if self.curiosity is not None:
            after, updates = self.collector.view.obs, self.learner.updates
            rollout = self.curiosity.pay(rollout, after, progress=progress, updates=updates)
        report = self.learner.update(rollout, progress=progress)
        report.seconds.update(self.collector.seconds)
        if self.curiosity is not None:
            report.seconds["curiosity"] = self.curiosity.seconds
        report.stats.update(self.vitals.moved())
        return report

    def take_losses(self) -> list[str]:
        """A sentence for each worker process that was lost since last asked."""
        lost, self._losses = self._losses, []
        return lost + (self.world.take_losses() if isinstance(self.world, ProcessWorld) else [])

    def __iter__(self) -> Training:
        return self

    def __next__(self) -> UpdateReport:
        if self.finished:
            raise StopIteration
        return self.update()

    def state(self) -> dict[str, Any]:
        """The parts of a checkpoint."""
        weights = {name: x.detach().clone() for name, x in self.policy.state_dict().items()}
        return {
            "weights": weights,
            **self.learner.state(),
            "collector": self.collector_state(),
            "policy": self.policy.describe(),
            **({} if self.curiosity is None else {"curiosity": self.curiosity.state()}),
        }

    def collector_state(self) -> dict[str, Any]:
        """The collector's, with no worker missing: where one was lost, new episodes begin before the state is taken."""
        return state_with_all_workers(self.collector, self.world)

    def set_state(self, parts: dict[str, Any]) -> None:
        """Go on from a checkpoint's parts."""
        load_weights(self.policy, parts["weights"])
        self.learner.set_state(parts)
        self.vitals.taken_up(self.learner.updates)
        self.collector.set_state(parts["collector"])
        # A model that was trained without gets its curiosity here, as new as on the first day.
        if self.curiosity is not None and "curiosity" in parts:
            self.curiosity.set_state(parts["curiosity"])

    def close(self) -> None:
        """Free the world."""
        self.world.close()


def world_maker(spec: RunSpec) -> WorldMaker:
    """What makes a spec's worlds."""

    def make(streams: int, workers: Workers = 0, /) -> World:
        kwargs = spec.env_kwargs or None
        return make_world(spec.env, streams, backend=spec.backend, env_kwargs=kwargs, workers=workers)

    return make
