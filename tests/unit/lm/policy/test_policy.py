"""Evaluation is the same however rows are laid out, has the gradients of the plain formula, and leaves the reference alone."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from lm_helpers import EOS, batch_of, prompts_of, tiny

from surefoot.errors import ConfigError, PolicyError
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.lm.policy.adapters import merge
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.policy import LMPolicy
from surefoot.lm.policy.vocabulary_head import pack_support, score, unpack_support
from surefoot.lm.sampling.layout import response_states, sequences_of
from surefoot.lm.sampling.sampler import Sampling, generate


def moved(policy, seed=5):
    """Adapters and critic that are not at their beginning."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in policy.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=generator))
    return policy


def sampled(policy, count=6, **how):
    how = {"max_new_tokens": 8, **how}
    return generate(policy, prompts_of(count), Sampling(**how), eos=[EOS], generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_log_probs_are_those_of_the_models_own_softmax(family):
    policy = moved(LMPolicy(Backbone(tiny(family))))
    responses = sampled(policy)
    with torch.no_grad():
        seen = policy.evaluate(batch_of(responses))
    for i, r in enumerate(responses):
        ids = torch.tensor([[*r.prompt.tolist(), *r.tokens]])
        logits = policy.backbone.model(ids, attention_mask=torch.ones_like(ids)).logits[0].detach()
        log_p = logits.log_softmax(-1)
        for t, token in enumerate(r.tokens):
            place = len(r.prompt) - 1 + t
            assert float(seen.log_prob[t, i]) == pytest.approx(float(log_p[place, token]), abs=1e-5)
            entropy = -(log_p[place].exp() * log_p[place]).sum()
            assert float(seen.entropy[t, i]) == pytest.approx(float(entropy), abs=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_packing_neighbours_and_padding_change_nothing(family):
    policy = moved(LMPolicy(Backbone(tiny(family))))
    responses = sampled(policy, 7)
    batch = batch_of(responses)
    plain = policy.evaluate(batch)
    policy.packed = True
    packed = policy.evaluate(batch)
    policy.packed = False
    wide = policy.evaluate(batch_of(responses, extra=9))
    for name in ("log_prob", "value", "entropy"):
        one = getattr(plain, name)[batch.valid]
        assert torch.allclose(one, getattr(packed, name)[batch.valid], atol=1e-5)
        assert torch.allclose(one, getattr(wide, name)[: len(batch.valid)][batch.valid], atol=1e-5)
    for i in range(7):
        alone = policy.evaluate(batch_of([responses[i]]))
        t = len(responses[i].tokens)
        assert torch.allclose(alone.log_prob[:t, 0], plain.log_prob[:t, i], atol=1e-5)


def test_left_padding_as_others_do_it_gives_the_same_log_probs():
    policy = moved(LMPolicy(Backbone(tiny())))
    responses = sampled(policy, 5)
    batch = batch_of(responses)
    seen = policy.evaluate(batch)
    longest = max(len(r.prompt) + len(r.tokens) for r in responses)
    for i, r in enumerate(responses):
        row = [*r.prompt.tolist(), *r.tokens]
        pad = longest - len(row)
        ids = torch.tensor([[EOS] * pad + row])
        mask = torch.tensor([[0] * pad + [1] * len(row)])
        position = (mask.cumsum(-1) - 1).clamp(min=0)
        log_p = (
            policy.backbone.model(ids, attention_mask=mask, position_ids=position).logits[0].log_softmax(-1).detach()
        )
        for t, token in enumerate(r.tokens):
            theirs = float(log_p[pad + len(r.prompt) - 1 + t, token])
            assert float(seen.log_prob[t, i].detach()) == pytest.approx(theirs, abs=1e-5)


def gradients(policy, batch, weight):
    for p in policy.parameters():
        p.grad = None
    seen = policy.evaluate(batch)
    (seen.log_prob * weight * batch.valid).sum().backward()
    return {n: p.grad.clone() for n, p in policy.backbone.trained().items() if p.grad is not None}


def test_the_short_gradient_of_a_frozen_head_is_the_one_of_autograd():
    policy = moved(LMPolicy(Backbone(tiny())))
    batch = batch_of(sampled(policy, top_k=9))
    weight = torch.randn(batch.action.shape, generator=torch.Generator().manual_seed(0))
    short = gradients(policy, batch, weight)
    policy.entropy_gradient = True
    plain = gradients(policy, batch, weight)
    assert short.keys() == plain.keys()
    assert all(torch.allclose(short[n], plain[n], atol=1e-4) for n in short)


def test_chunks_change_nothing(monkeypatch):
    policy = moved(LMPolicy(Backbone(tiny())))
    batch = batch_of(sampled(policy))
    whole = gradients(policy, batch, 1.0)
    monkeypatch.setattr("surefoot.lm.policy.vocabulary_head.CHUNK", 150)
    parts = gradients(policy, batch, 1.0)
    assert all(torch.allclose(whole[n], parts[n], atol=1e-5) for n in whole)


def test_exact_kl_is_the_sum_over_the_vocabulary():
    head = torch.nn.Linear(4, 6, bias=False).requires_grad_(False)
    h, r = torch.randn(3, 4), torch.randn(3, 4)
    said = score(h, head, torch.tensor([0, 1, 2]), reference=r, temperature=2.0)
    for i in range(3):
        p, q = (head(h[i]) / 2).softmax(-1), (head(r[i]) / 2).softmax(-1)
        assert float(said.kl[i]) == pytest.approx(float(sum(p * (p / q).log())), abs=1e-5)


def test_support_survives_packing():
    allowed = torch.rand(5, 13) > 0.5
    assert torch.equal(unpack_support(pack_support(allowed), 13), allowed)


@pytest.mark.parametrize("how", [{}, {"top": 1}, {"train": "full"}, {"train": "full", "top": 1}], ids=str)
def test_learning_moves_the_policy_and_never_the_reference(how):
    backbone = Backbone(tiny("llama"), **how)
    policy = LMPolicy(backbone)
    batch = batch_of(sampled(policy))
    rows = sequences_of(batch)

    def reference():
        with policy.reference() as model:
            states, _ = response_states(model, rows)
            return score(states, model.head, torch.zeros(len(states), dtype=torch.int64)).log_prob.clone()

    before, policy_before = reference(), policy.evaluate(batch).log_prob.detach().clone()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        policy.evaluate(batch).log_prob.sum().backward()
        optimizer.step()
    assert torch.equal(reference(), before)
    assert not torch.allclose(policy.evaluate(batch).log_prob, policy_before, atol=1e-3)


@pytest.mark.parametrize("train", ["lora", "full"])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_trunk_computed_once_gives_the_same_log_probs_and_gradients(family, train):
    policy = moved(LMPolicy(Backbone(tiny(family, layers=4), train=train, top=2)))
    batch = batch_of(sampled(policy))
    plain = gradients(policy, batch, 1.0)
    with torch.no_grad():
        _, trunk = response_states(policy.backbone, sequences_of(batch))
    batch.context["trunk"] = trunk
    seen = policy.evaluate(batch)
    assert torch.allclose(seen.log_prob[batch.valid], batch.log_prob[batch.valid], atol=1e-5)
    cached = gradients(policy, batch, 1.0)
    assert all(torch.allclose(plain[n], cached[n], atol=1e-4) for n in plain)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_merging_the_adapters_keeps_the_logits(family):
    backbone = Backbone(tiny(family), targets="all")
    moved(LMPolicy(backbone))
    ids = torch.tensor([[1, 2, 3, 4]])
    before = backbone.model(ids).logits
    merge(backbone.model)
    assert torch.allclose(backbone.model(ids).logits, before, atol=1e-4)
    assert not list(backbone.adapters())


def test_only_what_learns_is_in_the_state():
    policy = LMPolicy(Backbone(tiny(layers=4), top=1, rank=2))
    names = set(policy.state_dict())
    assert all("h.3." in n or n.startswith("critic.") for n in names)
    other = LMPolicy(Backbone(tiny(layers=4), top=1, rank=2))
    moved(policy)
    other.load_state_dict(policy.state_dict())
    batch = batch_of(sampled(policy))
    assert torch.equal(other.evaluate(batch).log_prob, policy.evaluate(batch).log_prob)


def test_the_learner_takes_it_as_it_is():
    policy = LMPolicy(Backbone(tiny()))
    learner = Learner(policy, PPOConfig(minibatches=2))
    assert learner.path == "torch"
    assert len(learner.optimizer.parameters) == 2 * 2 + 2


def test_what_cannot_work_is_said():
    with pytest.raises(ConfigError, match="top is 9; this model has 2 layers"):
        Backbone(tiny(), top=9)
    with pytest.raises(ConfigError, match="no layer is called wq; this model has c_attn"):
        Backbone(tiny(), targets=["wq"])
    with pytest.raises(ConfigError, match="KL in the loss is 'k1'"):
        LMPolicy(Backbone(tiny()), kl_in_loss="k1")


def test_a_model_whose_logits_are_changed_in_an_unknown_way_is_refused():
    model = tiny()
    plain = model.forward

    def scaled(*args, **said):
        out = plain(*args, **said)
        return dataclasses.replace(out, logits=out.logits * 3)

    model.forward = scaled
    with pytest.raises(PolicyError, match="GPT2LMHeadModel changes its logits"):
        Backbone(model)
