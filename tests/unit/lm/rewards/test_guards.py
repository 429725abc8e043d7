"""The KL budget and the held-out judge, on a policy of one number."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot.errors import ConfigError, RewardError
from surefoot.lm.config import LMConfig
from surefoot.lm.rewards.fluency import Fluency
from surefoot.lm.rewards.guards import PATIENCE, Guards
from surefoot.lm.rewards.kl_penalty import FixedBeta
from surefoot.lm.rewards.rewards import RewardInputs

SAID = RewardInputs(["p"], ["r"], [np.array([1])], [np.array([2])])
PLAIN = Fluency(nll=2.0, repetition=0.0, refusals=0.0)


class OneNumber:
    def __init__(self) -> None:
        self.x = torch.tensor(0.0)

    def state_dict(self):
        return {"x": self.x}

    def load_state_dict(self, state) -> None:
        self.x = state["x"].clone()


def guards(policy, judge=None, **settings):
    limited = any(name.endswith("_limit") for name in settings)
    return Guards(LMConfig(steps=100, **settings), policy, judge, int(bool(judge or limited)))


def test_beyond_the_budget_the_last_weights_within_it_are_restored_and_the_run_ends():
    policy = OneNumber()
    guard = guards(policy, kl_budget=1.0)
    assert guard.before_update(0.5, FixedBeta(0.1)) == (None, [])
    policy.x = torch.tensor(3.0)
    stopped, notes = guard.before_update(2.0, FixedBeta(0.1))
    assert "2.0 nats per response exceed kl_budget=1" in stopped
    assert notes == [stopped]
    assert policy.x == 0.0
    assert guard.held_back


def test_with_back_beta_grows_by_half_until_patience_ends():
    guard, beta = guards(OneNumber(), kl_budget=1.0, over_budget="back"), FixedBeta(1.0)
    guard.before_update(0.5, beta)
    results = [guard.before_update(2.0, beta)[0] for _ in range(PATIENCE)]
    assert [result is None for result in results] == [True, True, False]
    assert beta.beta == 1.5**2


def test_without_progress_by_the_judge_the_best_weights_are_restored():
    policy, scores = OneNumber(), iter([1.0, 3.0, 2.0, 2.5])
    guard = guards(policy, judge=lambda prompts, responses: [next(scores)], judge_every=1, judge_patience=2)
    stopped = None
    for step in range(1, 5):
        policy.x = torch.tensor(float(step))
        stopped, _ = guard.after_update(step, 0.0, lambda by_reference: (SAID, PLAIN))
    assert "its best was 3 at step 2" in str(stopped)
    assert policy.x == 2.0


def test_the_state_is_restored():
    policy = OneNumber()
    guard = guards(policy, kl_budget=1.0)
    guard.before_update(0.5, FixedBeta(0.1))
    guard.best_step, guard.score_then = 7, 0.25
    other = guards(policy, kl_budget=1.0)
    other.set_state(guard.state())
    assert (other.best_step, other.score_then, other.within) == (7, 0.25, {"x": torch.tensor(0.0)})


def test_a_judge_that_raises_is_one_sentence():
    guard = guards(OneNumber(), judge=lambda prompts, responses: {}["x"], judge_every=1)
    with pytest.raises(RewardError, match="the judge <lambda> raised KeyError: 'x'"):
        guard.after_update(1, 0.0, lambda by_reference: (SAID, PLAIN))


def test_a_judge_without_prompts_is_refused():
    with pytest.raises(ConfigError, match="the judge has no prompts"):
        Guards(LMConfig(), OneNumber(), lambda prompts, responses: [0.0], 0)


def test_beyond_a_limit_of_fluency_the_last_weights_within_it_are_restored_and_the_run_ends():
    policy = OneNumber()
    guard = guards(policy, nll_limit=0.15, judge_every=1)
    results = []
    for step, nll in enumerate((2.0, 2.2, 2.4), 1):
        policy.x = torch.tensor(float(step))
        now = Fluency(nll=nll, repetition=0.0, refusals=0.0)
        results.append(guard.after_update(step, 0.0, lambda base, now=now: (SAID, PLAIN if base else now))[0])
    assert results[:2] == [None, None]
    assert "the reference NLL per token is 2.40, +20% (nll_limit=0.15)" in str(results[2])
    assert policy.x == 2.0
    assert guard.stats()["eval_nll_drift"] == pytest.approx(1.2)


def test_with_back_the_run_goes_on_beyond_a_limit_with_a_larger_beta_until_patience_ends():
    policy, beta = OneNumber(), FixedBeta(1.0)
    guard = guards(policy, nll_limit=0.15, judge_every=1, over_budget="back")
    results = []
    for step, nll in enumerate((2.0, 2.4, 2.1, 2.4, 2.4), 1):
        policy.x = torch.tensor(float(step))
        now = Fluency(nll=nll, repetition=0.0, refusals=0.0)
        results.append(guard.after_update(step, 0.0, lambda base, now=now: (SAID, PLAIN if base else now), beta)[0])
        assert policy.x == {1: 1.0, 2: 1.0, 3: 3.0, 4: 3.0, 5: 3.0}[step]
    assert [result is None for result in results] == [True, True, True, True, False]
    assert beta.beta == 1.5**2
    other = guards(OneNumber(), nll_limit=0.15, judge_every=1)
    other.set_state(guard.state())
    assert other.over_limits == PATIENCE


def test_the_baseline_of_fluency_is_saved_with_the_run():
    guard = guards(OneNumber(), refusal_limit=0.1, judge_every=1)
    guard.after_update(1, 0.0, lambda base: (SAID, PLAIN))
    other = guards(OneNumber(), refusal_limit=0.1, judge_every=1)
    other.set_state(guard.state())
    assert other.base == PLAIN
    assert other.fluent == {"x": torch.tensor(0.0)}


def test_limits_of_fluency_without_held_out_prompts_are_refused():
    with pytest.raises(ConfigError, match="nll_limit"):
        Guards(LMConfig(nll_limit=0.1), OneNumber(), None, 0)


def test_a_judge_that_returns_nothing_finite_is_one_sentence():
    guard = guards(OneNumber(), judge=lambda prompts, responses: [float("nan")], judge_every=1)
    with pytest.raises(RewardError, match="none of the judge's 1 scores is a finite number"):
        guard.after_update(1, 0.0, lambda base: (SAID, PLAIN))
