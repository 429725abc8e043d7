"""The direct method: rewards predicted by ridge regression, the model part of the doubly robust estimate.

Cross-fitted: each half of the log is predicted by the regression of the other half, so that no decision predicts itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surefoot.data.experience import Decision

Guess = tuple[np.ndarray, np.ndarray]
"""Predicted reward of the logged action, and expected reward of the evaluated policy; one number per decision each."""
# Decisions per regression: solving the dual system of 2,000 takes a tenth of a second.
MOST = 2000


def by_action(decisions: Sequence[Decision], reward: np.ndarray, target: Sequence[np.ndarray]) -> Guess:
    """Fit one regression of rewards on observations per action."""
    rows, chances = np.stack([m.obs["obs"] for m in decisions]), np.stack(target)
    taken = np.array([m.action for m in decisions])
    predicted, expected = np.zeros(len(taken)), np.zeros(len(taken))
    # Alternating, not first and second half: rewards that drift over time would differ between the halves.
    fold = np.arange(len(taken)) % 2
    for half in (0, 1):
        fit, use = fold != half, fold == half
        values = np.full((int(use.sum()), chances.shape[1]), float(reward[fit].mean()))
        for action in range(chances.shape[1]):
            rows_of_action = np.flatnonzero(fit & (taken == action))[-MOST:]
            # An action with fewer outcomes is predicted by the mean of all: a regression would fit their noise.
            if len(rows_of_action) >= 5:
                values[:, action] = _ridge(rows[rows_of_action], reward[rows_of_action], rows[use])
        predicted[use] = values[np.arange(len(values)), taken[use]]
        expected[use] = (chances[use] * values).sum(axis=1)
    return predicted, expected


def by_description(decisions: Sequence[Decision], reward: np.ndarray, target: Sequence[np.ndarray]) -> Guess:
    """Fit one regression of rewards on observation, candidate and their product."""
    taken = np.array([_pairs(m)[m.action] for m in decisions])
    predicted, expected = np.zeros(len(decisions)), np.zeros(len(decisions))
    fold = np.arange(len(decisions)) % 2
    for half in (0, 1):
        fit, use = np.flatnonzero(fold != half)[-MOST:], range(half, len(decisions), 2)
        every = [_pairs(decisions[place]) for place in use]
        values = np.split(
            _ridge(taken[fit], reward[fit], np.concatenate(every)), np.cumsum([len(x) for x in every])[:-1]
        )
        for place, each in zip(use, values, strict=True):
            predicted[place] = each[decisions[place].action]
            expected[place] = float(target[place] @ each)
    return predicted, expected


def _pairs(decision: Decision) -> np.ndarray:
    """[K, 3 · size]"""
    candidates = decision.obs["candidates"]
    row = np.broadcast_to(decision.obs["obs"], candidates.shape)
    return np.concatenate([row, candidates, row * candidates], axis=1)


def _ridge(x: np.ndarray, y: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return predictions at `at` of the ridge regression of y on x, solved in the dual: one unknown per decision."""
    centre, level = x.mean(0), float(y.mean())
    moved = x - centre
    # Where an embedding has more numbers than an action has outcomes, the dual system is the smaller one. The identity is
    # a ridge of 1; it keeps the system solvable where observations repeat.
    dual = np.linalg.solve(moved @ moved.T + np.eye(len(moved)), y - level)
    return level + (at - centre) @ (moved.T @ dual)
