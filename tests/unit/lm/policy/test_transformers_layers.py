"""Every family of the matrix is sampled, scored and trained as the model's own plain forward pass computes it."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from families import FAMILIES, POSITIONS, REFUSED, VOCABULARY
from lm_helpers import EOS, batch_of

from surefoot.errors import PolicyError
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.policy import LMPolicy
from surefoot.lm.sampling.rollout import consult, lay_out
from surefoot.lm.sampling.sampler import Sampling, generate

TOLERANCE = 1e-5
RNG = np.random.default_rng(7)


def prompts(*lengths: int) -> list[np.ndarray]:
    return [RNG.integers(1, VOCABULARY, size=length).astype(np.int64) for length in lengths]


CASES = {
    "1 to 30 tokens": (
        prompts(1, 30, 7, 2, 16, 9),
        {"temperature": 1.3, "top_k": 20, "top_p": 0.9, "min_new_tokens": 5},
    ),
    "equal lengths": (prompts(5, 5, 5), {}),
    "one prompt": (prompts(12), {"temperature": 0.7}),
}
"""Prompts and sampling. Responses have up to 20 tokens: with a window of 8 most of them leave it."""


def trained(family, **how) -> tuple[Backbone, torch.nn.Module, torch.nn.Module]:
    """Return a backbone with adapters that change the output, the same as a plain model, and the untouched model."""
    clean = family.build()
    backbone = Backbone(copy.deepcopy(clean), targets="all", rank=2, **how)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, adapter in backbone.adapters():
            adapter.b.copy_(0.1 * torch.randn(adapter.b.shape, generator=generator))
    return backbone, backbone.model, clean


@torch.no_grad()
def plain_log_probs(model, response, how) -> torch.Tensor:
    """Return log p over the vocabulary for every response token, [T, V], by one plain pass over one row."""
    row = torch.tensor([[*response.prompt.tolist(), *response.tokens[:-1]]])
    logits = model(input_ids=row, attention_mask=torch.ones_like(row), use_cache=False).logits[0].double()
    return logits[len(response.prompt) - 1 :] / how.get("temperature", 1.0)


def restricted(logits: torch.Tensor, how) -> torch.Tensor:
    """Return a mask of the tokens that could be drawn, written again: min length, then top-k, then top-p."""
    allowed = torch.ones_like(logits, dtype=torch.bool)
    allowed[: how.get("min_new_tokens", 0), EOS] = False
    if "top_k" in how:
        ranks = logits.masked_fill(~allowed, -1e30).argsort(-1, descending=True).argsort(-1)
        allowed &= ranks < how["top_k"]
    if "top_p" in how:
        p, order = logits.masked_fill(~allowed, -1e30).softmax(-1).sort(-1, descending=True)
        before = p.cumsum(-1) - p
        allowed &= torch.zeros_like(p).scatter(-1, order, before) < how["top_p"]
    return allowed


def largest(differences) -> float:
    return max(float(d.abs().max()) for d in differences)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.title)
def test_what_is_sampled_is_what_the_plain_forward_pass_says(family, case):
    asked, how = CASES[case]
    backbone, model, clean = trained(family, top=1 if case == "equal lengths" else None)
    policy = LMPolicy(backbone, temperature=how.get("temperature", 1.0))
    sampling = Sampling(max_new_tokens=20, rows=4, **how)
    responses = generate(
        policy, asked, sampling, eos=[EOS], generator=torch.Generator().manual_seed(3), keep_trunk=True
    )
    assert max(len(r.prompt) + len(r.tokens) for r in responses) > 12
    laid = lay_out(responses)
    consult(policy, laid, exact_in_reward=True, exact_in_loss=False, rescore=False, values=False)
    sampled, reference, kl = [], [], []
    for i, response in enumerate(responses):
        own, original = plain_log_probs(model, response, how), plain_log_probs(clean, response, how)
        allowed = restricted(own, how)
        own, original = (x.masked_fill(~allowed, -1e30).log_softmax(-1) for x in (own, original))
        steps, tokens = range(len(response.tokens)), response.tokens
        sampled.append(own[steps, tokens] - torch.tensor(response.log_prob))
        reference.append(original[steps, tokens] - torch.from_numpy(laid.ref_log_prob)[: len(tokens), i])
        kl.append((own.exp() * (own - original)).sum(-1) - torch.from_numpy(laid.exact_kl)[: len(tokens), i])
    assert largest(sampled) < TOLERANCE
    assert largest(reference) < TOLERANCE
    assert largest(kl) < TOLERANCE
    batch = batch_of(responses)
    again = policy.evaluate(batch)
    assert largest([(again.log_prob - batch.log_prob)[batch.valid].detach()]) < TOLERANCE


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.title)
def test_the_default_adapters_learn_in_every_family(family):
    policy = LMPolicy(Backbone(family.build()))
    responses = generate(
        policy,
        CASES["equal lengths"][0],
        Sampling(max_new_tokens=4),
        eos=[],
        generator=torch.Generator().manual_seed(0),
    )
    policy.evaluate(batch_of(responses)).log_prob.sum().backward()
    adapters = [adapter for _, adapter in policy.backbone.adapters()]
    assert adapters
    assert all(adapter.b.grad is not None and adapter.b.grad.abs().max() > 0 for adapter in adapters)


@pytest.mark.parametrize("family", REFUSED, ids=lambda family: family.title)
def test_what_cannot_be_sampled_is_refused_by_name(family):
    with pytest.raises(PolicyError, match=family.model):
        Backbone(family.build())


def test_the_context_length_is_read_from_every_config_that_has_one():
    lengths = {family.title: Backbone(family.build(), train="none").context_length for family in FAMILIES}
    assert {title for title, length in lengths.items() if length != POSITIONS} == {"Bloom"}


def test_the_page_of_models_is_current():
    path = Path(__file__).parents[4] / "scripts" / "model_families.py"
    spec = importlib.util.spec_from_file_location("model_families", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "`python scripts/model_families.py` writes it anew"
