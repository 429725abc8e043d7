"""From a world and a policy to a rollout: T steps of N streams, cut without resetting, with true successors."""

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
from surefoot.nets.policy import Policy
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.kernel_actor import kernel_actor
from surefoot.train.collect.kernel_rollout import KernelActor, Tape
from surefoot.train.collect.kernel_walk import walk
from surefoot.train.collect.nonfinite import NonFiniteGuard
from surefoot.train.collect.reward import OutlierWatch, RewardScaler
from surefoot.train.collect.torch_rollout import torch_rollout
from surefoot.train.config import CollectConfig


class Collector:
    """Walks N streams of a world with a policy, `steps` at a time; a rollout begins where the last one stopped."""

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
        self.generator = torch.Generator(self.device).manual_seed(seed_for("act", seed))
        """Every random number of acting."""
        self.actor = kernel_actor(policy, seed) if path != "torch" else None
        """The kernel in place of torch, where it knows the policy."""
        self.view = world.reset(seed)
        self.start = np.ones(world.num_envs, dtype=bool)
        self.context = policy.initial_context(world.num_envs)
        self.guard = NonFiniteGuard(world, self.config.nonfinite)
        self.episodes = EpisodeLog(world.num_envs)
        self.scaler = RewardScaler(world.num_envs, gamma=gamma, clip=self.config.reward_clip)
        self.outliers = OutlierWatch()
        self.env_steps = 0
        """Real steps taken since the run began; ghost rows do not count (P12)."""
        self.seconds: dict[str, float] = {}
        """Where the last rollout's time went."""
        self.guard.check_first(self.view)

    def collect(self, policy_version: int = 0) -> Rollout:
        """The next rollout, made by the policy as it is now."""
        begin = time.perf_counter()
        rollout, in_world = (
            torch_rollout(self, policy_version) if self.actor is None else self._by_kernel(self.actor, policy_version)
        )
        total = time.perf_counter() - begin
        self.seconds = {"collect": total, "env": in_world, "policy": total - in_world}
        return rollout

    def _by_kernel(self, actor: KernelActor, policy_version: int) -> tuple[Rollout, float]:
        """The rollout, and the seconds it spent in the world."""
        actor.net.refresh()
        world, start = self.world, self.start.copy()
        tape = Tape(actor, world, self.steps, masked=self.view.action_mask is not None)
        if isinstance(world, NativeWorld) and self.config.nonfinite == "raise":
            view = tape.run(world, self.view, start, self.episodes)
        else:
            view = walk(tape, world, self.view, start, self.guard, self.episodes)
        self.env_steps += int(np.count_nonzero(tape.valid)) + tape.refused
        self.view, self.start = view, start
        return self.finish(tape.builder, policy_version), tape.in_world

    def finish(
        self, builder: RolloutBuilder, version: int, ahead: np.ndarray | None = None, context: Arrays | None = None
    ) -> Rollout:
        """Return what was written as a rollout, its rewards as they are learned from."""
        builder.exclude_dropped()
        arrays = builder.arrays
        reward, stats = self._rewards(arrays["reward"], arrays["terminated"] | arrays["truncated"], arrays["valid"])
        return builder.build(version, ahead=ahead, context=context, stats=stats, reward=reward.astype(np.float32))

    def _rewards(self, reward: np.ndarray, ended: np.ndarray, valid: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
        """Rewards as learned from, and what was done to them."""
        stats: dict[str, float] = {}
        whole = np.count_nonzero(valid) == valid.size
        if self.config.reward_range is not None:
            low, high = self.config.reward_range
            outside = ((reward < low) | (reward > high)) & valid
            stats["reward_out_of_range"] = float(outside.sum())
            reward = np.clip(reward, low, high)
        else:
            stats["reward_outliers"] = float(self.outliers.count_in(reward.ravel() if whole else reward[valid]))
        if self.config.normalize_reward:
            reward = self.scaler.scale(np.where(valid, reward, 0.0), ended, valid)
            stats["return_std"] = float(np.sqrt(self.scaler.var))
        if self.guard.dropped:
            stats["dropped_episodes"], self.guard.dropped = float(self.guard.dropped), 0
        return reward if whole else np.where(valid, reward, 0.0), stats

    def state(self) -> dict[str, Any]:
        """Everything that moves, the world included; `set_state` goes on to the last bit if the world is exact."""
        return {
            "world": self.world.state(),
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
        """Go on from where `state` was taken. A world that cannot be put back starts new episodes instead."""
        self.view = self.world.set_state(state["world"])
        if self.world.inexact is None:
            self.start = np.array(state["start"])
            self.episodes.set_state(state["episodes"])
            self.scaler.set_state(state["scaler"])
            self.guard.quarantined = np.array(state["quarantined"])
            self.view = self.guard.cleaned(self.view)
            self.context = {name: torch.as_tensor(x) for name, x in state["context"].items()}
        else:
            # The half episodes are gone, so what was added up of them is too; everything else goes on.
            nothing = {"returns": self.episodes.returns, "lengths": self.episodes.lengths}
            self.episodes.set_state({**state["episodes"], **nothing})
            self.scaler.set_state({**state["scaler"], "running": self.scaler.running})
        self.outliers.set_state(state["outliers"])
        self.generator.set_state(torch.as_tensor(state["generator"]))
        if self.actor is not None and "kernel_rng" in state:
            self.actor.rng[:] = state["kernel_rng"]
        self.env_steps = state["env_steps"]
