"""Rewards of every kind, and what happens when one misbehaves."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from surefoot.errors import ConfigError, RewardError
from surefoot.lm.rewards.fluency import distinct
from surefoot.lm.rewards.rewards import ResponseDrift, RewardInputs, ScoreScale, as_rewards, repetition
from surefoot.lm.sampling.rollout import group_advantages

SAID = RewardInputs(
    prompts=["p", "q"],
    responses=["aa", "abc"],
    prompt_ids=[np.array([1]), np.array([2, 3])],
    response_ids=[np.array([5, 5]), np.array([5, 6, 7])],
    conversations=[
        [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}, {"role": "assistant", "content": "aa"}],
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "abc"}],
    ],
    rows=[{"prompt": "p", "answer": "aa"}, {"prompt": "q", "answer": "x"}],
)


def length(prompt, response):
    return float(len(response))


def test_a_function_of_prompt_and_response():
    assert as_rewards(length)(SAID)[0].tolist() == [2.0, 3.0]


def test_a_function_of_all_at_once():
    def many(prompts, responses):
        return [len(prompts)] * len(responses)

    assert as_rewards(many)(SAID)[0].tolist() == [2.0, 2.0]


def test_a_function_receives_what_its_parameters_are_called():
    def right(response, row, conversation):
        return (response == row["answer"]) + len(conversation) / 10

    assert as_rewards(right)(SAID)[0].tolist() == [1.3, 0.2]
    assert as_rewards(lambda rows: [row["answer"] == "x" for row in rows])(SAID)[0].tolist() == [0.0, 1.0]


def test_more_parameters_than_there_are_things_are_refused_with_the_names():
    with pytest.raises(ConfigError, match=r"takes \(prompt, response, gold\).*prompt, response, conversation, row"):
        as_rewards(lambda prompt, response, gold: 0.0)
    with pytest.raises(ConfigError, match=r"takes \(prompts, response, row\)"):
        as_rewards(lambda prompts, response, row: 0.0)


def test_several_are_weighted_and_told_apart():
    total, each = as_rewards({"long": (length, 2.0), "a": (lambda p, r: r.count("a"), -1.0)})(SAID)
    assert total.tolist() == [2.0, 5.0]
    assert each["a"].tolist() == [2.0, 1.0]


def test_a_module_sees_the_tokens_padded_on_the_right_in_eval_mode():
    seen = {}

    class Module(torch.nn.Module):
        def forward(self, ids, mask):
            seen.update(ids=ids.tolist(), mask=mask.tolist(), training=self.training)
            return (ids * mask).sum(1).float()

    assert as_rewards(Module())(SAID)[0].tolist() == [11.0, 23.0]
    assert seen == {"ids": [[1, 5, 5, 0, 0], [2, 3, 5, 6, 7]], "mask": [[1, 1, 1, 0, 0], [1] * 5], "training": False}


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        (lambda p, r: 1 / 0, "raised ZeroDivisionError"),
        (lambda p, r: "good", "one number per response"),
        (lambda prompts, responses: [1.0], "1 numbers for 2 responses"),
    ],
)
def test_a_reward_that_fails_is_named(reward, said):
    with pytest.raises(RewardError, match=said):
        as_rewards(reward)(SAID)


def test_a_reward_that_hangs_is_given_up_on():
    began = time.monotonic()
    with pytest.raises(RewardError, match=r"did not return within 0.05 s"):
        as_rewards(lambda p, r: time.sleep(5), timeout=0.05)(SAID)
    assert time.monotonic() - began < 2


def test_nan_and_none_are_handed_on():
    assert np.isnan(as_rewards(lambda p, r: None)(SAID)[0]).all()


@pytest.mark.parametrize("bad", [3.0, lambda x: 1.0, []])
def test_what_is_no_reward_is_refused(bad):
    with pytest.raises(ConfigError):
        as_rewards(bad)


def test_normalised_scores_have_mean_0_and_deviation_1_over_all_so_far():
    scale = ScoreScale(normalize=True)
    first, second = np.array([1.0, 2.0, np.nan]), np.array([5.0, 9.0])
    scale(first)
    found = scale(second)
    seen = np.array([1.0, 2.0, 5.0, 9.0])
    assert np.allclose(found, (second - seen.mean()) / seen.std())
    again = ScoreScale(normalize=True)
    again.set_state(scale.state())
    assert np.allclose(again(second), scale(second))


def test_scores_are_clipped_after_they_are_normalised():
    assert ScoreScale(clip=2.0)(np.array([-9.0, 1.0, 9.0])).tolist() == [-2.0, 1.0, 2.0]


def test_repetition_and_distinctness():
    assert repetition([1, 2, 3, 4]) == 0.0
    assert repetition([1, 2, 1, 2, 1]) == pytest.approx(0.5)
    assert distinct([[1, 2, 3], [1, 2, 3]]) == 0.5


def test_drift_is_told_from_the_first_step():
    drift = ResponseDrift()
    drift.see(length=10.0, repetition=0.1)
    now = drift.see(length=25.0, repetition=0.4)
    assert now == {"length_drift": 2.5, "repetition_drift": pytest.approx(0.3)}


def test_a_rise_of_the_nll_counts_from_a_fluent_level_on():
    drift = ResponseDrift()
    assert drift.see(nll=0.8) == {"nll_drift": pytest.approx(0.8 / 1.5)}
    assert drift.see(nll=1.5) == {"nll_drift": 1.0}
    drift = ResponseDrift()
    drift.see(nll=3.0)
    assert drift.see(nll=4.5) == {"nll_drift": 1.5}


def test_rloo_compares_with_the_mean_of_the_others():
    assert group_advantages(np.array([1.0, 2.0, 6.0]), 3, scale=False).tolist() == [-3.0, -1.5, 4.5]


def test_grpo_divides_by_the_deviation_and_equal_scores_say_nothing():
    found = group_advantages(np.array([1.0, 3.0, 5.0, 5.0]), 2, scale=True)
    assert found.tolist() == [-1.0, 1.0, 0.0, 0.0]


def test_a_nan_is_left_out_of_its_group():
    found = group_advantages(np.array([1.0, np.nan, 4.0]), 3, scale=False)
    assert found[[0, 2]].tolist() == [-3.0, 3.0]
    assert np.isnan(found[1])
