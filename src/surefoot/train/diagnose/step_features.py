"""Consecutive steps of an environment as features of regressions, for the tests in `environment_tests`."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from surefoot.data.rollout import Rollout

# Observation components that are examined (those that vary most), and components that actions are multiplied with.
COMPONENTS, PRODUCTS = 12, 6
# Observation parts wider than this are images or maps; a regression on single numbers does not fit them.
WIDEST = 512


@dataclass(frozen=True, slots=True)
class Steps:
    """Consecutive steps of some streams, [T, n, …]."""

    obs: np.ndarray
    """[T, n, components]"""
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    ended: np.ndarray
    valid: np.ndarray
    start: np.ndarray
    log_prob: np.ndarray

    @classmethod
    def of(cls, rollout: Rollout, streams: int) -> Steps | None:
        """Copy what the tests need of a rollout's first streams; None if its observations are images only."""
        parts = [
            x[:, :streams].reshape(len(x), streams, -1)
            for x in rollout.obs.values()
            if x.dtype.kind in "fiub" and math.prod(x.shape[2:]) <= WIDEST
        ]
        if not parts:
            return None
        obs = np.concatenate([x.astype(np.float64) for x in parts], axis=2)
        # A rollout's rewards are scaled by one number, which changes from rollout to rollout; in float32, hence rounded.
        reward = rollout.reward.astype(np.float64) * rollout.stats.get("return_std", 1.0)
        reward = np.round(reward, 5 - math.floor(math.log10(max(1e-300, float(np.abs(reward).max())))))
        fields = (rollout.action, reward, rollout.terminated, rollout.ended, rollout.valid, rollout.start)
        return cls(obs, *(x[:, :streams].copy() for x in (*fields, rollout.log_prob)))

    @classmethod
    def joined(cls, parts: Sequence[Steps]) -> Steps:
        """Return consecutive rollouts as one."""
        return cls(*(np.concatenate([getattr(each, name) for each in parts]) for name in cls.__slots__))


class StepFeatures:
    """The examined steps, [T, n, …], standardised, with the features that the regressions share."""

    def __init__(
        self, steps: Steps, choices: tuple[int, ...], bounds: tuple[np.ndarray, np.ndarray] | None = None
    ) -> None:
        self.obs = obs = steps.obs
        self.reward, self.terminated = steps.reward.astype(np.float64), steps.terminated
        self.valid, self.ended = steps.valid, steps.ended | ~steps.valid
        self.follows = ~self.ended[:-1] & steps.valid[1:] & ~steps.start[1:]
        """[T - 1, n]: the next step belongs to the same episode."""
        most = sum(math.log(n) for n in choices)
        # Of the largest entropy; a policy that hardly varies its choices shows nothing about their effect.
        self.decided = _decided(steps, most)
        spread = obs.reshape(-1, obs.shape[2]).std(0)
        self.moving = np.flatnonzero(spread > 1e-9 * np.maximum(1.0, np.abs(obs).max(axis=(0, 1))))
        most = self.moving[np.argsort(-spread[self.moving], kind="stable")[:COMPONENTS]]
        self.z = (obs[..., most] - obs[..., most].mean(axis=(0, 1))) / spread[most]
        self.continuous = not choices
        self.action = _action_columns(steps.action, choices, bounds)
        products = self.z[..., :PRODUCTS, None] * self.action[..., None, :]
        self.acted = np.concatenate([self.action, products.reshape(*self.action.shape[:2], -1)], axis=2)
        ones = np.ones((*self.z.shape[:2], 1))
        self.state = np.concatenate([ones, self.z, self.z**2], axis=2)

    @property
    def inner(self) -> np.ndarray:
        """[T - 2, n]: the step before and the step after t + 1 belong to its episode."""
        return self.follows[:-1] & self.follows[1:]

    @property
    def episode(self) -> np.ndarray:
        """[T, n]: a number for each episode."""
        cuts = np.concatenate([np.zeros((1, self.reward.shape[1]), np.int64), np.cumsum(~self.follows, axis=0)])
        return cuts + np.arange(self.reward.shape[1]) * len(cuts)

    @property
    def numbers(self) -> list[int]:
        """Columns of `z` that have more than two values: neither flags nor parts of symbols."""
        columns = self.z.reshape(-1, self.z.shape[2])
        others = columns != columns[0]
        return [i for i, column in enumerate(columns.T) if others[:, i].any() and np.ptp(column[others[:, i]]) > 0.0]

    def recent(self, rows: int) -> StepFeatures:
        """Return the last steps, about `rows` of all streams together and at least 64 of each."""
        steps, streams = self.reward.shape
        count = max(64, rows // streams)
        if steps <= count:
            return self
        last = copy.copy(self)
        for name, x in vars(self).items():
            if isinstance(x, np.ndarray) and x.ndim >= 2 and len(x) in (steps, steps - 1):
                setattr(last, name, x[steps - count :])
        return last


def _decided(steps: Steps, most: float) -> bool:
    """Return whether the policy hardly varies its actions; `most` is the largest entropy of its choices, 0 if it has none."""
    entropy = -float(steps.log_prob.mean())
    if most > 0.0:
        return entropy < 0.4 * most
    numbers = steps.action.reshape(-1, steps.action[0, 0].size).astype(np.float64)
    # The entropy of normal actions that vary, for the same observation, by a fifth of what they vary by altogether.
    spread = np.log(np.maximum(numbers.std(0), 1e-300)) + 0.5 * math.log(2.0 * math.pi * math.e) + math.log(0.2)
    return entropy < float(spread.sum())


def _action_columns(
    action: np.ndarray, choices: tuple[int, ...], bounds: tuple[np.ndarray, np.ndarray] | None
) -> np.ndarray:
    """[T, n, columns]: one column per choice but the first, or the standardised numbers and their squares."""
    flat = action.reshape(*action.shape[:2], -1)
    if choices and flat.dtype.kind in "iu" and flat.shape[2] == len(choices):
        columns = [flat[..., k, None] == np.arange(1, min(n, 8)) for k, n in enumerate(choices)]
        return np.concatenate(columns, axis=2).astype(np.float64)
    numbers = flat[..., :8].astype(np.float64)
    if bounds is not None:
        numbers = np.clip(numbers, bounds[0][:8], bounds[1][:8])
    scaled = (numbers - numbers.mean(axis=(0, 1))) / np.maximum(numbers.std(axis=(0, 1)), 1e-9)
    # Squares: many rewards have a price of the control.
    return np.concatenate([scaled, scaled**2], axis=2)


def fitted(features: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the coefficients of a regression without centring, [columns, targets]."""
    # By torch, as below.
    rows, goals = torch.from_numpy(features), torch.from_numpy(targets)
    system = rows.T @ rows + 1e-6 * len(features) * torch.eye(features.shape[1], dtype=torch.float64)
    return torch.linalg.solve_ex(system, rows.T @ goals).result.numpy()


def explained(features: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the adjusted R² of each target."""
    gram, products, squares = _moments(features, targets)
    left, n = _unexplained(gram, products, squares, len(features)), len(targets)
    return 1.0 - (left / max(1, n - features.shape[1])) / np.maximum(squares / max(1, n - 1), 1e-300)


def gained(base: np.ndarray, more: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the share of what `base` leaves unexplained that `more` explains, adjusted for the number of columns."""
    n, few, many = len(targets), base.shape[1], base.shape[1] + more.shape[1]
    gram, products, squares = _moments(np.concatenate([base, more], axis=1), targets)
    before = _unexplained(gram[:few, :few], products[:few], squares, n)
    after = _unexplained(gram, products, squares, n)
    # A target that `base` explains to rounding has nothing left to explain.
    negligible = before < 1e-9 * np.maximum((targets**2).sum(0), 1e-300)
    return np.where(negligible, 0.0, 1.0 - (after / max(1, n - many)) / np.maximum(before / max(1, n - few), 1e-300))


def _moments(features: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return FᵀF, FᵀY and the diagonal of YᵀY, for centred targets Y: all that a regression needs of the rows."""
    centred = targets - targets.mean(0)
    # By torch: a run has set its number of threads. numpy's would take every core and wait for them.
    rows, goals = torch.from_numpy(features), torch.from_numpy(centred)
    return (rows.T @ rows).numpy(), (rows.T @ goals).numpy(), np.einsum("ij,ij->j", centred, centred)


def _unexplained(gram: np.ndarray, products: np.ndarray, squares: np.ndarray, rows: int) -> np.ndarray:
    """Return ‖Y - FB‖² = YᵀY - Bᵀ(FᵀY + λB) where (FᵀF + λ) B = FᵀY, without the rows."""
    # A small ridge: constant or repeated columns must not make the system singular.
    ridge = 1e-6 * rows
    system = torch.from_numpy(gram + ridge * np.eye(len(gram)))
    solution = torch.linalg.solve_ex(system, torch.from_numpy(products)).result.numpy()
    return np.maximum(squares - np.einsum("ij,ij->j", solution, products + ridge * solution), 0.0)
