"""Statistical tests of actions: what observations owe to them, when, and whether that is the same everywhere."""

from __future__ import annotations

import numpy as np
import torch

from surefoot.train.diagnose.observation_tests import FEWEST, ROWS
from surefoot.train.diagnose.statistics import median
from surefoot.train.diagnose.step_features import StepFeatures, explained, fitted, gained

# Delays of effects that are tested, in steps.
LAGS = (1, 2, 3, 4)
# Steps back of actions that are tested together.
RECENT = 8
# Share of the variance of actions that observations may explain; above it, effects of the two cannot be separated.
DETERMINED = 0.9
# Steps of the comparison of episodes.
GROUPED = 4 * ROWS


def effect_stats(whole: StepFeatures) -> dict[str, float]:
    """Return how well the next observation is explained, and what actions, now or some steps ago, contribute to it."""
    rows = whole.recent(ROWS)
    follows = rows.follows
    if not len(rows.moving) or follows.sum() < FEWEST:
        return {}
    state, acted = rows.state[:-1][follows], rows.acted[:-1][follows]
    after = rows.z[1:][follows]
    stats = {"obs_explained": float(explained(np.concatenate([state, acted], axis=1), after).max())}
    # With a single choice there are no columns.
    if rows.decided or not acted.shape[1] or float(explained(state, rows.action[:-1][follows]).max()) > DETERMINED:
        return stats
    stats["stream_difference"] = _stream_difference(rows)
    stats |= _own(rows) | _recent(rows) | _by_group(whole.recent(GROUPED))
    late = [0.0]
    for lag in LAGS:
        pairs = steps_apart(follows, lag)
        if pairs is None or pairs.sum() < FEWEST + 4 * (state.shape[1] + acted.shape[1]):
            continue
        earlier = rows.acted[: len(pairs)][pairs]
        target = (rows.z[lag + 1 :] - rows.z[lag:-1])[pairs]
        # The earlier observation too: its products with actions would otherwise stand for it.
        known = (rows.state[lag:-1], rows.acted[lag:-1], rows.state[: len(pairs)])
        base = np.concatenate([x[pairs] for x in known], axis=1)
        late.append(float(gained(base, earlier, target).max()))
    stats["action_effect_late"] = max(late)
    return stats


def _own(rows: StepFeatures) -> dict[str, float]:
    """Return the part of the change that an action explains: of what is not known without it, and of the acceleration."""
    inner = rows.inner
    base, acted = _past(rows, inner), rows.acted[1:-1][inner]
    if len(base) < FEWEST + 2 * (base.shape[1] + acted.shape[1]):
        return {}
    change = (rows.z[2:] - rows.z[1:-1])[inner]
    # What changes anyway, as by gravity, changed much the same in the step before.
    acceleration = change - (rows.z[1:-1] - rows.z[:-2])[inner]
    gain = gained(base, acted, change)
    left = 1.0 - explained(base, change)
    share = gain * left * change.var(0) / np.maximum(acceleration.var(0), 1e-300)
    return {"action_effect": float(gain.max()), "action_share": float(share.max())}


def _past(rows: StepFeatures, inner: np.ndarray) -> np.ndarray:
    """Return what is known before an action: the observation, and the step before, which shows how things move."""
    known = (rows.state[1:-1], rows.z[:-2], rows.acted[:-2])
    return np.concatenate([x[inner] for x in known], axis=1)


def _recent(rows: StepFeatures) -> dict[str, float]:
    """Return what the last actions of an episode explain together, in steps whose observation changed at all."""
    action, follows = rows.action, rows.follows
    columns, together = [action], np.ones((len(action), action.shape[1]), bool)
    for _ in range(RECENT):
        # An action before the episode began counts as none.
        together = np.concatenate([np.zeros((1, action.shape[1]), bool), together[:-1] & follows])
        shifted = np.concatenate([np.zeros_like(action[:1]), columns[-1][:-1]])
        columns.append(np.where(together[..., None], shifted, 0.0))
    change = rows.z[1:] - rows.z[:-1]
    chosen = follows & (change != 0.0).any(axis=2)
    actions = np.concatenate(columns, axis=2)[:-1][chosen]
    if len(actions) < FEWEST + 2 * actions.shape[1]:
        return {}
    return {"action_effect_recent": float(gained(rows.state[:-1][chosen], actions, change[chosen]).max())}


def _by_group(rows: StepFeatures) -> dict[str, float]:
    """Return the share of the effect of actions that differs between episodes, and not just between streams.

    The regression of one action on one change has the slope b_g in episode g. Their variance beyond that of chance, next
    to the square of their mean, is the share (the variance component of random slopes).
    """
    inner = rows.inner
    # With products of observation and action: an effect that depends on the observation is no difference of episodes.
    products = rows.acted[1:-1][inner][:, rows.action.shape[2] :]
    base = np.concatenate([_past(rows, inner), products], axis=1)
    if len(base) < FEWEST + 4 * base.shape[1]:
        return {}
    action, change = rows.action[1:-1][inner], (rows.z[2:] - rows.z[1:-1])[inner]
    both = np.concatenate([action, change], axis=1)
    action, change = np.split(both - base @ fitted(base, both), [action.shape[1]], axis=1)
    _, episode = np.unique(rows.episode[1:-1][inner], return_inverse=True)
    stream = np.broadcast_to(np.arange(inner.shape[1]), inner.shape)[inner]
    by_episode, by_stream = (_slopes_differ(action, change, group) for group in (episode, stream))
    return {"effect_by_episode": by_episode if by_stream < 0.5 * by_episode else 0.0}


def _slopes_differ(action: np.ndarray, change: np.ndarray, group: np.ndarray) -> float:
    """Return the share for the pair of action and change that slopes per group explain best; 0 if it may be chance."""
    best, share, count = 0.3, 0.0, int(group.max()) + 1
    for x in action.T:
        weight = np.bincount(group, x * x, count)
        used = weight > 1e-9 * max(float(weight.max()), 1e-300)
        groups, total = int(used.sum()), float(weight.sum())
        free = len(x) - groups
        if groups < 4 or total < 1e-6 * len(x) or free < groups:
            continue
        for y in change.T:
            slopes = np.bincount(group, x * y, count) / np.maximum(weight, 1e-300) * used
            mean = float(x @ y) / total
            noise = float(((y - slopes[group] * x) ** 2).sum()) / free
            between = float(((slopes - mean) ** 2 * weight).sum())
            varied = max(0.0, between - (groups - 1) * noise) / total
            power = (mean * mean + varied) * total / max(float(y @ y), 1e-300)
            if power > best:
                # Three times what chance gives: the ratio of the two variances is near 1 with many groups.
                certain = between > 3.0 * (groups - 1) * noise
                # Nor a few episodes with contacts or jumps: in half of them the slope differs, by chance 0.45 deviations².
                certain = certain and median(((slopes - mean) ** 2 * weight)[used]) > 2.0 * noise
                best, share = power, varied / max(mean * mean + varied, 1e-300) if certain else 0.0
    return share


def _stream_difference(rows: StepFeatures) -> float:
    """Return the share of the error of one model of all streams that a model per stream avoids, on steps not used for it.

    0 if all streams follow the same rules, or if one model explains nearly everything.
    """
    features = np.concatenate([rows.state[:-1], rows.acted[:-1]], axis=2)
    # Symbols and flags: each stream is in other places, and only those are in its model.
    numbers = rows.numbers
    if not numbers:
        return 0.0
    change, follows, wide = (rows.z[1:] - rows.z[:-1])[..., numbers], rows.follows, features.shape[2]
    early = follows & (np.arange(len(follows)) < len(follows) // 2)[:, None]
    late = follows & ~early
    chosen = np.flatnonzero((early.sum(0) >= 2 * wide) & (late.sum(0) >= wide))
    if len(chosen) < 2:
        return 0.0
    x, y = (torch.from_numpy(np.ascontiguousarray(part[:, chosen].swapaxes(0, 1))) for part in (features, change))
    ridge = 1e-3 * torch.eye(wide, dtype=torch.float64)
    # [streams, components]: squared errors of a model per stream, of one model, and of none.
    own, together, total = (np.zeros((len(chosen), change.shape[2])) for _ in range(3))
    for train, test in ((early, late), (late, early)):
        used, held = (torch.from_numpy(np.ascontiguousarray(rows_[:, chosen].T))[..., None] for rows_ in (train, test))
        rows_used = (x * used).mT
        systems = rows_used @ x + ridge * used.sum(1, keepdim=True)
        products = rows_used @ y
        single = torch.linalg.solve_ex(systems, products).result
        joint = torch.linalg.solve_ex(systems.sum(0), products.sum(0)).result
        for errors, prediction in ((own, x @ single), (together, x @ joint), (total, 0.0)):
            errors += (((y - prediction) * held) ** 2).sum(1).numpy()
    gain = np.where(together > 0.05 * total, 1.0 - own / np.maximum(together, 1e-300), 0.0)
    # Half of the streams must show it: in a single one, steps that no model fits decide.
    return max(median(column) for column in gain.T)


def steps_apart(follows: np.ndarray, lag: int) -> np.ndarray | None:
    """[T - 1 - lag, n]: True where the steps t … t + lag + 1 belong to one episode."""
    if len(follows) <= lag:
        return None
    together = follows[: len(follows) - lag].copy()
    for k in range(1, lag + 1):
        together &= follows[k : len(follows) - lag + k]
    return together
