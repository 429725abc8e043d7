"""Statistical tests of observations: constant, stale, rounded, noisy, dropping out, or carried over a reset."""

from __future__ import annotations

import math

import numpy as np

from surefoot.train.diagnose.statistics import distinct_rows
from surefoot.train.diagnose.step_features import StepFeatures, fitted

# Transitions, and episodes, below which a test gives no result.
FEWEST, FEWEST_RESETS = 128, 12
# Steps that regressions use.
ROWS = 2048
# Standard errors from 0 of a correlation that counts: by chance less than one in a thousand for 100 pairs of components.
SIGNIFICANT = 4.5


def observation_stats(rows: StepFeatures) -> dict[str, float]:
    """Return what observations show by themselves and from one step to the next."""
    obs, follows = rows.obs, rows.follows
    width = obs.shape[2]
    stats = {"obs_constant_share": _constant_share(rows), "obs_abs_max": float(np.abs(obs).max())}
    stats |= _resets(rows)
    now, after = obs[:-1][follows], obs[1:][follows]
    if len(now) < FEWEST:
        return stats
    flat = obs.reshape(-1, width)
    # Few distinct observations are places on a map or symbols, which may well stay the same.
    stats["obs_distinct_share"] = distinct_rows(flat) / len(flat)
    stats["obs_repeat_share"] = max(float((now == after).all(axis=1).mean()), _held_share(flat, now, after))
    change = after - now
    # Grows by the same amount in every step, beyond any scale that a network is made for.
    clock = (change.std(0) < 1e-3 * np.abs(change.mean(0))) & (np.abs(flat).max(axis=0) > 10.0)
    stats["obs_clock_share"] = float(clock.mean())
    low, high = flat.min(axis=0), flat.max(axis=0)
    at_edge = ((obs == low) | (obs == high)).mean(axis=(0, 1))
    rounded = _rounded(rows)
    # Flags are 0 or 1 by design; a number cut off at symmetric limits is not.
    stats["obs_saturated_share"] = float(((at_edge > 0.9) & (low < 0.0) & (high > low)).mean())
    stats["obs_dropout_share"] = float(_drops_out(obs, follows).mean())
    return stats | rounded | _noise(rows.recent(ROWS))


def _constant_share(rows: StepFeatures) -> float:
    """Return the share of components that never change. Symbols that did not occur yet do not count."""
    obs = rows.obs
    if len(rows.moving) and obs.shape[2] > 8:
        flat = obs.reshape(-1, obs.shape[2])
        # One of many symbols is 1, the others are 0.
        if (
            set(np.unique(flat[:: max(1, len(flat) // 256)]).tolist()) <= {0.0, 1.0}
            and (flat.sum(1) == flat[0].sum()).all()
        ):
            return 0.0
    return 1.0 - len(rows.moving) / obs.shape[2]


def _held_share(flat: np.ndarray, now: np.ndarray, after: np.ndarray) -> float:
    """Return how often the component that is held most often keeps its value exactly; 0 if none is held.

    Only components with many numbers are counted: a goal stays the same for an episode, a flag for longer.
    """
    most = 0.0
    for i in range(flat.shape[1]):
        column = flat[:, i]
        # At a limit a number may well stay: a contact without force, the range of a sensor.
        free = (now[:, i] != 0.0) & (now[:, i] != column.min()) & (now[:, i] != column.max())
        same = now[:, i] == after[:, i]
        share = float((free & same).mean())
        if (
            share > max(most, 0.2)
            and same.mean() < 0.95
            and distinct_rows(column[:, None]) > 0.25 * (1.0 - share) * len(column)
        ):
            most = share
    return most


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


def _rounded(rows: StepFeatures) -> dict[str, float]:
    """Return how much the step before adds to the same observation and action, if observations are few numbers.

    A map or a card game has few observations too, but there the next one depends on the current one and the action only:
    what came before adds nothing. Rounding hides a part of the state, of which the step before knows something.
    """
    inner, obs = rows.inner, rows.obs[..., rows.moving]
    if inner.sum() < FEWEST or not obs.shape[2]:
        return {}
    sizes = list[int]()
    for i in range(obs.shape[2]):
        sizes.append(distinct_rows(obs[..., i].reshape(-1, 1)))
        if sizes[-1] > obs[..., 0].size / 20:
            return {}
    # Two values are a flag or one of many symbols. Products of indicators of rare symbols are no normal variables.
    numbers = [i for i, size in enumerate(sizes) if size > 2]
    if not numbers:
        return {}
    before, now, after = obs[:-2][inner], obs[1:-1][inner], obs[2:][inner]
    action = rows.action[1:-1][inner]
    # Continuous actions in halves of a deviation, without their squares.
    action = np.round(2.0 * action[:, : action.shape[1] // 2]) + 0.0 if rows.continuous else action
    keys = np.concatenate([now, action], axis=1)
    codes: dict[bytes, int] = {}
    cell = np.array([codes.setdefault(row.tobytes(), len(codes)) for row in keys])
    counts = np.bincount(cell)
    x, y = (_within(columns[:, numbers], cell, counts) for columns in (before, after))
    norms = np.sqrt(np.outer((x**2).sum(0), (y**2).sum(0)))
    correlation = float(np.abs((x.T @ y) / np.maximum(norms, 1e-12)).max())
    free = max(1, len(cell) - len(counts))
    return {"obs_rounded": correlation if correlation * math.sqrt(free) > SIGNIFICANT else 0.0}


def _within(columns: np.ndarray, cell: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the columns without the mean of each row's cell."""
    means = [np.bincount(cell, column, len(counts)) / np.maximum(counts, 1) for column in columns.T]
    return columns - np.stack(means, axis=1)[cell]


def _noise(rows: StepFeatures) -> dict[str, float]:
    """Return how much of a step's surprise is taken back in the next one: noise of the sensor, not of the world.

    A push that was not expected lasts, and what a linear model misses points the same way twice.
    """
    follows, inner = rows.follows, rows.inner
    if inner.sum() < FEWEST or not len(rows.moving):
        return {}
    features = np.concatenate([rows.state, rows.acted], axis=2)[:-1]
    # Flags and symbols jump.
    numbers = rows.numbers
    if not numbers:
        return {}
    change = (rows.z[1:] - rows.z[:-1])[..., numbers]
    surprise = change - features @ fitted(features[follows], change[follows])
    first, second = surprise[:-1][inner], surprise[1:][inner]
    taken_back = -(first * second).mean(0) / np.maximum((first**2).mean(0), 1e-300)
    # Below 2 % of the variance of an observation it is rounding, or does not matter.
    return {"obs_noise": float(np.where((surprise[follows] ** 2).mean(0) > 0.02, taken_back, 0.0).max())}


def _resets(rows: StepFeatures) -> dict[str, float]:
    """Return how far the first observation of an episode depends on the last one of the episode before."""
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    ended, starts = rows.ended & rows.valid, rows.valid
    for apart in (1, 2):
        # Two apart: the step between is not valid, in environments that need a separate step for a reset.
        here = ended[:-apart] & starts[apart:]
        if apart == 2:
            here &= ~starts[1:-1]
        pairs.append((rows.z[:-apart][here], rows.z[apart:][here]))
    last, first = (np.concatenate(side) for side in zip(*pairs, strict=True))
    if len(last) < FEWEST_RESETS or not last.shape[1]:
        return {}
    spread = first.std(0) * last.std(0)
    products = ((first - first.mean(0)) * (last - last.mean(0))).mean(0)
    dependence = float(np.abs(np.where(spread > 1e-9, products / np.maximum(spread, 1e-9), 0.0)).max())
    return {"reset_dependence": dependence if dependence * math.sqrt(len(last)) > SIGNIFICANT else 0.0}
