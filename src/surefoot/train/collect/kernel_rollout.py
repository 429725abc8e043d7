"""A rollout written by the kernel: one call to act and one to note each step, or one for all steps of a native world."""

from __future__ import annotations

import math

import numpy as np

from surefoot.data.rollout_builder import RolloutBuilder
from surefoot.data.seeds import seed_for
from surefoot.data.spaces import Box, MultiDiscrete
from surefoot.envs.api import Arrays, View, World
from surefoot.envs.builtin.native import NativeWorld
from surefoot.errors import NonFiniteValue
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.kernel_layout import KernelNet
from surefoot.train.collect.episodes import Episode, EpisodeLog


class KernelActor:
    """Acts by the kernel on a policy's own weights, with a generator of its own (xoshiro256++, 256 bits of state)."""

    def __init__(self, policy: ActorCritic, seed: int) -> None:
        self.net = KernelNet(policy)
        self.rng = np.array([seed_for(f"act-kernel-{i}", seed) for i in range(4)], dtype=np.uint64)
        parts = list(policy.observation.items())
        one = parts[0][1]
        self.plain = parts[0][0] if len(parts) == 1 and one.dtype == "float32" and len(one.shape) == 1 else None
        """The name of the only part if it is a row of float32, which the kernel stores by itself."""
        self.shape: tuple[int, ...] = ()
        """Of one stream's action as the world takes it."""
        if isinstance(policy.action, Box):
            self.shape = policy.action.shape
        elif isinstance(policy.action, MultiDiscrete):
            self.shape = (len(policy.action.nvec),)

    def features(self, obs: Arrays) -> np.ndarray:
        """[N, inputs] float32, not yet normalised: the kernel does that."""
        return obs[self.plain] if self.plain is not None else self.net.flatten.rows(obs)


class Tape:
    """The arrays of one rollout, [T, N, …], filled from the first step to the last."""

    def __init__(self, actor: KernelActor, world: World, steps: int, *, masked: bool) -> None:
        net, streams = actor.net, world.num_envs
        self.actor, self.steps = actor, steps
        row = actor.shape
        dtype = np.int64 if net.discrete else np.float32
        self.builder = builder = RolloutBuilder(steps, streams)
        builder.steps = steps
        self.obs = {
            name: builder.allocate(f"obs.{name}", box.dtype, *box.shape) for name, box in world.observation.items()
        }
        mask = builder.allocate("action_mask", np.bool_, sum(net.sizes)) if masked else None
        # The policy's own action is laid flat, whatever shape the world gives it.
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
        """Steps that were taken and are not in the tape."""
        self.in_world = 0.0
        self.kernel, self.net, self.rng = net.kernel, net.net, actor.rng
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
        )

    def run(self, world: NativeWorld, view: View, start: np.ndarray, episodes: EpisodeLog) -> View:
        """The same for a native world, all steps in one call."""
        obs, ended = view.obs["obs"].copy(), np.empty((self.reward.size, 4))
        count, self.in_world = self.kernel.rollout_collect(
            self.net,
            self.memory,
            self.rng,
            world.handle,
            obs=obs,
            start=start,
            returns=episodes.returns,
            lengths=episodes.lengths,
            ended=ended,
        )
        if count < 0:
            raise NonFiniteValue(
                f"{world.name} answered with a number that is not finite at step {-1 - count} of this rollout; "
                "mend the world, or set nonfinite='drop_episode' to leave such episodes out"
            )
        for stream, total, length, cut in ended[:count].tolist():
            episodes.add(Episode(int(stream), total, int(length), None, bool(cut)))
        return View(obs={"obs": obs})
