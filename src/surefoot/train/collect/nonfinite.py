"""NaN and infinity from a world: refused, or left out together with the episodes that they are part of."""

from __future__ import annotations

import numpy as np

from surefoot.envs.api import Arrays, Step, View, World
from surefoot.errors import NonFiniteValue
from surefoot.train.collect.episodes import EpisodeLog

# Rewards are learned from as float32: a larger float64 would become infinite in the rollout.
_FLOAT32_MAX = float(np.finfo(np.float32).max)


class NonFiniteGuard:
    """Checks every step of a world before it is learned from.

    `nonfinite` is "raise" or "drop_episode". Dropping leaves out an episode with a bad number from its first step on, and
    restarts its stream; if the world cannot restart one stream, it stays in quarantine until the episode ends.
    """

    def __init__(self, world: World, nonfinite: str) -> None:
        self.world, self.nonfinite = world, nonfinite
        self.quarantined = np.zeros(world.num_envs, dtype=bool)
        self.dropped = 0
        """Episodes dropped since the last rollout."""

    @property
    def watchful(self) -> bool:
        """Whether a stream is in quarantine, so that every step must be examined."""
        return bool(self.quarantined.any())

    def check_first(self, view: View) -> None:
        """Raise `NonFiniteValue` if the first observation of an episode is not finite."""
        for name, x in view.obs.items():
            if not np.isfinite(x).all():
                stream = int(np.flatnonzero(_bad_rows({name: x}))[0])
                raise NonFiniteValue(
                    f"{self.world.name} starts with observation {name!r} = {x[stream]} in stream {stream}; "
                    "a first observation must be finite"
                )

    def cleaned(self, view: View) -> View:
        """Return the view as the policy saw it: zeros for the bad numbers of a quarantined stream."""
        return View(obs=_cleaned(view.obs), action_mask=view.action_mask) if self.quarantined.any() else view

    def examine(self, step: Step, episodes: EpisodeLog) -> tuple[Step, list[int]]:
        """Return the step without bad numbers, and the streams whose running episode must be left out."""
        bad = _bad_streams(step)
        if bad is None and not self.quarantined.any():
            return step, []
        current, following = bad or (np.zeros_like(step.valid), np.zeros_like(step.valid))
        fresh = (current & ~self.quarantined) | following
        if fresh.any() and self.nonfinite == "raise":
            stream = int(np.flatnonzero(fresh)[0])
            raise NonFiniteValue(
                f"{self.world.name} returned a value that is not finite in stream {stream} at step "
                f"{int(episodes.lengths[stream]) + 1} of its episode: {_describe(step, stream)}. "
                "Fix the environment, or set nonfinite='drop_episode' to leave such episodes out"
            )
        self.dropped += int(fresh.sum())
        excluded = current | self.quarantined
        dropped = [int(stream) for stream in np.flatnonzero(excluded)]
        for stream in dropped:
            episodes.forget(stream)
        return self._without(step, excluded, following), dropped

    def _without(self, step: Step, excluded: np.ndarray, following: np.ndarray) -> Step:
        """Return the step without `excluded` streams, restarting those whose next episode (`following`) starts badly."""
        over = step.terminated | step.truncated | ~step.valid
        view, final = View(obs=_cleaned(step.view.obs), action_mask=step.view.action_mask), step.final_obs
        restart = (excluded & ~over) | following
        fresh = self.world.reset_streams(restart) if restart.any() else None
        if fresh is not None:
            self.check_first(fresh)
            view, restart = fresh, np.zeros_like(restart)
        # What could not be restarted waits here until the world ends the episode by itself.
        self.quarantined = restart
        return Step(
            view=view,
            reward=np.where(excluded, 0.0, step.reward),
            terminated=step.terminated & ~excluded,
            truncated=step.truncated & ~excluded,
            valid=step.valid & ~excluded,
            final_obs=None if final is None else _cleaned(final),
            stats=step.stats,
        )


def finite(step: Step) -> bool:
    """Return whether every number of a step is finite and every reward fits into float32."""
    parts = [*step.view.obs.values(), *(step.final_obs or {}).values()]
    return bool((np.abs(step.reward) <= _FLOAT32_MAX).all()) and all(np.isfinite(x).all() for x in parts)


def _bad_streams(step: Step) -> tuple[np.ndarray, np.ndarray] | None:
    """Return ([N] the current episode, [N] the following one) that holds a bad number; None in the usual case."""
    if finite(step):
        return None
    ended = step.terminated | step.truncated
    over = ended | ~step.valid
    shown = _bad_rows(step.view.obs)
    # After an end the view is already of the next episode; the old one is judged by its final observation.
    current = ~(np.abs(step.reward) <= _FLOAT32_MAX) | (shown & ~over)
    if step.final_obs is not None:
        current |= ended & _bad_rows(step.final_obs)
    following = shown & over
    return (current, following) if (current | following).any() else None


def _bad_rows(obs: Arrays) -> np.ndarray:
    return np.any([~np.isfinite(x.reshape(len(x), -1)).all(axis=1) for x in obs.values()], axis=0)


def _cleaned(obs: Arrays) -> Arrays:
    return {name: np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0) for name, x in obs.items()}


def _describe(step: Step, stream: int) -> str:
    """Return reward and observations of a stream for an error message: the bad ones, or all if none is bad."""
    shown = {name: x[stream] for name, x in step.view.obs.items()}
    final = {name: x[stream] for name, x in (step.final_obs or {}).items()}
    bad = {name: x for each in (shown, final) for name, x in each.items() if not np.isfinite(x).all()}
    return f"reward {step.reward[stream]}, observation { {name: x.tolist() for name, x in (bad or shown).items()} }"
