"""A process that is known, for the environment's tests: x moves by the action, the reward is x, an episode ends at |x| > 3."""

from __future__ import annotations

import numpy as np

from surefoot.train.diagnose.step_features import StepFeatures, Steps

T, N = 256, 8


def walk(*, effect: float = 1.0, noise: float = 0.1, seed: int = 0, episode_effect: bool = False) -> Steps:
    """x' = 0.9 x + effect (2 a - 1) + noise, beside a second number that is noise; the action is a fair coin.

    With `episode_effect`, the effect has another sign in every other episode of a stream.
    """
    rng = np.random.default_rng(seed)
    obs, action = np.zeros((T, N, 2)), rng.integers(0, 2, (T, N))
    ended, start, x = np.zeros((T, N), bool), np.zeros((T, N), bool), rng.normal(size=N)
    fresh, sign = np.ones(N, bool), np.ones(N)
    for t in range(T):
        obs[t, :, 0], obs[t, :, 1], start[t] = x, rng.normal(size=N), fresh
        ended[t] = fresh = np.abs(x) > 3.0
        push = effect * sign * (2 * action[t] - 1)
        x = np.where(ended[t], rng.normal(size=N), 0.9 * x + push + noise * rng.normal(size=N))
        sign = np.where(ended[t] & episode_effect, -sign, sign)
    return Steps(
        obs, action, obs[..., 0].copy(), ended, ended, np.ones((T, N), bool), start, np.full((T, N), np.log(0.5))
    )


def features(steps: Steps) -> StepFeatures:
    """Return the features of a walk's steps."""
    return StepFeatures(steps, (2,))
