"""Statistical tests of an environment on the steps of a rollout: what observations, actions, rewards and ends depend on.

All tests are regressions on the same rows, so that they take about a millisecond. They need actions that vary for the same
observation, which an untrained policy gives; a policy that became deterministic gets no answer instead of a wrong one.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.train.diagnose.statistics import distinct_rows, median
from surefoot.train.diagnose.step_features import (
    PRODUCTS,
    StepFeatures,
    Steps,
    explained,
    gained,
    residuals,
)

# Steps that are examined.
ROWS = 2048
# Transitions, and ends of episodes, below which a test gives no result.
FEWEST, FEWEST_ENDS = 128, 20
# Ends of episodes that a window waits for, until it has four times as many steps as it needs otherwise.
ENDS = 8
# Delays of observations and rewards that are tested, in steps.
LAGS = (1, 2, 3, 4, 5, 6, 8, 10)
# Share of the variance of actions that observations may explain; above it, effects of the two cannot be separated.
DETERMINED = 0.9
# Updates at which a window begins, and the most rollouts of one. Early ones count most: an untrained policy tries everything.
WINDOWS, LONGEST = frozenset({0, 40, 160, 640, 2560}), 32


class EnvironmentMonitor:
    """Gathers the rollouts of a few windows of a run and tests the environment once in each."""

    def __init__(self, choices: tuple[int, ...] = (), bounds: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        self._choices, self._bounds = choices, bounds
        self._parts: list[Steps] | None = None

    def forget(self) -> None:
        """Drop the rollouts of an unfinished window: the next rollout does not follow them."""
        self._parts = None

    def add(self, rollout: Rollout, updates: int) -> dict[str, float]:
        """Take the rollout of the update after `updates`; return the results when a window is complete, else {}."""
        if updates in WINDOWS:
            self._parts = []
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
        # A window is extended for some time until episodes have ended in it.
        if (rows < ROWS or (ends < ENDS and rows < 4 * ROWS)) and len(self._parts) < LONGEST:
            return {}
        joined, self._parts = Steps.joined(self._parts), None
        return environment_stats(joined, self._choices, self._bounds)


def environment_stats(
    steps: Steps, choices: tuple[int, ...] = (), bounds: tuple[np.ndarray, np.ndarray] | None = None
) -> dict[str, float]:
    """Return what about 2,048 consecutive steps show about the environment; a test that cannot be made has no entry.

    `choices` counts those of each discrete action; continuous actions are clipped to `bounds`, as the environment does.
    """
    # What is not finite has its own rule.
    if len(steps.reward) < 2 or not np.isfinite(steps.obs).all():
        return {}
    with np.errstate(all="ignore"):
        rows = StepFeatures(steps, choices, bounds)
        stats = {**_observations(rows), **_effects(rows), **_rewards(rows), **_ends(rows)}
    return {name: float(x) for name, x in stats.items() if math.isfinite(x)}


def _observations(rows: StepFeatures) -> dict[str, float]:
    obs, follows = rows.obs, rows.follows
    width = obs.shape[2]
    stats = {"obs_constant_share": 1.0 - len(rows.moving) / width, "obs_abs_max": float(np.abs(obs).max())}
    now, after = obs[:-1][follows], obs[1:][follows]
    if len(now) < FEWEST:
        return stats
    # Few distinct observations are places on a map or symbols, which may well stay the same.
    stats["obs_distinct_share"] = distinct_rows(obs.reshape(-1, width)) / (len(obs) * obs.shape[1])
    stats["obs_repeat_share"] = float((now == after).all(axis=1).mean())
    change = after - now
    # Grows by the same amount in every step, beyond any scale that a network is made for.
    clock = (change.std(0) < 1e-3 * np.abs(change.mean(0))) & (np.abs(obs).max(axis=(0, 1)) > 10.0)
    stats["obs_clock_share"] = float(clock.mean())
    low, high = obs.min(axis=(0, 1)), obs.max(axis=(0, 1))
    at_edge = ((obs == low) | (obs == high)).mean(axis=(0, 1))
    # Flags are 0 or 1 by design; a number cut off at symmetric limits is not.
    stats["obs_saturated_share"] = float(((at_edge > 0.9) & (low < 0.0) & (high > low)).mean())
    stats["obs_dropout_share"] = float(_drops_out(obs, follows).mean())
    return stats


def _drops_out(obs: np.ndarray, follows: np.ndarray) -> np.ndarray:
    """Return which components are exactly 0 now and then, independently of the step before, and many numbers otherwise."""
    zero = obs == 0.0
    share = zero.mean(axis=(0, 1))
    now, after = zero[:-1][follows], zero[1:][follows]
    # A sensor that sees nothing, or a contact, stays so for some time; a flag has few values.
    lasting = (now & after).mean(0) - now.mean(0) * after.mean(0)
    independent = lasting < 0.2 * share * (1.0 - share)
    return np.array([
        bool(s > 0.05 and s < 0.95 and free and distinct_rows(obs[..., i].reshape(-1, 1)) > 0.5 * (1.0 - s) * obs[..., i].size)
        for i, (s, free) in enumerate(zip(share, independent, strict=True))
    ])  # fmt: skip


def _effects(rows: StepFeatures) -> dict[str, float]:
    """Return how well the next observation is explained, and what actions, now or some steps ago, contribute to it."""
    rows = _recent(rows)
    follows = rows.follows
    if not len(rows.moving) or follows.sum() < FEWEST:
        return {}
    state, acted = rows.state[:-1][follows], rows.acted[:-1][follows]
    after = rows.z[1:][follows]
    change = after - rows.z[:-1][follows]
    stats = {"obs_explained": float(explained(np.concatenate([state, acted], axis=1), after).max())}
    # With a single choice there are no columns.
    if rows.decided or not acted.shape[1] or float(explained(state, rows.action[:-1][follows]).max()) > DETERMINED:
        return stats
    stats["action_effect"] = float(gained(state, acted, change).max())
    stats["stream_difference"] = _stream_difference(rows)
    late = [0.0]
    for lag in LAGS[:4]:
        pairs = _steps_apart(follows, lag)
        if pairs is None or pairs.sum() < FEWEST:
            continue
        earlier = rows.acted[: len(pairs)][pairs]
        target = (rows.z[lag + 1 :] - rows.z[lag:-1])[pairs]
        # The earlier observation too: its products with actions would otherwise stand for it.
        known = (rows.state[lag:-1], rows.acted[lag:-1], rows.state[: len(pairs)])
        base = np.concatenate([x[pairs] for x in known], axis=1)
        late.append(float(gained(base, earlier, target).max()))
    stats["action_effect_late"] = max(late)
    return stats


def _stream_difference(rows: StepFeatures) -> float:
    """Return the share of what one model of all streams leaves unexplained that a model per stream explains.

    0 if all streams follow the same rules, or if one model explains nearly everything.
    """
    features = np.concatenate([rows.state[:-1], rows.acted[:-1]], axis=2)
    change, follows, wide = rows.z[1:] - rows.z[:-1], rows.follows, features.shape[2]
    streams = [k for k in range(follows.shape[1]) if follows[:, k].sum() >= 4 * wide]
    if len(streams) < 2:
        return 0.0
    own = np.sum([residuals(features[follows[:, k], k], change[follows[:, k], k])[0] for k in streams], axis=0)
    chosen = follows[:, streams]
    inputs, targets = features[:, streams][chosen], change[:, streams][chosen]
    together, n = residuals(inputs, targets)[0], len(targets)
    unexplained = together / np.maximum(((targets - targets.mean(0)) ** 2).sum(0), 1e-300)
    gain = 1.0 - (own / max(1, n - len(streams) * wide)) / np.maximum(together / max(1, n - wide), 1e-300)
    return float(np.where(unexplained > 0.05, gain, 0.0).max())


def _steps_apart(follows: np.ndarray, lag: int) -> np.ndarray | None:
    """[T - 1 - lag, n]: True where the steps t … t + lag + 1 belong to one episode."""
    if len(follows) <= lag:
        return None
    together = follows[: len(follows) - lag].copy()
    for k in range(1, lag + 1):
        together &= follows[k : len(follows) - lag + k]
    return together


def _recent(rows: StepFeatures) -> StepFeatures:
    """Return the last `ROWS` steps of a window that was extended until episodes ended; regressions need no more."""
    steps, streams = rows.reward.shape
    count = max(64, ROWS // streams)
    if steps <= count:
        return rows
    recent = copy.copy(rows)
    for name, x in vars(rows).items():
        if isinstance(x, np.ndarray) and x.ndim >= 2 and len(x) in (steps, steps - 1):
            setattr(recent, name, x[steps - count :])
    return recent


def _rewards(rows: StepFeatures) -> dict[str, float]:
    rows = _recent(rows)
    reward, stats = rows.reward, dict[str, float]()
    scale = float(np.abs(reward).sum())
    if scale > 0.0 and rows.ended.any():
        stats["reward_at_end_share"] = float(np.abs(reward[rows.ended]).sum()) / scale
    flat = reward[:-1].ravel()
    rare = np.mean(flat != median(flat)) < 0.02
    if not len(rows.moving) or len(flat) < FEWEST or flat.std() < 1e-9 or rare:
        return stats
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
        together = _steps_apart(rows.follows, lag)
        if together is None or together.sum() < 2 * wide:
            continue
        target = reward[lag : lag + len(together)][together][:, None]
        if target.std() < 1e-9:
            continue
        value = float(explained(features[: len(together)][together], target)[0])
        here = float(explained(features[lag : lag + len(together)][together], target)[0])
        # The same rewards, explained by their own step: smooth tasks are explained well by any recent step.
        if 1.0 - here > 3.0 * (1.0 - value) + 0.01 and value > best:
            best, best_lag = value, lag
    stats["reward_lag"] = float(best_lag)
    return stats


def _ends(rows: StepFeatures) -> dict[str, float]:
    """Return how well terminations can be predicted from observation and action: 1 is perfectly, 0.5 is chance."""
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
    return {
        "end_explained": (rank[ends].sum() - positives * (positives - 1) / 2) / (positives * (len(ends) - positives))
    }
