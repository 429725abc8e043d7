"""One run in memory: a world, a policy, a collector and a learner built from a spec, with one state for all of them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch

from surefoot.data.rollout import Rollout
from surefoot.envs.api import World
from surefoot.envs.workers.process_world import ProcessWorld
from surefoot.errors import ConfigError, WorkersLost
from surefoot.learn.checkpoint.typed_state import restoring
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.networks import refuse_stateful_layers
from surefoot.nets.policy import Policy, load_weights
from surefoot.train.algorithms.curiosity import Curiosity
from surefoot.train.collect.collector import Collector
from surefoot.train.device import choose_device, keep_large_blocks
from surefoot.train.diagnose.diagnostics import Diagnostics
from surefoot.train.spec import RunSpec
from surefoot.train.spec_worlds import Counting, WorldMaker, world_maker


class Training:
    """Trains one policy. `update` collects one rollout and learns from it; `state` is everything that changes.

    Iterating yields one report per update until the spec's steps are done.

    Args:
        spec: Environment, settings and length of the run.
        make: Makes worlds of this kind. Default: by the name in the spec.
        world: The world to train in. Default: `make` is called.
        policy: The policy to train. Default: an `ActorCritic` with the settings of the spec.
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
        self.world = world or self.make(spec.ppo.envs, spec.collect.workers)
        if isinstance(self.world, ProcessWorld) and spec.collect.worker_timeout != "auto":
            self.world.worker_timeout = spec.collect.worker_timeout
        self._counting = self.world if isinstance(self.world, Counting) else None
        self._losses: list[str] = []
        if self.world.num_envs != spec.ppo.envs:
            raise ConfigError(f"the world has {self.world.num_envs} envs but the config has envs={spec.ppo.envs}")
        self.policy = policy or ActorCritic(self.world.observation, self.world.action, spec.net, seed=spec.seed)
        if not spec.net.allow_stateful_norm and isinstance(self.policy, torch.nn.Module):
            refuse_stateful_layers(self.policy)
        self.learner = self.make_learner()
        keep_large_blocks(self.policy)
        self.collector = self.make_collector()
        self.diagnostics = Diagnostics(self.policy, self.world.action, self.world.name)
        self.curiosity: Curiosity | None = None
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
        """Return a learner of the policy with the settings of the spec."""
        return Learner(self.policy, self.spec.ppo, total_updates=self.spec.total_updates, device=self.device)

    def make_collector(self, seed: int | None = None) -> Collector:
        """Return the collector; its seed is by default the spec's."""
        spec = self.spec
        return Collector(
            self.world,
            self.policy,
            steps=spec.ppo.rollout_steps,
            gamma=spec.ppo.gamma,
            config=spec.collect,
            seed=spec.seed if seed is None else seed,
            device=self.device,
            path=spec.ppo.path,
        )

    @property
    def env_steps(self) -> int:
        """Real steps taken so far."""
        return self.collector.env_steps

    @property
    def finished(self) -> bool:
        """Whether the spec's steps are done."""
        return self.env_steps >= self.spec.total_steps

    def update(self, rollouts: list[Rollout] | None = None) -> UpdateReport:
        """Collect one rollout and learn from it; the rollout is appended to `rollouts`, if given."""
        # By steps, not by updates: with ghost rows or dropped episodes there are more updates than planned.
        progress = min(1.0, self.env_steps / self.spec.total_steps)
        with self.learner.acting(progress):
            rollout = self.collector.collect(self.learner.policy_version)
        if rollouts is not None:
            rollouts.append(rollout)
        if isinstance(self.world, ProcessWorld) and (lost := self.world.take_losses()):
            rollout.stats["worker_restarts"] = float(len(lost))
            self._losses += lost
        if self._counting is not None:
            rollout.stats.update(self._counting.take_counts())
        rollout.stats.update(self.diagnostics.examine(rollout, self.learner.updates))
        if self.diagnostics.due(self.learner.updates):
            rollout.stats.update(self.diagnostics.measure(rollout))
        else:
            self.diagnostics.forget()
        if self.curiosity is not None:
            after, updates = self.collector.view.obs, self.learner.updates
            rollout = self.curiosity.add_bonus(rollout, after, progress=progress, updates=updates)
        report = self.learner.update(rollout, progress=progress)
        report.seconds.update(self.collector.seconds)
        if self.curiosity is not None:
            report.seconds["curiosity"] = self.curiosity.seconds
        report.stats.update(self.diagnostics.weight_changes())
        return report

    def take_losses(self) -> list[str]:
        """Return one sentence per worker process that was lost since the last call."""
        lost, self._losses = self._losses, []
        return lost + (self.world.take_losses() if isinstance(self.world, ProcessWorld) else [])

    def __iter__(self) -> Training:
        return self

    def __next__(self) -> UpdateReport:
        if self.finished:
            raise StopIteration
        return self.update()

    def state(self) -> dict[str, Any]:
        """Return copies of all that a checkpoint keeps."""
        weights = {name: x.detach().clone() for name, x in self.policy.state_dict().items()}
        return {
            "weights": weights,
            **self.learner.state(),
            "collector": self.collector_state(),
            "policy": self.policy.describe(),
            **({} if self.curiosity is None else {"curiosity": self.curiosity.state()}),
        }

    def collector_state(self) -> dict[str, Any]:
        """Return the collector's state with all workers present; the streams of a lost one start new episodes."""
        world, collector = self.world, self.collector
        if not isinstance(world, ProcessWorld):
            return collector.state()
        while True:
            # A worker may be lost while its state is read: try again with the one that replaced it.
            with suppress(WorkersLost):
                if (settled := world.settle()) is not None:
                    view, streams = settled
                    collector.view = collector.guard.cleaned(view)
                    collector.begin_new_episodes(streams)
                lost, state = world.losses, collector.state()
                if lost == world.losses:
                    return state

    def set_state(self, parts: dict[str, Any]) -> None:
        """Continue from a checkpoint's parts."""
        with restoring("weights"):
            load_weights(self.policy, parts["weights"])
        self.learner.set_state(parts)
        self.diagnostics.resume(self.learner.updates)
        with restoring("collector"):
            self.collector.set_state(parts["collector"])
        # A checkpoint of a run without curiosity starts with a new module.
        if self.curiosity is not None and "curiosity" in parts:
            with restoring("curiosity"):
                self.curiosity.set_state(parts["curiosity"])

    def close(self) -> None:
        """Close the environments."""
        self.world.close()
