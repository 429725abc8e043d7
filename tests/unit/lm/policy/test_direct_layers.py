"""The layers written out say what transformers says; so do the activation and the walk over the vocabulary."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from lm_helpers import tiny

from surefoot.lm.policy import vocabulary_head as heads
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.direct_layers import FEW, gelu_tanh
from surefoot.lm.policy.kv_cache import Prefill, Slots
from surefoot.lm.policy.vocabulary_head import pack_support, score

IDS = torch.tensor([[3, 14, 15, 9, 2], [6, 5, 35, 8, 9]])


def moved(family: str, **how) -> Backbone:
    """A backbone whose adapters say something."""
    backbone = Backbone(tiny(family), targets="all", **how)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, adapter in backbone.adapters():
            adapter.b.copy_(torch.randn(adapter.b.shape, generator=generator))
    return backbone


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("adapters", [True, False])
def test_states_and_gradients_are_those_of_transformers(family, adapters):
    backbone = moved(family)
    assert backbone.direct is not None
    found = []
    for direct in (backbone.direct, None):
        backbone.direct = direct
        for _, adapter in backbone.adapters():
            adapter.on = adapters
            adapter.a.grad = adapter.b.grad = None
        states = backbone.hidden(IDS)
        if adapters:
            states.square().sum().backward()
        grads = [adapter.b.grad for _, adapter in backbone.adapters()] if adapters else []
        found.append((states.detach(), grads))
    (ours, our_grads), (theirs, their_grads) = found
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    for a, b in zip(our_grads, their_grads, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("lengths", [[3, 3], [4, 2]], ids=["level", "ragged"])
@torch.no_grad()
def test_a_token_read_with_the_cache_has_the_state_it_has_in_the_whole_row(family, lengths):
    backbone = moved(family)
    slots, cache = Slots(2, 8), Prefill()
    causal = torch.ones(4, 4, dtype=torch.bool).tril()[None, None]
    backbone.hidden(IDS[:, :4], mask=causal, cache=cache)
    slots.fill(torch.tensor([0, 1]), cache, torch.tensor(lengths))
    position, mask = slots.begin()
    assert (mask is None) == (lengths == [3, 3])
    nth = torch.tensor(lengths)
    read = backbone.hidden(IDS[torch.arange(2), nth].unsqueeze(1), position=position, mask=mask, cache=slots)
    torch.testing.assert_close(read[:, 0], backbone.hidden(IDS)[torch.arange(2), nth], rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_what_enters_the_first_layer_that_learns_can_stand_for_the_layers_below():
    backbone = moved("llama", top=1)
    with backbone.catching_trunk() as caught:
        whole = backbone.hidden(IDS)
    torch.testing.assert_close(backbone.hidden(IDS, trunk=caught[0]), whole)


def test_a_family_that_is_not_written_out_is_run_by_transformers():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    model = GPTNeoXForCausalLM(
        GPTNeoXConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    )
    backbone = Backbone(model)
    assert backbone.direct is None
    with torch.no_grad():
        theirs = model.base_model(input_ids=IDS, use_cache=False).last_hidden_state
        torch.testing.assert_close(backbone.hidden(IDS), theirs)


@pytest.mark.parametrize("count", [7, FEW + 1])
def test_the_activation_and_its_slope_are_those_of_torch(count):
    x = torch.linspace(-9.0, 9.0, count, dtype=torch.float32)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    a, b = gelu_tanh(ours), torch.nn.functional.gelu(theirs, approximate="tanh")
    a.square().sum().backward()
    b.square().sum().backward()
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("some_forbidden", [False, True])
def test_a_vocabulary_walked_in_blocks_gives_the_softmax_of_the_whole(monkeypatch, temperature, some_forbidden):
    monkeypatch.setattr(heads, "BLOCK", 16)
    monkeypatch.setattr(heads, "ROWS", 3)
    torch.manual_seed(0)
    hidden, weight = torch.randn(7, 12) * 2, torch.randn(50, 12)
    token = torch.randint(0, 50, (7,))
    allowed = torch.rand(7, 50) < 0.6 if some_forbidden else torch.ones(7, 50, dtype=torch.bool)
    allowed[torch.arange(7), token] = True
    ours, theirs = hidden.clone().requires_grad_(), hidden.clone().requires_grad_()
    how = {"temperature": temperature, "support": pack_support(allowed) if some_forbidden else None}
    said = score(ours, SimpleNamespace(weight=weight, bias=None), token, **how)
    log_p = (theirs @ weight.T / temperature).masked_fill(~allowed, -1e30).log_softmax(-1)
    chosen = log_p.gather(-1, token.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(said.log_prob, chosen)
    torch.testing.assert_close(said.entropy, -(log_p.exp() * log_p).sum(-1).detach(), rtol=1e-4, atol=1e-5)
    pull = torch.randn(7)
    (said.log_prob * pull).sum().backward()
    (chosen * pull).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        again = score(hidden, SimpleNamespace(weight=weight, bias=None), token, **how)
    assert torch.equal(again.log_prob, said.log_prob)
