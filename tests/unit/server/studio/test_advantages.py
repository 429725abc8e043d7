"""Advantages with the rewards they come from."""

import numpy as np
import pytest

from surefoot.data.rollout import Rollout
from surefoot.server.studio.advantages import advantages_of


def rollout(reward: list[float], ended: int) -> Rollout:
    shape = (len(reward), 2)
    flags = {name: np.zeros(shape, bool) for name in ("terminated", "truncated", "start")}
    flags["terminated"][ended] = True
    return Rollout(
        obs={"obs": np.zeros((*shape, 1), np.float32)},
        action=np.zeros(shape, np.int64),
        log_prob=np.zeros(shape, np.float32),
        value=np.full(shape, 0.5, np.float32),
        next_value=np.full(shape, 0.5, np.float32),
        reward=np.stack([reward, reward], axis=1).astype(np.float32),
        valid=np.ones(shape, bool),
        policy_version=np.zeros(shape, np.int64),
        **flags,
    )


def test_an_advantage_is_the_discounted_sum_of_the_errors_to_the_end_of_the_episode() -> None:
    """By hand, with γ = 0.5 and λ = 1: δ = r + 0.25 - 0.5, without the future where the episode ends."""
    found = advantages_of(rollout([1.0, 2.0, 4.0], ended=1), 9, gamma=0.5, lam=1.0)
    assert (found["stream"], found["streams"]) == (1, 2)
    assert [row["delta"] for row in found["rows"]] == pytest.approx([0.75, 1.5, 3.75])
    assert [row["advantage"] for row in found["rows"]] == pytest.approx([0.75 + 0.5 * 1.5, 1.5, 3.75])
    assert [row["ended"] for row in found["rows"]] == [False, True, False]
    assert [row["next"] for row in found["rows"]] == [0.5, 0.0, 0.5]
