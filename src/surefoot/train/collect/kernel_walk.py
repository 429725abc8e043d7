"""A rollout of any world written by the kernel: one call to act and one to note each step."""

from __future__ import annotations

import time

import numpy as np

from surefoot.envs.api import Step, View, World
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.kernel_actor import kernel_values
from surefoot.train.collect.kernel_rollout import Tape
from surefoot.train.collect.nonfinite import NonFiniteGuard, finite


def walk(tape: Tape, world: World, view: View, start: np.ndarray, guard: NonFiniteGuard, episodes: EpisodeLog) -> View:
    """Step `world` to the end of the tape, beginning at `view`; returns what is seen then. `start` changes."""
    kernel, net, rng, memory = tape.kernel, tape.net, tape.rng, tape.memory
    act, note = kernel.rollout_act, kernel.rollout_record
    plain, clock = tape.actor.plain, time.perf_counter
    returns, lengths = episodes.returns, episodes.lengths
    env_action = tape.env_action
    tape.start[0] = start
    watchful, view = guard.watchful, _tidy_view(view)
    for t in range(tape.steps):
        if plain is None:
            for name, part in view.obs.items():
                tape.obs[name][t] = part
        obs = view.obs[plain] if plain is not None else tape.actor.features(view.obs)
        act(net, memory, rng, t, obs, view.action_mask)
        before = clock()
        step = world.step(env_action[t])
        tape.in_world += clock() - before
        if watchful or (plain is None and not finite(step)) or not _ends_finite(step):
            said = kernel.NON_FINITE
        else:
            try:
                seen = step.view.obs[plain] if plain is not None else None
                said = note(memory, t, seen, step.reward, step.terminated, step.truncated, step.valid, returns, lengths)
            except (BufferError, ValueError):  # a world of somebody's own, with arrays of another kind
                step = _tidy(step)
                seen = step.view.obs[plain] if plain is not None else None
                said = note(memory, t, seen, step.reward, step.terminated, step.truncated, step.valid, returns, lengths)
        if said != kernel.RECORDED:
            step = _look(tape, step, t, said, guard, episodes)
            watchful = guard.watchful
        view = step.view
    last = tape.steps - 1
    start[:] = tape.terminated[last] | tape.truncated[last] | ~tape.valid[last]
    features = np.ascontiguousarray(tape.actor.features(view.obs), np.float32)
    kernel.rollout_finish(net, memory, features)
    return view


def _look(tape: Tape, step: Step, t: int, said: int, guard: NonFiniteGuard, episodes: EpisodeLog) -> Step:
    """What the kernel leaves to us: episodes that end, and answers that somebody must examine."""
    if said == tape.kernel.NON_FINITE:
        step = _examine(tape, step, t, guard, episodes)
    ended = step.terminated | step.truncated
    if np.count_nonzero(ended):
        episodes.finish(step, ended)
    if np.count_nonzero(step.truncated):
        assert step.final_obs is not None, "an episode was cut short without its last observation"
        worth = kernel_values(tape.actor, step.final_obs)
        tape.next_value[t, step.truncated] = worth[step.truncated]
    return step


def _examine(tape: Tape, step: Step, t: int, guard: NonFiniteGuard, episodes: EpisodeLog) -> Step:
    """Write down what the guard leaves of a step."""
    taken = int(np.count_nonzero(step.valid))
    step, dropped = guard.examine(step, episodes)
    tape.refused += taken - int(np.count_nonzero(step.valid))
    for stream in dropped:
        begins = np.flatnonzero(tape.start[: t + 1, stream])
        tape.builder.dropped.append((int(begins[-1]) if len(begins) else 0, t, stream))
    tape.reward[t], tape.valid[t] = step.reward, step.valid
    tape.terminated[t], tape.truncated[t] = step.terminated, step.truncated
    if t + 1 < tape.steps:
        tape.start[t + 1] = step.terminated | step.truncated | ~step.valid
    episodes.count(step)
    return step


def _ends_finite(step: Step) -> bool:
    """True if the true successors of episodes that ended are finite; those that are shown anyway were looked at."""
    if step.final_obs is None:
        return True
    shown = step.view.obs
    return all(part is shown[name] or bool(np.isfinite(part).all()) for name, part in step.final_obs.items())


def _tidy(step: Step) -> Step:
    """The same in arrays as the kernel reads them."""
    flags = (np.ascontiguousarray(x, np.bool_) for x in (step.terminated, step.truncated, step.valid))
    terminated, truncated, valid = flags
    return Step(
        view=_tidy_view(step.view),
        reward=np.ascontiguousarray(step.reward, np.float64),
        terminated=terminated,
        truncated=truncated,
        valid=valid,
        final_obs=step.final_obs,
        stats=step.stats,
    )


def _tidy_view(view: View) -> View:
    kinds = {name: np.float32 if x.dtype.kind == "f" else x.dtype for name, x in view.obs.items()}
    mask = view.action_mask
    return View(
        obs={name: np.ascontiguousarray(x, kinds[name]) for name, x in view.obs.items()},
        action_mask=None if mask is None else np.ascontiguousarray(mask, np.bool_),
    )
