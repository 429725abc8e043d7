"""Rewards guessed from the log: exact where they are linear in what was seen."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.data.experience import Decision
from surefoot.server.decisions.direct_method import by_action, by_description


def decision(number: int, obs: dict[str, np.ndarray], action: int) -> Decision:
    name = str(number)
    return Decision(id=name, episode=name, obs=obs, action=action, log_prob=-0.7, value=0.0, policy_version=0)


def test_a_constant_reward_per_action_is_guessed_for_both():
    """Action 0 earns 1 and action 1 earns 3; a policy that takes 1 in a quarter of the cases is worth 1.5."""
    made = [decision(n, {"obs": np.ones(2, np.float32)}, n // 2 % 2) for n in range(40)]
    reward = np.array([1.0 + 2.0 * m.action for m in made])
    predicted, expected = by_action(made, reward, [np.array([0.75, 0.25])] * 40)
    np.testing.assert_allclose(predicted, reward)
    np.testing.assert_allclose(expected, 1.5)


def test_candidates_with_the_same_description_are_worth_the_same():
    rng = np.random.default_rng(0)
    row, same = np.ones(3, np.float32), np.ones((2, 3), np.float32)
    made = [decision(n, {"obs": row, "candidates": same}, int(rng.integers(2))) for n in range(20)]
    predicted, expected = by_description(made, np.full(20, 0.25), [np.array([0.5, 0.5])] * 20)
    assert predicted == pytest.approx(0.25)
    assert expected == pytest.approx(0.25)
