"""Rollouts that the C kernel fills: their memory, and one call for all steps of a native world.

kernel_steps.py collects from other worlds, kernel_act.py acts outside of rollouts.
"""

from __future__ import annotations

import math

import numpy as np

from surefoot.data.rollout_builder import RolloutBuilder
from surefoot.data.seeds import seed_for
from surefoot.data.spaces import Box, Hybrid, MultiDiscrete
from surefoot.envs.api import Arrays, View, World
from surefoot.envs.builtin.native import NativeWorld
from surefoot.errors import NonFiniteValue, PolicyError
from surefoot.learn.choose_path import why_not
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.kernel_layout import KernelNet
from surefoot.nets.policy import Policy
from surefoot.train.collect.episodes import Episode, EpisodeLog


class KernelActor:
    """Acts with the kernel on a policy's weights. Its generator is xoshiro256++, 256 bits of state."""

    def __init__(self, policy: ActorCritic, seed: int) -> None:
        self.policy, self.net = policy, KernelNet(policy)
        self.rng = np.array([seed_for(f"act-kernel-{i}", seed) for i in range(4)], dtype=np.uint64)
        parts = list(policy.observation.items())
        first = parts[0][1]
        self.plain = parts[0][0] if len(parts) == 1 and first.dtype == "float32" and len(first.shape) == 1 else None
        """Name of the only part, if it is a row of float32, which the kernel stores by itself."""
        self.shape: tuple[int, ...] = ()
        """Shape of one stream's action as the world takes it."""
        match policy.action:
            case Box(shape=shape):
                self.shape = shape
            case MultiDiscrete(nvec=nvec):
                self.shape = (len(nvec),)
            case Hybrid(nvec=nvec, box=box):
                self.shape = (len(nvec) + box.size,)
            case _:
                pass

    def refresh(self) -> str | None:
        """Load the policy's current weights into the kernel; return why torch has to act instead, or None."""
        if not self.net.unchanged():
            if (reason := why_not(self.policy)) is not None:
                return reason
            self.net = KernelNet(self.policy, self.net.instruction_set)
        self.net.pack()
        return None

    def require(self) -> None:
        """Load the current weights; raise `PolicyError` if the kernel does not support the policy any more."""
        if (reason := self.refresh()) is not None:
            raise PolicyError(f"{reason}, which was not so when this policy began to act; set path to 'torch'")

    def features(self, obs: Arrays) -> np.ndarray:
        """Return [N, inputs] float32, not normalized: the kernel does that."""
        return obs[self.plain] if self.plain is not None else self.net.rows(obs)


def kernel_actor(policy: Policy, seed: int) -> KernelActor | None:
    """Return the kernel's actor for a policy, or None if torch must act."""
    if not isinstance(policy, ActorCritic) or why_not(policy) is not None:
        return None
    actor = KernelActor(policy, seed)
    return actor if actor.refresh() is None else None


def carries(context: Arrays | None) -> dict[str, np.ndarray | None]:
    """Return what the kernel calls the memories of a context."""
    context = context or {}
    return {"carry": context.get("memory"), "critic_carry": context.get("critic_memory")}


class KernelRollout:
    """The arrays of one rollout, [T, N, …], which the kernel fills from the first step to the last."""

    def __init__(
        self, actor: KernelActor, world: World, steps: int, *, masked: bool, context: Arrays | None = None
    ) -> None:
        net, streams, row = actor.net, world.num_envs, actor.shape
        self.actor, self.world, self.steps, self.masked = actor, world, steps, masked
        dtype = np.int64 if net.discrete else np.float32
        self.builder = builder = RolloutBuilder(steps, streams)
        builder.steps = steps
        self.obs = {
            name: builder.allocate(f"obs.{name}", box.dtype, *box.shape) for name, box in world.observation.items()
        }
        mask = builder.allocate("action_mask", np.bool_, sum(net.sizes)) if masked else None
        # The policy stores an action flat; the world takes it in its own shape.
        action = builder.allocate("action", dtype, *((math.prod(row),) if row else ()))
        self.env_action = np.empty((steps, streams, *row), dtype)
        log_prob, value, self.next_value = (
            builder.allocate(name, np.float32) for name in ("log_prob", "value", "next_value")
        )
        self.reward = builder.allocate("reward", np.float64)
        self.terminated, self.truncated, self.start, self.valid = (
            builder.allocate(name, np.bool_) for name in ("terminated", "truncated", "start", "valid")
        )
        self.refused = 0
        """Steps that were taken and are not in the rollout."""
        self.in_world = 0.0
        """Seconds spent in the world."""
        self.kernel, self.net, self.rng = net.kernel, net.net, actor.rng
        self.context = context or {}
        """The memories of the streams, {name: [N, …]}, which every step updates."""
        self.memory = self.kernel.rollout_new(
            self.net,
            steps=steps,
            streams=streams,
            obs=self.obs[actor.plain] if actor.plain is not None else None,
            mask=mask,
            action=action,
            env_action=self.env_action,
            log_prob=log_prob,
            value=value,
            next_value=self.next_value,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            start=self.start,
            valid=self.valid,
            **carries(self.context),
        )

    def collect_native(
        self, world: NativeWorld, view: View, start: np.ndarray, episodes: EpisodeLog, *, deterministic: bool = False
    ) -> View:
        """Step a native world to the end of the rollout in one call. Return the last view; `start` is updated.

        For an evaluation, `deterministic` takes the most likely actions and computes no values.
        """
        obs, ended = view.obs["obs"].copy(), np.empty((self.reward.size, 4))
        count, self.in_world = self.kernel.rollout_collect(
            self.net,
            self.memory,
            self.rng,
            world.handle,
            deterministic=deterministic,
            obs=obs,
            start=start,
            returns=episodes.returns,
            lengths=episodes.lengths,
            ended=ended,
        )
        if count < 0:
            raise NonFiniteValue(
                f"{world.name} returned a value that is not finite at step {-1 - count} of this rollout; "
                "fix the environment, or set nonfinite='drop_episode' to leave such episodes out"
            )
        for stream, total, length, cut in ended[:count].tolist():
            episodes.add(Episode(int(stream), total, int(length), None, bool(cut)))
        return View(obs={"obs": obs})
