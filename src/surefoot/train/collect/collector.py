"""From a world and a policy to a rollout: T steps of N streams, cut without resetting, with true successors."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.rollout import Rollout
from surefoot.data.seeds import seed_for
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.envs.builtin.native import NativeWorld
from surefoot.nets.policy import Policy, Seen
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.kernel_rollout import KernelActor, Tape, kernel_actor
from surefoot.train.collect.nonfinite import Guard
from surefoot.train.collect.reward import OutlierWatch, RewardScaler
from surefoot.train.config import CollectConfig


@dataclass(slots=True)
class _Tape:
    """What a rollout is made of, one entry a step."""

    obs: list[Arrays] = field(default_factory=list[Arrays])
    mask: list[np.ndarray] = field(default_factory=list[np.ndarray])
    action: list[Tensor] = field(default_factory=list[Tensor])
    log_prob: list[Tensor] = field(default_factory=list[Tensor])
    value: list[Tensor] = field(default_factory=list[Tensor])
    reward: list[np.ndarray] = field(default_factory=list[np.ndarray])
    terminated: list[np.ndarray] = field(default_factory=list[np.ndarray])
    truncated: list[np.ndarray] = field(default_factory=list[np.ndarray])
    start: list[np.ndarray] = field(default_factory=list[np.ndarray])
    valid: list[np.ndarray] = field(default_factory=list[np.ndarray])
    cut: list[tuple[int, np.ndarray, np.ndarray]] = field(default_factory=list[tuple[int, np.ndarray, np.ndarray]])
    """(step, which streams were cut short, what their last observations were worth)."""
    dropped: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    """(first step, last step, stream) of what must not be learned from."""


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
        self.guard = Guard(world, self.config.nonfinite)
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
            self._by_torch(policy_version) if self.actor is None else self._by_kernel(self.actor, policy_version)
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
            view = tape.walk(world, self.view, start, self.guard, self.episodes)
        self.env_steps += int(np.count_nonzero(tape.valid)) + tape.refused
        self.view, self.start = view, start
        for first, last, stream in tape.dropped:
            tape.valid[first : last + 1, stream] = False
        reward, stats = self._rewards(tape.reward, tape.terminated | tape.truncated, tape.valid)
        rollout = Rollout(
            obs=tape.obs,
            action=tape.action,
            log_prob=tape.log_prob,
            value=tape.value,
            next_value=tape.next_value,
            reward=reward.astype(np.float32),
            terminated=tape.terminated,
            truncated=tape.truncated,
            start=tape.start,
            valid=tape.valid,
            policy_version=np.full(tape.valid.shape, policy_version, dtype=np.int64),
            action_mask=tape.mask,
            stats=stats,
        )
        return rollout, tape.in_world

    @torch.no_grad()
    def _by_torch(self, policy_version: int) -> tuple[Rollout, float]:
        """The same, step by step through the policy itself."""
        in_world, tape = 0.0, _Tape()
        episode_from = np.zeros(self.world.num_envs, dtype=np.int64)
        walked_in = {name: x.cpu().numpy().copy() for name, x in self.context.items()} if self.policy.sequential else {}
        self.context = self.policy.renew_context(self.context)
        for t in range(self.steps):
            seen = self._seen(self.view)
            out = self.policy.act(seen, generator=self.generator)
            action = self.policy.env_action(out.action.cpu().numpy())
            before = time.perf_counter()
            step = self.world.step(action)
            in_world += time.perf_counter() - before
            self.env_steps += int(np.count_nonzero(step.valid))
            tape.obs.append(self.view.obs)
            if self.view.action_mask is not None:
                tape.mask.append(self.view.action_mask)
            tape.action.append(out.action)
            tape.log_prob.append(out.log_prob)
            tape.value.append(out.value)
            tape.start.append(self.start)
            self.context = out.context
            step, dropped = self.guard.examine(step, self.episodes)
            tape.dropped += [(int(episode_from[stream]), t, int(stream)) for stream in dropped]
            self._note(step, t, tape, episode_from)
        return self._rollout(tape, policy_version, walked_in), in_world

    def _note(self, step: Step, t: int, tape: _Tape, episode_from: np.ndarray) -> None:
        """Write one step down and move on to its view."""
        ended = step.terminated | step.truncated
        self.episodes.count(step)
        self.episodes.finish(step, ended)
        if step.truncated.any():
            assert step.final_obs is not None, f"{self.world.name} cut an episode short without its last observation"
            worth = self.policy.value(Seen(obs=self._load(step.final_obs), context=self.context))
            tape.cut.append((t, step.truncated, worth.cpu().numpy()))
        tape.reward.append(step.reward)
        tape.terminated.append(step.terminated)
        tape.truncated.append(step.truncated)
        tape.valid.append(step.valid)
        self.start = ended | ~step.valid
        episode_from[self.start] = t + 1
        self.view = step.view

    def _rollout(self, tape: _Tape, policy_version: int, walked_in: Arrays) -> Rollout:
        reward, valid = np.stack(tape.reward), np.stack(tape.valid)
        terminated, truncated = np.stack(tape.terminated), np.stack(tape.truncated)
        for first, last, stream in tape.dropped:
            valid[first : last + 1, stream] = False
        reward, stats = self._rewards(reward, terminated | truncated, valid)
        value = torch.stack(tape.value)
        ahead = self.policy.value(self._seen(self.view))
        next_value = torch.cat([value[1:], ahead.unsqueeze(0)]).cpu().numpy()
        for t, streams, worth in tape.cut:
            next_value[t, streams] = worth[streams]
        return Rollout(
            obs={name: np.stack([obs[name] for obs in tape.obs]) for name in tape.obs[0]},
            action=torch.stack(tape.action).cpu().numpy(),
            log_prob=torch.stack(tape.log_prob).cpu().numpy(),
            value=value.cpu().numpy(),
            next_value=next_value,
            reward=reward.astype(np.float32),
            terminated=terminated,
            truncated=truncated,
            start=np.stack(tape.start),
            valid=valid,
            policy_version=np.full(valid.shape, policy_version, dtype=np.int64),
            action_mask=np.stack(tape.mask) if tape.mask else None,
            context=walked_in,
            stats=stats,
        )

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
        if bad := self.guard.take_count():
            stats["dropped_episodes"] = float(bad)
        return reward if whole else np.where(valid, reward, 0.0), stats

    def _seen(self, view: View) -> Seen:
        mask = None if view.action_mask is None else torch.from_numpy(view.action_mask).to(self.device)
        start = torch.from_numpy(self.start).to(self.device) if self.policy.sequential else None
        return Seen(obs=self._load(view.obs), action_mask=mask, start=start, context=self.context)

    def _load(self, obs: Arrays) -> dict[str, Tensor]:
        if self.device.type == "cpu":
            return {name: torch.from_numpy(x) for name, x in obs.items()}
        return {name: torch.from_numpy(x).to(self.device) for name, x in obs.items()}

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
