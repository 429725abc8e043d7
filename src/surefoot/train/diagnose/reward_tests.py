"""Statistical tests of rewards and of the ends of episodes: what they depend on, and when they come."""

from __future__ import annotations

import math

import numpy as np

from surefoot.train.diagnose.effect_tests import steps_apart
from surefoot.train.diagnose.observation_tests import FEWEST, ROWS
from surefoot.train.diagnose.statistics import distinct_rows, median
from surefoot.train.diagnose.step_features import PRODUCTS, StepFeatures, explained

# Ends of episodes below which a test gives no result.
FEWEST_ENDS = 20
# Delays of rewards that are tested, in steps.
LAGS = (1, 2, 3, 4, 5, 6, 8, 10)


def reward_stats(whole: StepFeatures) -> dict[str, float]:
    """Return how well the reward follows from its step, or from an earlier one, and whether it is cut off."""
    rows = whole.recent(ROWS)
    reward, stats = rows.reward, dict[str, float]()
    scale = float(np.abs(reward).sum())
    if scale > 0.0 and rows.ended.any():
        stats["reward_at_end_share"] = float(np.abs(reward[rows.ended]).sum()) / scale
    flat = reward[:-1].ravel()
    rare = np.mean(flat != median(flat)) < 0.02
    if not len(rows.moving) or len(flat) < FEWEST or flat.std() < 1e-9 or rare:
        return stats
    stats["reward_cut_share"] = _cut_share(rows)
    # 1 for noise, near 0 for a reward that changes slowly, such as a constant one divided by a running deviation.
    jumps = (reward[1:] - reward[:-1])[rows.follows]
    stats["reward_roughness"] = float((jumps**2).mean() / (2.0 * flat.var())) if len(jumps) else 0.0
    # The change of the observation is a part of many rewards (velocities, shaping); at an end there is none.
    change = np.where(rows.follows[..., None], rows.z[1:] - rows.z[:-1], 0.0)
    marks = np.stack([rows.ended[:-1], rows.terminated[:-1]], axis=2).astype(np.float64)
    crossed = rows.z[:-1, :, :PRODUCTS, None] * rows.z[:-1, :, None, :PRODUCTS]
    upper = np.triu_indices(crossed.shape[2], 1)
    features = np.concatenate(
        [rows.state[:-1], rows.acted[:-1], change, change**2, marks, crossed[:, :, upper[0], upper[1]]], axis=2
    )
    wide = features.shape[2]
    share = float(explained(features.reshape(-1, wide), flat[:, None])[0])
    stats["reward_explained"] = share
    best, best_lag = share, 0
    for lag in LAGS:
        together = steps_apart(rows.follows, lag)
        if together is None or together.sum() < 2 * wide:
            continue
        target = reward[lag : lag + len(together)][together][:, None]
        if target.std() < 1e-9:
            continue
        value = float(explained(features[: len(together)][together], target)[0])
        if value <= best:
            continue
        # The same rewards, explained by their own step: smooth tasks are explained well by any recent step.
        here = float(explained(features[lag : lag + len(together)][together], target)[0])
        if 1.0 - here > 3.0 * (1.0 - value) + 0.01:
            best, best_lag = value, lag
    stats["reward_lag"] = float(best_lag)
    return stats


def _cut_share(rows: StepFeatures) -> float:
    """Return the share of rewards that are exactly the largest or the smallest one, while the others all differ.

    Steps whose action is at a bound do not count: the price of a control is the same for all of them.
    """
    low, high = rows.action.min(axis=(0, 1)), rows.action.max(axis=(0, 1))
    bound = ((rows.action == low) | (rows.action == high)).any(axis=2) if rows.continuous else np.zeros_like(rows.ended)
    reward = rows.reward[rows.valid & ~bound]
    if len(reward) < FEWEST:
        return 0.0
    extreme = reward.max() if (reward == reward.max()).sum() >= (reward == reward.min()).sum() else reward.min()
    others = reward[reward != extreme]
    if len(others) < 64 or distinct_rows(others[:, None]) < 0.5 * len(others):
        return 0.0
    return 1.0 - len(others) / len(reward)


def end_stats(rows: StepFeatures) -> dict[str, float]:
    """Return how well terminations can be predicted from observation and action, and how many of them cannot.

    `end_explained` is the area below the ROC curve: 1 is perfectly, 0.5 is chance. Of ends at random half are in states that
    are less like an end than the median of all others: `end_random_share` is twice the share of those.
    """
    ends = rows.terminated[:-1].ravel()
    if not len(rows.moving) or not FEWEST_ENDS <= ends.sum() <= len(ends) // 2:
        return {}
    features = np.concatenate([rows.state[:-1], rows.acted[:-1]], axis=2).reshape(len(ends), -1)
    scores = np.empty(len(ends))
    # Each half is scored by the regression of the other half; in its own half, chance would look like knowledge.
    half = np.arange(len(ends)) % 2 == 0
    for own in (half, ~half):
        x, y = features[~own], ends[~own].astype(np.float64)
        gram = x.T @ x + 1e-3 * len(x) * np.eye(x.shape[1])
        scores[own] = features[own] @ np.linalg.solve(gram, x.T @ y)
    rank = np.argsort(np.argsort(scores))
    positives = int(ends.sum())
    below = float((scores[ends] < median(scores[~ends])).mean())
    certain = below - 2.0 * math.sqrt(below * (1.0 - below) / positives)
    return {
        "end_random_share": max(0.0, 2.0 * certain),
        "end_explained": (rank[ends].sum() - positives * (positives - 1) / 2) / (positives * (len(ends) - positives)),
    }
