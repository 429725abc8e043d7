"""Numbers that are not finite: refused where they enter, or kept out together with the episodes they belong to."""

from __future__ import annotations

import numpy as np

from surefoot.envs.api import Arrays, Step, View, World
from surefoot.errors import NonFiniteValue
from surefoot.train.collect.episodes import EpisodeLog

_FLOAT32_MAX = float(np.finfo(np.float32).max)


class NonFiniteGuard:
    """Looks at every step of a world before anybody learns from it.

    `nonfinite` is "raise", or "drop_episode": then an episode with a bad number is left out from its beginning, and
    its stream is restarted, or, in a world that cannot do that, waits in quarantine until the episode ends.
    """

    def __init__(self, world: World, nonfinite: str) -> None:
        self.world, self.nonfinite = world, nonfinite
        self.quarantined = np.zeros(world.num_envs, dtype=bool)
        self.dropped = 0
        """Episodes dropped since the last rollout."""

    @property
    def watchful(self) -> bool:
        """True while some stream waits in quarantine, so that every step must be examined."""
        return bool(self.quarantined.any())

    def check_first(self, view: View) -> None:
        """Raise if a world begins with a number that is not finite."""
        for name, x in view.obs.items():
            if not np.isfinite(x).all():
                stream = int(np.flatnonzero(_bad_rows({name: x}))[0])
                raise NonFiniteValue(
                    f"{self.world.name} begins with observation {name!r} = {x[stream]} in stream {stream}; "
                    "a first observation must be finite"
                )

    def cleaned(self, view: View) -> View:
        """The view as the policy was shown it: zeros for what a quarantined stream cannot say."""
        return View(obs=_cleaned(view.obs), action_mask=view.action_mask) if self.quarantined.any() else view

    def examine(self, step: Step, episodes: EpisodeLog) -> tuple[Step, list[int]]:
        """The step, and the streams whose running episode must not be learned from; as it is and [] if all is well."""
        bad = _bad_streams(step)
        if bad is None and not self.quarantined.any():
            return step, []
        now, ahead = bad or (np.zeros_like(step.valid), np.zeros_like(step.valid))
        fresh = (now & ~self.quarantined) | ahead
        if fresh.any() and self.nonfinite == "raise":
            stream = int(np.flatnonzero(fresh)[0])
            raise NonFiniteValue(
                f"{self.world.name} answered with a number that is not finite in stream {stream} at step "
                f"{int(episodes.lengths[stream]) + 1} of its episode: {_shown(step, stream)}. "
                "Mend the world, or set nonfinite='drop_episode' to leave such episodes out"
            )
        self.dropped += int(fresh.sum())
        out = now | self.quarantined
        dropped = [int(stream) for stream in np.flatnonzero(out)]
        for stream in dropped:
            episodes.forget(stream)
        return self._without(step, out, ahead), dropped

    def _without(self, step: Step, out: np.ndarray, ahead: np.ndarray) -> Step:
        """The step without the streams whose episode is out, nor those whose next one begins badly (`ahead`)."""
        over = step.terminated | step.truncated | ~step.valid
        view, final = View(obs=_cleaned(step.view.obs), action_mask=step.view.action_mask), step.final_obs
        restart = (out & ~over) | ahead
        fresh = self.world.reset_streams(restart) if restart.any() else None
        if fresh is not None:
            self.check_first(fresh)
            view, restart = fresh, np.zeros_like(restart)
        self.quarantined = restart
        return Step(
            view=view,
            reward=np.where(out, 0.0, step.reward),
            terminated=step.terminated & ~out,
            truncated=step.truncated & ~out,
            valid=step.valid & ~out,
            final_obs=None if final is None else _cleaned(final),
            stats=step.stats,
        )


def finite(step: Step) -> bool:
    """True if a world's answer holds no number that is not finite; a reward that float32 cannot hold is none."""
    parts = [*step.view.obs.values(), *(step.final_obs or {}).values()]
    return bool((np.abs(step.reward) <= _FLOAT32_MAX).all()) and all(np.isfinite(x).all() for x in parts)


def _bad_streams(step: Step) -> tuple[np.ndarray, np.ndarray] | None:
    """([N] this episode, [N] the next one): where a stream's answer holds a number that is not finite.

    None if all is well, which is the cheap case.
    """
    if finite(step):
        return None
    rewards = np.abs(step.reward) <= _FLOAT32_MAX
    ended = step.terminated | step.truncated
    over = ended | ~step.valid
    shown = _bad_rows(step.view.obs)
    now = ~rewards | (shown & ~over)
    if step.final_obs is not None:
        now |= ended & _bad_rows(step.final_obs)
    ahead = shown & over
    return (now, ahead) if (now | ahead).any() else None


def _bad_rows(obs: Arrays) -> np.ndarray:
    return np.any([~np.isfinite(x.reshape(len(x), -1)).all(axis=1) for x in obs.values()], axis=0)


def _cleaned(obs: Arrays) -> Arrays:
    return {name: np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0) for name, x in obs.items()}


def _shown(step: Step, stream: int) -> str:
    """What a stream answered, for an error message: the observations that are not finite, else the one it shows."""
    seen = {name: x[stream] for name, x in step.view.obs.items()}
    last = {name: x[stream] for name, x in (step.final_obs or {}).items()}
    bad = {name: x for each in (seen, last) for name, x in each.items() if not np.isfinite(x).all()}
    return f"reward {step.reward[stream]}, observation { {name: x.tolist() for name, x in (bad or seen).items()} }"
