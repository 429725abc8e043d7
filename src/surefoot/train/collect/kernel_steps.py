"""Collecting a rollout with the C kernel from any world: two calls per step, one to act and one to record."""

from __future__ import annotations

import time

import numpy as np

from surefoot.envs.api import Step, View, World
from surefoot.envs.declared import declared_step, declared_view
from surefoot.errors import EnvError
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.kernel_act import kernel_values
from surefoot.train.collect.kernel_rollout import KernelRollout
from surefoot.train.collect.nonfinite import NonFiniteGuard, finite


def collect_steps(
    rollout: KernelRollout, world: World, view: View, start: np.ndarray, guard: NonFiniteGuard, episodes: EpisodeLog
) -> View:
    """Step any world to the end of the rollout. Return the last view; `start` is updated."""
    # Local names: this loop runs once per step, and an attribute lookup costs as much as a small kernel call.
    kernel, net, rng, memory = rollout.kernel, rollout.net, rollout.rng, rollout.memory
    act, clock = kernel.rollout_act, time.perf_counter
    plain, env_action = rollout.actor.plain, rollout.env_action
    returns, lengths = episodes.returns, episodes.lengths
    rollout.start[0] = start
    watchful, view = guard.watchful, declared_view(world, view)
    # Only the kernel looks at a plain step; arrays of another dtype are converted once it has refused one.
    convert = plain is None
    for t in range(rollout.steps):
        if plain is None:
            for name, part in view.obs.items():
                rollout.obs[name][t] = part
        obs = view.obs[plain] if plain is not None else rollout.actor.features(view.obs)
        act(net, memory, rng, t, obs, view.action_mask)
        before = clock()
        step = world.step(env_action[t])
        rollout.in_world += clock() - before
        try:
            if convert:
                step = declared_step(world, step)
            result = _record(rollout, step, t, watchful, returns, lengths)
        except (BufferError, ValueError, TypeError, AttributeError):
            convert, step = True, declared_step(world, step)
            result = _record(rollout, step, t, watchful, returns, lengths)
        if result != kernel.RECORDED:
            if result == kernel.NON_FINITE:
                step = _record_examined(rollout, step, t, guard, episodes)
            _end_episodes(rollout, step, t, episodes)
            watchful = guard.watchful
        view = step.view
    last = rollout.steps - 1
    start[:] = rollout.terminated[last] | rollout.truncated[last] | ~rollout.valid[last]
    kernel.rollout_finish(net, memory, np.ascontiguousarray(rollout.actor.features(view.obs), np.float32))
    return view


def _record(
    rollout: KernelRollout, step: Step, t: int, watchful: bool, returns: np.ndarray, lengths: np.ndarray
) -> int:
    """Record a step in the kernel and return its result; raise if an array is not as declared."""
    plain, mask = rollout.actor.plain, step.view.action_mask
    if (mask is not None) != rollout.masked or (
        mask is not None and (mask.dtype != np.bool_ or not mask.flags.c_contiguous)
    ):
        raise TypeError("the mask is not as declared")
    if watchful or (plain is None and not finite(step)) or not _final_obs_finite(step):
        return rollout.kernel.NON_FINITE
    after = step.view.obs[plain] if plain is not None else None
    return rollout.kernel.rollout_record(
        rollout.memory, t, after, step.reward, step.terminated, step.truncated, step.valid, returns, lengths
    )


def _record_examined(rollout: KernelRollout, step: Step, t: int, guard: NonFiniteGuard, episodes: EpisodeLog) -> Step:
    """Record what the guard leaves of a step that the kernel refused."""
    before = int(np.count_nonzero(step.valid))
    step, dropped = guard.examine(step, episodes)
    rollout.refused += before - int(np.count_nonzero(step.valid))
    for stream in dropped:
        begins = np.flatnonzero(rollout.start[: t + 1, stream])
        rollout.builder.dropped.append((int(begins[-1]) if len(begins) else 0, t, stream))
    rollout.reward[t], rollout.valid[t] = step.reward, step.valid
    rollout.terminated[t], rollout.truncated[t] = step.terminated, step.truncated
    if t + 1 < rollout.steps:
        rollout.start[t + 1] = step.terminated | step.truncated | ~step.valid
    episodes.count(step)
    return step


def _end_episodes(rollout: KernelRollout, step: Step, t: int, episodes: EpisodeLog) -> None:
    """Close the episodes that ended; truncated ones are bootstrapped from their last observation."""
    ended = step.terminated | step.truncated
    if np.count_nonzero(ended):
        episodes.finish(step, ended)
    if np.count_nonzero(step.truncated):
        if step.final_obs is None:
            raise EnvError(f"{rollout.world.name} truncated an episode without final_obs; return the last observation")
        value = kernel_values(rollout.actor, step.final_obs, rollout.context)
        rollout.next_value[t, step.truncated] = value[step.truncated]


def _final_obs_finite(step: Step) -> bool:
    # Parts that are also in the view are checked there.
    shown = step.view.obs
    return step.final_obs is None or all(
        part is shown[name] or bool(np.isfinite(part).all()) for name, part in step.final_obs.items()
    )
