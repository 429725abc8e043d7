"""The best that a priced reward allows, where it is known: in closed form, and by counting every response there is."""

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from lm_helpers import EOS, tiny

from surefoot.errors import ConfigError
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.policy import LMPolicy
from surefoot.lm.sampling.sampler import Sampling

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks" / "lm"))
from priced_optimum import achieved, optimum

BETA, PROMPT = 0.5, np.array([2, 3])


def paid(tokens: list[int]) -> float:
    """1 for each 4 or 5."""
    return float(sum(token in (4, 5) for token in tokens))


def leaning(vocabulary: int, by: float = 1.0) -> torch.Tensor:
    lean = torch.zeros(vocabulary)
    lean[[4, 5]] = by / BETA
    return lean


def known(policy: LMPolicy, sampling: Sampling, lean: torch.Tensor, samples: int, beta: float = BETA):
    generator = torch.Generator().manual_seed(0)
    return optimum(
        policy, [PROMPT], sampling, paid, beta=beta, lean=lean, eos=[EOS], samples=samples, generator=generator
    )


def test_where_every_token_is_as_likely_the_optimum_is_the_closed_form() -> None:
    model = tiny(vocabulary=10)
    with torch.no_grad():
        model.get_input_embeddings().weight.zero_()
    policy, sampling = LMPolicy(Backbone(model, train="full")), Sampling(max_new_tokens=4, min_new_tokens=3)
    found = known(policy, sampling, leaning(10), samples=16)
    tilt = math.exp(1 / BETA)
    shares = [2 / 9, 2 / 9, 2 / 9, 2 / 10]  # the end is not allowed before the last token
    assert found.objective == pytest.approx(BETA * sum(math.log(1 - p + p * tilt) for p in shares), rel=1e-5)
    many = known(policy, sampling, leaning(10), samples=4000)
    assert many.score == pytest.approx(sum(p * tilt / (1 - p + p * tilt) for p in shares), abs=0.05)


@pytest.mark.parametrize("by", [1.0, 0.5, 1.5])
def test_however_it_leans_the_optimum_is_that_of_counting_every_response(by: float) -> None:
    model = tiny(vocabulary=7, seed=3)
    policy, sampling = LMPolicy(Backbone(model, train="full")), Sampling(max_new_tokens=3, min_new_tokens=0)
    total = weighed = 0.0
    for said in itertools.product(range(7), repeat=3):
        end = said.index(EOS) + 1 if EOS in said else 3
        if any(token != EOS for token in said[end:]):
            continue  # one name for what ends early: padded with ends
        with torch.no_grad():
            logits = model(torch.tensor([[*PROMPT, *said[:end]]])).logits[0, 1:-1]
        log_p = logits.log_softmax(-1)[range(end), list(said[:end])].sum()
        z = math.exp(float(log_p) + paid(list(said[:end])) / BETA)
        total, weighed = total + z, weighed + z * paid(list(said[:end]))
    found = known(policy, sampling, leaning(7, by), samples=4000)
    assert found.objective == pytest.approx(BETA * math.log(total), abs=0.03)
    assert found.score == pytest.approx(weighed / total, abs=0.08)


def test_a_policy_that_has_not_learned_pays_nothing_and_gets_less_than_the_optimum() -> None:
    policy, sampling = LMPolicy(Backbone(tiny(vocabulary=7), train="full")), Sampling(max_new_tokens=3)
    now = achieved(
        policy, [PROMPT] * 64, sampling, paid, beta=BETA, eos=[EOS], generator=torch.Generator().manual_seed(0)
    )
    assert now.objective == pytest.approx(now.score, abs=1e-6)
    assert now.objective < known(policy, sampling, leaning(7), samples=1000).objective


def test_where_no_optimum_is_known_it_says_so() -> None:
    policy = LMPolicy(Backbone(tiny(vocabulary=7), train="full"))
    with pytest.raises(ConfigError, match="beta is 0"):
        known(policy, Sampling(max_new_tokens=3), leaning(7), samples=8, beta=0.0)
    with pytest.raises(ConfigError, match="top_k and top_p"):
        known(policy, Sampling(max_new_tokens=3, top_k=2), leaning(7), samples=8)
