"""Language models reach optima that are known in closed form: a wrong sign, shift, mask or coefficient misses them."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "lm"))

from lm_helpers import VOCABULARY, char_tokenizer

from surefoot.lm.config import LMConfig
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.vocabulary_head import score
from surefoot.lm.sampling.layout import Sequences, response_states
from surefoot.lm.training import LMTraining

BETA = 0.25
PAID = "aeiouAEI"


def fresh(vocabulary, *, width=32, layers=1, seed=0):
    """A model as it is born: nearly uniform whatever came before, so that the closed form holds for every state."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=vocabulary,
            n_embd=width,
            n_layer=layers,
            n_head=2,
            n_positions=32,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def chance(run, tokens):
    """What the reference gives `tokens`, averaged over the states of a few prompts."""
    shares = []
    with run.policy.reference() as reference:
        for ids in (prompt.ids for prompt in run.prompts):
            rows = Sequences(torch.from_numpy(ids)[None], torch.tensor([len(ids)]), torch.tensor([1]))
            states, _ = response_states(reference, rows)
            said = score(states.expand(len(tokens), -1), reference.head, torch.tensor(tokens))
            shares.append(float(said.log_prob.exp().sum()))
    return float(np.mean(shares))


def test_tokens_that_are_paid_for_reach_the_share_of_the_closed_form():
    # Exactly measured KL, and more seeds, are in `make bench-lm`. Reward 1 for every token of a set, β per nat: π*(S) = p e^{1/β} / (p e^{1/β} + 1 - p).
    steps, size = 40, 6
    config = LMConfig(
        max_new_tokens=size, min_new_tokens=size - 1, prompts=64, rows=64, steps=steps, beta=BETA, train="full"
    )
    run = LMTraining(
        Backbone(fresh(VOCABULARY), train="full"),
        char_tokenizer(),
        ["a", "be", "cde", "hello"],
        lambda prompt, response: float(sum(c in PAID for c in response)),
        config,
        ppo=config.ppo(lr=2e-3, minibatches=4, value_clip=None),
    )
    p = chance(run, [char_tokenizer()(c)["input_ids"][0] for c in PAID])
    odds = p * math.exp(1 / BETA)
    share, best = odds / (odds + 1 - p), BETA * math.log(odds + 1 - p)
    reached = [run.step().stats for _ in range(steps)][-12:]
    found = float(np.mean([s["score"] for s in reached])) / size
    objective = found - BETA * float(np.mean([s["kl"] for s in reached])) / size
    assert abs(found - share) < 0.04
    assert objective > 0.93 * best
    assert objective < 1.04 * best


@pytest.mark.parametrize(("kl_in", "kl"), [("reward", "k1"), ("loss", "k2"), ("loss", "exact")])
def test_a_toy_converges_to_the_reference_times_exp_of_reward_over_beta(kl_in, kl):
    vocabulary, beta = 10, 0.5
    worth = np.random.default_rng(3).normal(size=vocabulary) * 0.5
    tokenizer = char_tokenizer()
    names = {tokenizer.decode([i], skip_special_tokens=True): i for i in range(2, vocabulary)}
    worth[:2] = 0.0  # the end token and the unknown one decode to nothing, or are paid nothing
    config = LMConfig(max_new_tokens=1, prompts=256, rows=256, steps=60, train="full", kl_in=kl_in, kl=kl, beta=beta)
    run = LMTraining(
        Backbone(fresh(vocabulary, width=16), train="full"),
        tokenizer,
        ["a"],
        lambda prompt, response: worth[names[response]] if response in names else 0.0,
        config,
        ppo=config.ppo(lr="lin_5e-3", normalize_advantage="off", minibatches=2, value_clip=None),
    )
    for _ in range(60):
        run.step()
    rows = Sequences(torch.from_numpy(run.prompts[0].ids)[None], torch.tensor([1]), torch.tensor([1]))

    def spread(backbone):
        with torch.no_grad():
            return backbone.head(response_states(backbone, rows)[0])[0].softmax(-1).numpy()

    now = spread(run.policy.backbone)
    with run.policy.reference() as reference:
        known = spread(reference)
    star = known * np.exp(worth / beta)
    star /= star.sum()
    assert 0.5 * np.abs(known - star).sum() > 0.2, "it must have had somewhere to go"
    assert 0.5 * np.abs(now - star).sum() < 0.05
