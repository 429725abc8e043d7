"""What each choice would have earned, guessed from the log: the direct part of the doubly robust estimate.

Both guesses are ridges, and each half of the log is judged by the one that was fitted on the other half.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surefoot.data.experience import Decision

Guess = tuple[np.ndarray, np.ndarray]
"""(of the action that was taken, of the policy that is judged), one number a decision."""
MOST = 2000
"""Decisions that a ridge is fitted on."""


def by_action(made: Sequence[Decision], reward: np.ndarray, target: Sequence[np.ndarray]) -> Guess:
    """A ridge of rewards on what was seen, one for each action."""
    rows, chances = np.stack([m.obs["obs"] for m in made]), np.stack(target)
    taken = np.array([m.action for m in made])
    predicted, expected = np.zeros(len(taken)), np.zeros(len(taken))
    fold = np.arange(len(taken)) % 2
    for half in (0, 1):
        fit, use = fold != half, fold == half
        worth = np.full((int(use.sum()), chances.shape[1]), float(reward[fit].mean()))
        for action in range(chances.shape[1]):
            own = np.flatnonzero(fit & (taken == action))[-MOST:]
            if len(own) >= 5:
                worth[:, action] = _ridge(rows[own], reward[own], rows[use])
        predicted[use] = worth[np.arange(len(worth)), taken[use]]
        expected[use] = (chances[use] * worth).sum(axis=1)
    return predicted, expected


def by_description(made: Sequence[Decision], reward: np.ndarray, target: Sequence[np.ndarray]) -> Guess:
    """One ridge of rewards on what was seen, what the candidate is described by, and where they agree."""
    taken = np.array([_pairs(m)[m.action] for m in made])
    predicted, expected = np.zeros(len(made)), np.zeros(len(made))
    fold = np.arange(len(made)) % 2
    for half in (0, 1):
        fit, use = np.flatnonzero(fold != half)[-MOST:], range(half, len(made), 2)
        every = [_pairs(made[place]) for place in use]
        worth = np.split(
            _ridge(taken[fit], reward[fit], np.concatenate(every)), np.cumsum([len(x) for x in every])[:-1]
        )
        for place, each in zip(use, worth, strict=True):
            predicted[place] = each[made[place].action]
            expected[place] = float(target[place] @ each)
    return predicted, expected


def _pairs(made: Decision) -> np.ndarray:
    """[K, 3 · size]"""
    given = made.obs["candidates"]
    row = np.broadcast_to(made.obs["obs"], given.shape)
    return np.concatenate([row, given, row * given], axis=1)


def _ridge(x: np.ndarray, y: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Values at `at` of the ridge through (x, y), in its dual: as many unknowns as decisions, not as numbers."""
    centre, level = x.mean(0), float(y.mean())
    moved = x - centre
    dual = np.linalg.solve(moved @ moved.T + np.eye(len(moved)), y - level)
    return level + (at - centre) @ (moved.T @ dual)
