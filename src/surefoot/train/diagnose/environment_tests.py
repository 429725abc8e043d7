"""Statistical tests of an environment on the steps of a run: what observations, actions, rewards and ends depend on.

All tests are regressions and correlations on the same rows, so that they take some milliseconds. Those of actions need
actions that vary for the same observation, which an untrained policy gives; a policy that became deterministic gets no answer
instead of a wrong one.
"""

from __future__ import annotations

import math

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.train.diagnose.effect_tests import effect_stats
from surefoot.train.diagnose.observation_tests import ROWS, observation_stats
from surefoot.train.diagnose.reward_tests import FEWEST_ENDS, end_stats, reward_stats
from surefoot.train.diagnose.step_features import StepFeatures, Steps

# Updates at which a window begins, and the most rollouts of one. Early ones count most: an untrained policy tries everything.
WINDOWS, LONGEST = frozenset({0, 40, 160, 640, 2560}), 64
# Episodes per stream that a window waits for: a fault of the second episode is not in the first one.
EPISODES = 3
# Times `ROWS` that a window may have.
LIMIT = 8


class EnvironmentMonitor:
    """Gathers the rollouts of a few windows of a run and tests the environment when one is large enough.

    A window is tested when episodes have ended in it often enough; the first one also after its first `ROWS` steps.
    """

    def __init__(self, choices: tuple[int, ...] = (), bounds: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        self._choices, self._bounds = choices, bounds
        self._parts: list[Steps] | None = None
        self._tested = False

    def forget(self) -> None:
        """Drop the rollouts of an unfinished window: the next rollout does not follow them."""
        self._parts = None

    def add(self, rollout: Rollout, updates: int) -> dict[str, float]:
        """Take the rollout of the update after `updates`; return the results when a window is complete, else {}."""
        if updates in WINDOWS:
            # Only the first window has an early answer: the next ones confirm what it found, or see what an older policy shows.
            self._parts, self._tested = [], updates > 0
        if self._parts is None:
            return {}
        # Long enough for delays in one stream; then as many streams as fit.
        streams = max(1, min(rollout.reward.shape[1], ROWS // max(len(rollout.reward), 64)))
        steps = Steps.of(rollout, streams)
        if steps is None:
            self._parts = None
            return {}
        self._parts.append(steps)
        rows = sum(each.reward.size for each in self._parts)
        ends = sum(int(each.ended.sum()) for each in self._parts)
        # Wide observations would take much memory.
        full = rows >= LIMIT * ROWS or rows * steps.obs.shape[2] > 1_000_000 or len(self._parts) >= LONGEST
        complete = full or (rows >= ROWS and ends >= max(FEWEST_ENDS, EPISODES * streams))
        if not complete and (self._tested or rows < ROWS):
            return {}
        joined, self._tested = Steps.joined(self._parts), True
        if complete:
            self._parts = None
        return environment_stats(joined, self._choices, self._bounds)


def environment_stats(
    steps: Steps, choices: tuple[int, ...] = (), bounds: tuple[np.ndarray, np.ndarray] | None = None
) -> dict[str, float]:
    """Return what consecutive steps show about the environment; a test that cannot be made has no entry.

    `choices` counts those of each discrete action; continuous actions are clipped to `bounds`, as the environment does.
    """
    # What is not finite has its own rule.
    if len(steps.reward) < 3 or not np.isfinite(steps.obs).all():
        return {}
    with np.errstate(all="ignore"):
        rows = StepFeatures(steps, choices, bounds)
        tests = (observation_stats, effect_stats, reward_stats, end_stats)
        stats = {name: x for test in tests for name, x in test(rows).items()}
    return {name: float(x) for name, x in stats.items() if math.isfinite(x)}
