"""Rewards and advantages of responses, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.lm.rewards.rewards import ResponseDrift
from surefoot.lm.sampling.rollout import group_advantages, lay_out, response_stats, to_rollout, token_rewards
from surefoot.lm.sampling.sampler import Response


def responses() -> list[Response]:
    one = Response(np.array([1, 2]), tokens=[3, 4], log_prob=[-1.0, -2.0], value=[0.5, 0.25], ended=True)
    return [one, Response(np.array([5]), tokens=[6], log_prob=[-0.5], value=[0.75])]


def test_a_response_is_a_column_padded_to_the_longest():
    batch = lay_out(responses())
    assert batch.action.tolist() == [[3, 6], [4, 0]]
    assert batch.valid.tolist() == [[True, True], [True, False]]
    assert batch.last.tolist() == [[False, True], [True, False]]
    assert batch.kl().tolist() == [-3.0, -0.5]  # the reference's log-probs are still 0


def test_every_token_pays_for_its_kl_and_the_last_one_gets_the_score():
    reward = token_rewards(lay_out(responses()), np.array([10.0, 20.0]), beta=0.5, decay=1.0)
    assert reward.tolist() == [[0.5, 20.25], [11.0, 0.0]]


def test_the_value_after_a_token_is_that_of_the_next_and_0_after_the_last():
    batch = lay_out(responses())
    rollout = to_rollout(batch, np.zeros((2, 2), np.float32), version=3, kl_in_loss=False, stats={})
    assert rollout.next_value[0].tolist() == [0.25, 0.0]
    assert rollout.terminated.tolist() == batch.last.tolist()
    assert rollout.policy_version.max() == 3


def test_rloo_compares_with_the_mean_of_the_others():
    assert group_advantages(np.array([1.0, 2.0, 6.0]), 3, scale=False).tolist() == [-3.0, -1.5, 4.5]


def test_grpo_divides_by_the_deviation_and_leaves_out_what_is_missing():
    first, second, missing = group_advantages(np.array([1.0, 3.0, np.nan]), 3, scale=True)
    assert (first, second) == (-1.0, 1.0)
    assert np.isnan(missing)


def test_stats_leave_out_responses_without_a_score():
    batch = lay_out(responses())
    batch.valid[:, 1] = False
    stats = response_stats(batch, responses(), ["", ""], np.array([2.0, np.nan]), {}, ResponseDrift())
    assert (stats["score"], stats["kl"], stats["response_length"], stats["tokens"]) == (2.0, -3.0, 2.0, 3.0)
    assert stats["kl_token"] == pytest.approx(-1.5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_no_number_does_not_move_the_baseline_of_the_others(bad):
    advantage = group_advantages(np.array([bad, 1.0, 3.0, bad, 5.0, bad]), 3, scale=False)
    assert advantage[[1, 2, 4]].tolist() == [-2.0, 2.0, 0.0]
    assert np.isnan(advantage[[0, 3, 5]]).all()


def test_one_nan_does_not_switch_whitening_off():
    batch = lay_out([Response(prompt=np.array([1]), tokens=[2], log_prob=[0.0], value=[0.0]) for _ in range(4)])
    whitened = token_rewards(batch, np.array([np.nan, 20.0, 30.0, 40.0]), beta=0.0, decay=1.0, whiten=True)
    assert np.allclose(whitened[0, 1:], np.array([20.0, 30.0, 40.0]) / np.std([20.0, 30.0, 40.0]))
