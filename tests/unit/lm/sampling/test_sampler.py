"""What was sampled can be scored again with the same log-probs, however it was laid out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from lm_helpers import EOS, batch_of, prompts_of, tiny

from surefoot.errors import ConfigError
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.policy import LMPolicy
from surefoot.lm.sampling.sampler import Sampling, generate

CASES = [
    {},
    {"temperature": 0.7},
    {"top_k": 5},
    {"top_p": 0.8, "temperature": 1.3},
    {"min_new_tokens": 4, "top_k": 20, "top_p": 0.9},
]


def drawn(policy, prompts, seed=3, **how):
    sampling = Sampling(max_new_tokens=10, **{"rows": 8, **how})
    return generate(policy, prompts, sampling, eos=[EOS], generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("how", CASES, ids=str)
def test_scoring_again_gives_ratio_1_in_eval_and_in_train_mode(family, how):
    policy = LMPolicy(Backbone(tiny(family)), temperature=how.get("temperature", 1.0))
    responses = drawn(policy, prompts_of(6), **how)
    batch = batch_of(responses)
    for mode in (False, True):
        policy.backbone.model.train(mode)
        seen = policy.evaluate(batch)
        error = ((seen.log_prob - batch.log_prob)[batch.valid]).expm1().abs().max()
        assert error.item() < 1e-5
        assert torch.allclose(seen.value[batch.valid], batch.value[batch.valid], atol=1e-5)


def test_what_is_said_does_not_depend_on_the_rows_or_the_neighbours():
    policy = LMPolicy(Backbone(tiny()))
    prompts = prompts_of(9)
    whole = drawn(policy, prompts, rows=9)
    for rows in (1, 2, 5):
        again = drawn(policy, prompts, rows=rows)
        assert [r.tokens for r in again] == [r.tokens for r in whole]
        assert np.allclose(sum((r.log_prob for r in again), []), sum((r.log_prob for r in whole), []), atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_what_the_lower_layers_made_of_a_response_is_kept_as_it_would_be_made_again(family):
    policy = LMPolicy(Backbone(tiny(family, layers=3), top=1))
    sampling = Sampling(max_new_tokens=10, rows=3)  # fewer rows than prompts: rows are filled again, then dropped
    generator = torch.Generator().manual_seed(3)
    responses = generate(policy, prompts_of(11), sampling, eos=[EOS], generator=generator, keep_trunk=True)
    for r in responses:
        row = torch.tensor([[*r.prompt.tolist(), *r.tokens[:-1]]])
        with torch.no_grad(), policy.backbone.catching_trunk() as again:
            policy.backbone.hidden(row)
        assert r.trunk.shape == again[0][0].shape
        assert torch.allclose(r.trunk, again[0][0], atol=1e-5)
    assert all(r.trunk is None for r in drawn(policy, prompts_of(2)))


def test_a_response_ends_with_the_end_token_and_holds_nothing_after_it():
    policy = LMPolicy(Backbone(tiny()))
    responses = drawn(policy, prompts_of(40), rows=7)
    assert any(r.ended for r in responses)
    for r in responses:
        assert (EOS in r.tokens) == r.ended
        assert EOS not in r.tokens[:-1]
        assert r.ended or len(r.tokens) == 10


def test_before_min_new_tokens_nothing_ends():
    policy = LMPolicy(Backbone(tiny()))
    assert min(len(r.tokens) for r in drawn(policy, prompts_of(30), min_new_tokens=6)) >= 7


def test_the_frequencies_are_those_of_the_model():
    model = tiny(vocabulary=11)
    policy = LMPolicy(Backbone(model))
    prompt = np.array([3, 4, 5])
    sampling = Sampling(max_new_tokens=1, rows=500)
    made = generate(policy, [prompt] * 4000, sampling, eos=[], generator=torch.Generator().manual_seed(0))
    counted = np.bincount([r.tokens[0] for r in made], minlength=11) / 4000
    expected = model(torch.from_numpy(prompt)[None]).logits[0, -1].softmax(-1).detach().numpy()
    assert np.abs(counted - expected).max() < 0.03


def test_temperature_0_takes_the_likeliest_as_transformers_does():
    model = tiny("llama")
    policy = LMPolicy(Backbone(model))
    prompt = np.array([7, 8, 9, 10])
    said = drawn(policy, [prompt], temperature=0.0)[0].tokens
    ids = torch.from_numpy(prompt)[None]
    theirs = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=10, do_sample=False, eos_token_id=EOS, pad_token_id=EOS
    )
    assert said == theirs[0, 4:].tolist()


def test_tokens_outside_top_k_are_never_drawn():
    policy = LMPolicy(Backbone(tiny()))
    responses = drawn(policy, [np.array([5, 6])] * 50, top_k=3)
    assert len({r.tokens[0] for r in responses}) <= 3


@pytest.mark.parametrize(("prompt", "said"), [([], "prompt 0 has no tokens"), ([1] * 60, "exceeds the 64 positions")])
def test_a_prompt_that_cannot_be_answered_is_named(prompt, said):
    policy = LMPolicy(Backbone(tiny()))
    with pytest.raises(ConfigError, match=said):
        drawn(policy, [np.array(prompt, dtype=np.int64)])
