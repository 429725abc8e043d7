"""Answers to held-out prompts: the same random numbers each time, by policy or reference."""

from __future__ import annotations

import pytest
import torch
from lm_helpers import training

from surefoot.lm.data import messages_of


def test_at_the_start_policy_and_reference_answer_alike_and_afterwards_not():
    run = training(judge=lambda responses: [0.0] * 3, lr=3e-2, judge_every=100)
    by_policy, by_reference = run.held_out(False), run.held_out(True)
    assert by_policy[0].responses == by_reference[0].responses
    assert by_policy[1] == by_reference[1]
    for _ in range(3):
        run.step()
    assert run.held_out(True)[0].responses == by_reference[0].responses
    assert run.held_out(False)[0].responses != by_reference[0].responses


def test_the_nll_is_that_of_the_answers_under_the_reference():
    run = training(judge=lambda responses: [0.0] * 3)
    inputs, fluency = run.held_out(True)
    total, count = 0.0, 0
    for prompt, response in zip(inputs.prompt_ids, inputs.response_ids, strict=True):
        ids = torch.tensor([*prompt, *response])[None]
        with torch.no_grad(), run.policy.reference():
            log_probs = run.policy.backbone.model(ids).logits[0, :-1].log_softmax(-1)
        total -= float(log_probs.gather(1, ids[0, 1:, None])[len(prompt) - 1 :].sum())
        count += len(response)
    ended = sum(len(r) < run.config.max_new_tokens for r in inputs.response_ids)
    if not ended:  # an end token is counted too, and `response_ids` has none
        assert fluency.nll == pytest.approx(total / count, rel=1e-4)
    assert inputs.conversations[0][:-1] == messages_of("hello")
