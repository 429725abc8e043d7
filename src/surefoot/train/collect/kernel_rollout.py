"""Acting with the C kernel: a rollout with two calls per step, or one call for all steps of a native world."""

from __future__ import annotations

import math
import time

import numpy as np

from surefoot.data.rollout_builder import RolloutBuilder
from surefoot.data.seeds import seed_for
from surefoot.data.spaces import Box, MultiDiscrete
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.envs.builtin.native import NativeWorld
from surefoot.envs.declared import declared_step, declared_view
from surefoot.errors import EnvError, NonFiniteValue, PolicyError
from surefoot.learn.choose_path import why_not
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.kernel_layout import KernelNet
from surefoot.nets.policy import Policy
from surefoot.train.collect.episodes import Episode, EpisodeLog
from surefoot.train.collect.nonfinite import NonFiniteGuard, finite


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
        if isinstance(policy.action, Box):
            self.shape = policy.action.shape
        elif isinstance(policy.action, MultiDiscrete):
            self.shape = (len(policy.action.nvec),)

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
        return obs[self.plain] if self.plain is not None else self.net.flatten.rows(obs)


def kernel_actor(policy: Policy, seed: int) -> KernelActor | None:
    """Return the kernel's actor for a policy, or None if torch must act."""
    if not isinstance(policy, ActorCritic) or why_not(policy) is not None:
        return None
    actor = KernelActor(policy, seed)
    return actor if actor.refresh() is None else None


def kernel_actions(actor: KernelActor, view: View, rng: np.ndarray, *, deterministic: bool) -> np.ndarray:
    """Return the actions [N, …] as the world takes them: drawn with `rng`, or the most likely ones."""
    features = np.ascontiguousarray(actor.features(view.obs), np.float32)
    shape, dtype = (len(features), *actor.shape), np.int64 if actor.net.discrete else np.float32
    action, env_action = np.empty(shape, dtype), np.empty(shape, dtype)
    log_prob, value = np.empty(len(features), np.float32), np.empty(len(features), np.float32)
    actor.net.kernel.net_act(
        actor.net.net,
        n=len(features),
        rng=rng,
        obs=features,
        mask=None if view.action_mask is None else np.ascontiguousarray(view.action_mask, np.bool_),
        deterministic=deterministic,
        action=action,
        env_action=env_action,
        log_prob=log_prob,
        value=value,
    )
    return env_action


def kernel_values(actor: KernelActor, obs: Arrays) -> np.ndarray:
    """Return the critic's values, [N]."""
    features = np.ascontiguousarray(actor.features(obs), np.float32)
    value = np.empty(len(features), np.float32)
    actor.net.kernel.net_values(actor.net.net, len(features), features, value)
    return value


class KernelRollout:
    """The arrays of one rollout, [T, N, …], which the kernel fills from the first step to the last."""

    def __init__(self, actor: KernelActor, world: World, steps: int, *, masked: bool) -> None:
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

    def collect(self, world: World, view: View, start: np.ndarray, guard: NonFiniteGuard, episodes: EpisodeLog) -> View:
        """Step any world to the end of the rollout. Return the last view; `start` is updated."""
        # Local names: this loop runs once per step, and an attribute lookup costs as much as a small kernel call.
        kernel, net, rng, memory = self.kernel, self.net, self.rng, self.memory
        act, clock = kernel.rollout_act, time.perf_counter
        plain, env_action = self.actor.plain, self.env_action
        returns, lengths = episodes.returns, episodes.lengths
        self.start[0] = start
        watchful, view = guard.watchful, declared_view(world, view)
        # Only the kernel looks at a plain step; arrays of another dtype are converted once it has refused one.
        convert = plain is None
        for t in range(self.steps):
            if plain is None:
                for name, part in view.obs.items():
                    self.obs[name][t] = part
            obs = view.obs[plain] if plain is not None else self.actor.features(view.obs)
            act(net, memory, rng, t, obs, view.action_mask)
            before = clock()
            step = world.step(env_action[t])
            self.in_world += clock() - before
            try:
                if convert:
                    step = declared_step(world, step)
                result = self._record(step, t, watchful, returns, lengths)
            except (BufferError, ValueError, TypeError, AttributeError):
                convert, step = True, declared_step(world, step)
                result = self._record(step, t, watchful, returns, lengths)
            if result != kernel.RECORDED:
                if result == kernel.NON_FINITE:
                    step = self._record_examined(step, t, guard, episodes)
                self._end_episodes(step, t, episodes)
                watchful = guard.watchful
            view = step.view
        last = self.steps - 1
        start[:] = self.terminated[last] | self.truncated[last] | ~self.valid[last]
        kernel.rollout_finish(net, memory, np.ascontiguousarray(self.actor.features(view.obs), np.float32))
        return view

    def _record(self, step: Step, t: int, watchful: bool, returns: np.ndarray, lengths: np.ndarray) -> int:
        """Record a step in the kernel and return its result; raise if an array is not as declared."""
        plain, mask = self.actor.plain, step.view.action_mask
        if (mask is not None) != self.masked or (
            mask is not None and (mask.dtype != np.bool_ or not mask.flags.c_contiguous)
        ):
            raise TypeError("the mask is not as declared")
        if watchful or (plain is None and not finite(step)) or not _final_obs_finite(step):
            return self.kernel.NON_FINITE
        after = step.view.obs[plain] if plain is not None else None
        return self.kernel.rollout_record(
            self.memory, t, after, step.reward, step.terminated, step.truncated, step.valid, returns, lengths
        )

    def _record_examined(self, step: Step, t: int, guard: NonFiniteGuard, episodes: EpisodeLog) -> Step:
        """Record what the guard leaves of a step that the kernel refused."""
        before = int(np.count_nonzero(step.valid))
        step, dropped = guard.examine(step, episodes)
        self.refused += before - int(np.count_nonzero(step.valid))
        for stream in dropped:
            begins = np.flatnonzero(self.start[: t + 1, stream])
            self.builder.dropped.append((int(begins[-1]) if len(begins) else 0, t, stream))
        self.reward[t], self.valid[t] = step.reward, step.valid
        self.terminated[t], self.truncated[t] = step.terminated, step.truncated
        if t + 1 < self.steps:
            self.start[t + 1] = step.terminated | step.truncated | ~step.valid
        episodes.count(step)
        return step

    def _end_episodes(self, step: Step, t: int, episodes: EpisodeLog) -> None:
        """Close the episodes that ended; truncated ones are bootstrapped from their last observation."""
        ended = step.terminated | step.truncated
        if np.count_nonzero(ended):
            episodes.finish(step, ended)
        if np.count_nonzero(step.truncated):
            if step.final_obs is None:
                raise EnvError(f"{self.world.name} truncated an episode without final_obs; return the last observation")
            value = kernel_values(self.actor, step.final_obs)
            self.next_value[t, step.truncated] = value[step.truncated]


def _final_obs_finite(step: Step) -> bool:
    # Parts that are also in the view are checked there.
    shown = step.view.obs
    return step.final_obs is None or all(
        part is shown[name] or bool(np.isfinite(part).all()) for name, part in step.final_obs.items()
    )
