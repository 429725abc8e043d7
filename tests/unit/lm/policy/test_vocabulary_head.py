"""Scores of tokens against a plain softmax over all logits."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from surefoot.lm.policy import vocabulary_head
from surefoot.lm.policy.vocabulary_head import pack_support, score, unpack_support


def test_bits_are_packed_from_the_lowest():
    allowed = torch.tensor([[True, False, True] + [False] * 5 + [True]])
    assert pack_support(allowed).tolist() == [[5, 1]]
    assert torch.equal(unpack_support(pack_support(allowed), 9), allowed)


@pytest.mark.parametrize("bias", [False, True], ids=["blocks", "chunks"])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_log_probs_and_entropies_are_those_of_a_softmax(monkeypatch, bias, temperature):
    monkeypatch.setattr(vocabulary_head, "BLOCK", 8)
    monkeypatch.setattr(vocabulary_head, "CHUNK", 64)
    torch.manual_seed(0)
    head, hidden, token = nn.Linear(4, 30, bias=bias), torch.randn(7, 4), torch.randint(30, (7,))
    with torch.no_grad():
        scores = score(hidden, head, token, temperature=temperature)
        log_p = (head(hidden) / temperature).log_softmax(-1)
    assert torch.allclose(scores.log_prob, log_p[torch.arange(7), token], atol=1e-5)
    assert torch.allclose(scores.entropy, -(log_p.exp() * log_p).sum(-1), atol=1e-5)


def test_a_forbidden_token_takes_no_probability():
    head, hidden = nn.Linear(4, 8, bias=False), torch.randn(1, 4)
    support = pack_support(torch.tensor([[True, True] + [False] * 6]))
    with torch.no_grad():
        p = [score(hidden, head, torch.tensor([i]), support=support).log_prob.exp().item() for i in range(8)]
    assert sum(p[:2]) == pytest.approx(1.0)
    assert p[2:] == [0.0] * 6
