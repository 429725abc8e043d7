"""Collects rollouts: T steps of N streams with a policy, cut without resetting, each step with its true successor."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from surefoot.data.rollout import Rollout
from surefoot.data.rollout_builder import RolloutBuilder
from surefoot.data.seeds import seed_for
from surefoot.envs.api import Arrays, World
from surefoot.envs.builtin.native import NativeWorld
from surefoot.envs.declared import declared_view
from surefoot.learn.checkpoint.typed_state import CollectorCounts, refuse_unlike, typed
from surefoot.nets.policy import Policy
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.kernel_rollout import KernelActor, KernelRollout, kernel_actor
from surefoot.train.collect.kernel_steps import collect_steps
from surefoot.train.collect.nonfinite import NonFiniteGuard
from surefoot.train.collect.reward import OutlierWatch, RewardScaler
from surefoot.train.collect.torch_steps import collect_with_torch
from surefoot.train.config import CollectConfig


class Collector:
    """Steps N streams of a world with a policy. A rollout begins where the previous one stopped.

    Args:
        world: The environment, with N streams.
        policy: Chooses the actions.
        steps: Steps per stream in one rollout.
        gamma: Discount of the learner; normalized rewards are scaled by the spread of the discounted return.
        config: Reward scaling and the reaction to NaN. Default: raw rewards, NaN is an error.
        seed: Seed of the world and of the actions.
        device: Where the policy computes.
        path: "torch" acts with torch; "auto" uses the C kernel if it supports the policy.
    """

    def __init__(
        self,
        world: World,
        policy: Policy,
        *,
        steps: int,
        gamma: float,
        config: CollectConfig | None = None,
        seed: int = 0,
        device: str | torch.device = "cpu",
        path: str = "auto",
    ) -> None:
        self.world, self.policy, self.steps = world, policy, steps
        self.config = config or CollectConfig()
        self.device = torch.device(device)
        # All random numbers of acting come from this generator, or from the kernel actor's own.
        self.generator = torch.Generator(self.device).manual_seed(seed_for("act", seed))
        self.actor = kernel_actor(policy, seed) if path != "torch" else None
        self.view = declared_view(world, world.reset(seed))
        self.start = np.ones(world.num_envs, dtype=bool)
        self.context = policy.initial_context(world.num_envs)
        self.guard = NonFiniteGuard(world, self.config.nonfinite)
        self.episodes = EpisodeLog(world.num_envs)
        self.scaler = RewardScaler(world.num_envs, gamma=gamma, clip=self.config.reward_clip)
        self.outliers = OutlierWatch()
        self.env_steps = 0
        """Real steps since the run began; ghost rows do not count (P12)."""
        self.seconds: dict[str, float] = {}
        """Time that the last rollout took, by part."""
        self.guard.check_first(self.view)

    def collect(self, policy_version: int = 0) -> Rollout:
        """Return the next rollout, collected with the policy's current weights.

        Args:
            policy_version: Number of updates behind these weights; the learner uses it to recognize old data.
        """
        begin = time.perf_counter()
        # The policy may have been changed since the last rollout: torch acts for one that the kernel does not support.
        if self.actor is None or self.actor.refresh() is not None:
            steps = collect_with_torch(self)
            rollout = self._finish(steps.builder, policy_version, steps.ahead, steps.context)
            in_world = steps.seconds_in_world
        else:
            rollout, in_world = self._collect_with_kernel(self.actor, policy_version)
        total = time.perf_counter() - begin
        # The kernel estimates the time of fast environments from some of their steps.
        in_world = min(in_world, total)
        self.seconds = {"collect": total, "env": in_world, "policy": total - in_world}
        return rollout

    def _collect_with_kernel(self, actor: KernelActor, policy_version: int) -> tuple[Rollout, float]:
        """Return the rollout and the seconds spent in the world."""
        world, start = self.world, self.start.copy()
        # The memory at the first step: an update of a sequential policy starts from it.
        before = self.context_arrays()
        context = {name: x.copy() for name, x in before.items()}
        rollout = KernelRollout(actor, world, self.steps, masked=self.view.action_mask is not None, context=context)
        if isinstance(world, NativeWorld) and self.config.nonfinite == "raise":
            view = rollout.collect_native(world, self.view, start, self.episodes)
        else:
            view = collect_steps(rollout, world, self.view, start, self.guard, self.episodes)
        self.env_steps += int(np.count_nonzero(rollout.valid)) + rollout.refused
        self.view, self.start = view, start
        self.context |= {name: torch.from_numpy(x) for name, x in context.items()}
        return self._finish(rollout.builder, policy_version, context=before), rollout.in_world

    def context_arrays(self) -> Arrays:
        """Return copies of what a sequential policy carries from step to step, {name: [N, …]}; empty without memory."""
        return {name: x.cpu().numpy().copy() for name, x in self.context.items()} if self.policy.sequential else {}

    def _finish(
        self, builder: RolloutBuilder, version: int, ahead: np.ndarray | None = None, context: Arrays | None = None
    ) -> Rollout:
        """Return the collected steps as a rollout, with the rewards that the learner gets."""
        builder.exclude_dropped()
        reward, valid = builder.arrays["reward"], builder.arrays["valid"]
        stats: dict[str, float] = {}
        all_valid = np.count_nonzero(valid) == valid.size
        if self.config.reward_range is not None:
            low, high = self.config.reward_range
            outside = ((reward < low) | (reward > high)) & valid
            stats["reward_out_of_range"] = float(outside.sum())
            reward = np.clip(reward, low, high)
        else:
            stats["reward_outliers"] = float(self.outliers.count_in(reward.ravel() if all_valid else reward[valid]))
        if self.config.normalize_reward:
            ended = builder.arrays["terminated"] | builder.arrays["truncated"]
            reward = self.scaler.scale(np.where(valid, reward, 0.0), ended, valid)
            stats["return_std"] = float(np.sqrt(self.scaler.var))
        if self.guard.dropped:
            stats["dropped_episodes"], self.guard.dropped = float(self.guard.dropped), 0
        reward = (reward if all_valid else np.where(valid, reward, 0.0)).astype(np.float32)
        return builder.build(version, ahead=ahead, context=context, stats=stats, reward=reward)

    def begin_new_episodes(self, streams: np.ndarray) -> None:
        """Forget the running episodes of `streams` ([N] bool): their world starts new ones."""
        self.start = self.start | streams
        self.scaler.running = np.where(streams, 0.0, self.scaler.running)
        for stream in np.flatnonzero(streams):
            self.episodes.forget(int(stream))

    def state(self) -> dict[str, Any]:
        """Return everything that changes, the world included."""
        return {"world": self.world.state(), **self._own_state()}

    def _own_state(self) -> dict[str, Any]:
        return {
            "generator": self.generator.get_state(),
            **({} if self.actor is None else {"kernel_rng": self.actor.rng.copy()}),
            "start": self.start.copy(),
            "context": {name: x.clone() for name, x in self.context.items()},
            "quarantined": self.guard.quarantined.copy(),
            "episodes": self.episodes.state(),
            "scaler": self.scaler.state(),
            "outliers": self.outliers.state(),
            "env_steps": self.env_steps,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`: bit-exact, or with new episodes if the world cannot restore its state."""
        refuse_unlike(state, self._own_state(), "collector")
        self.view = self.world.set_state(state["world"])
        if self.world.inexact is None:
            self.start = np.array(state["start"])
            self.episodes.set_state(state["episodes"])
            self.scaler.set_state(state["scaler"])
            self.guard.quarantined = np.array(state["quarantined"])
            self.view = self.guard.cleaned(self.view)
            self.context = {name: torch.as_tensor(x) for name, x in state["context"].items()}
        else:
            # The running episodes are lost, so their sums start at 0; statistics and counters continue.
            running = {"returns": self.episodes.returns, "lengths": self.episodes.lengths}
            self.episodes.set_state({**state["episodes"], **running})
            self.scaler.set_state({**state["scaler"], "running": self.scaler.running})
        self.outliers.set_state(state["outliers"])
        self.generator.set_state(torch.as_tensor(state["generator"]))
        # A checkpoint of the torch path has no kernel state; the kernel then starts from its seed.
        if self.actor is not None and "kernel_rng" in state:
            self.actor.rng[:] = state["kernel_rng"]
        self.env_steps = typed({"collector": state}, "collector", CollectorCounts).env_steps
