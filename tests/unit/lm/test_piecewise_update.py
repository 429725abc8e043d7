"""Learning from a minibatch in pieces: the same gradient step as in one piece."""

from __future__ import annotations

import pytest
import torch
from lm_helpers import training


@pytest.mark.parametrize("how", [{}, {"kl_in": "loss", "kl": "k3"}, {"train": "full"}, {"top": 1}], ids=str)
def test_learning_a_few_responses_at_a_time_is_the_same_step(how):
    steps = []
    for rows in (None, 3):
        run = training(learn_rows=rows, **how)
        steps.append((run.step(), run.policy.state_dict()))
    (whole, one), (pieces, other) = steps
    assert all(torch.allclose(one[name], other[name], atol=1e-6) for name in one)
    for name in ("loss", "policy_loss", "value_loss", "entropy", "kl_to_reference", "grad_norm", "approx_kl"):
        assert getattr(pieces.report, name) == pytest.approx(getattr(whole.report, name), rel=1e-3, abs=1e-6), name
    assert pieces.report.first_ratio_error < 1e-5


def test_a_piece_whose_scores_are_all_missing_is_passed_over():
    def some(prompts, responses):
        return [float("nan")] * 2 + [1.0 + 0.1 * i for i in range(len(responses) - 2)]

    run = training(some, learn_rows=2, ppo={"minibatches": 1})
    step = run.step()
    assert step.report.skipped_reason is None
    assert step.stats["nonfinite_scores"] == 2
