"""The best that a priced reward allows, known without learning: how far a policy has come is then a share of it.

What is maximised is E[R] - β KL(π ‖ ref). Its maximum over all π (Rafailov et al. 2023, eq. 4 and 5) is

    J* = β log E_ref[e^(R/β)]        at π*(y) ∝ ref(y) e^(R(y)/β)

The mean over responses of the reference itself would hang on a few of them. So responses are drawn token by token from the
reference leaned towards what pays, those that lead where more pays are multiplied and the others dropped (a particle filter;
its estimate of E_ref is right on average however it leans). The policy that learns is not asked, so one that has collapsed
on a few responses cannot make the optimum look as small as itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from surefoot.errors import ConfigError
from surefoot.lm.policy.policy import LMPolicy
from surefoot.lm.sampling.rollout import consult, lay_out
from surefoot.lm.sampling.sampler import Sampling, generate

Judge = Callable[[Sequence[int]], float]
"""The score of a response's tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Score and price of responses, and what the two come to."""

    score: float
    objective: float
    """score - β KL"""
    effective: float
    """How many responses the last weighing left, the least over the prompts."""


@torch.no_grad()
def optimum(
    policy: LMPolicy,
    prompts: Sequence[np.ndarray],
    sampling: Sampling,
    judge: Judge,
    *,
    beta: float,
    lean: Tensor,
    eos: Sequence[int],
    samples: int,
    generator: torch.Generator,
) -> Standing:
    """What the best policy gets on these prompts; `judge` scores tokens, `lean` [V] is added to the reference's logits."""
    if beta <= 0:
        raise ConfigError(
            f"beta is {beta}; where leaving the reference costs nothing there is no optimum but the best score"
        )
    if sampling.top_k or sampling.top_p < 1.0:
        raise ConfigError("top_k and top_p leave the reference some tokens it has; the optimum is known without them")
    found = [_of_prompt(policy, prompt, sampling, judge, beta, lean, eos, samples, generator) for prompt in prompts]
    score, objective, effective = np.array(found).T
    return Standing(score=float(score.mean()), objective=float(objective.mean()), effective=float(effective.min()))


def _of_prompt(
    policy: LMPolicy,
    prompt: np.ndarray,
    sampling: Sampling,
    judge: Judge,
    beta: float,
    lean: Tensor,
    eos: Sequence[int],
    samples: int,
    generator: torch.Generator,
) -> tuple[float, float, float]:
    """(optimal score, J*, effective samples) for one prompt, of `samples` responses side by side."""
    ids, going = torch.from_numpy(np.tile(prompt, (samples, 1))), torch.ones(samples, dtype=torch.bool)
    leaned, log_mean = torch.zeros(samples), 0.0
    for step in range(sampling.max_new_tokens):
        log_p = _log_probs(policy, ids, sampling.temperature, eos if step < sampling.min_new_tokens else ())
        log_q = log_p + lean
        # How much more the leaned reference has to give here: nothing that the token could change.
        weight = torch.where(going, log_q.logsumexp(-1), 0.0)
        log_mean += float(weight.logsumexp(0)) - math.log(samples)
        who = torch.multinomial(weight.softmax(0), samples, replacement=True, generator=generator)
        ids, leaned, going, log_q = ids[who], leaned[who], going[who], log_q[who]
        token = torch.multinomial(log_q.softmax(-1), 1, generator=generator)
        leaned += torch.where(going, lean[token.squeeze(-1)], 0.0)
        ids = torch.cat([ids, token], dim=1)
        going &= ~torch.isin(token.squeeze(-1), torch.tensor(list(eos)))
    scores = torch.tensor([judge(_until(row, eos)) for row in ids[:, len(prompt) :].tolist()], dtype=torch.float64)
    log_w = scores / beta - leaned
    share = log_w.softmax(0)
    best = beta * (log_mean + float(log_w.logsumexp(0)) - math.log(samples))
    return float((share * scores).sum()), best, float(1.0 / share.square().sum())


def _log_probs(policy: LMPolicy, ids: Tensor, temperature: float, forbidden: Sequence[int]) -> Tensor:
    with policy.reference() as reference:
        states = reference.hidden(ids)[:, -1]
        logits = reference.head(states) / temperature
    logits[:, list(forbidden)] = -torch.inf
    return logits.log_softmax(-1)


def _until(tokens: list[int], eos: Sequence[int]) -> list[int]:
    """Up to the first that ends, with it."""
    end = next((k + 1 for k, token in enumerate(tokens) if token in eos), len(tokens))
    return tokens[:end]


def achieved(
    policy: LMPolicy,
    prompts: Sequence[np.ndarray],
    sampling: Sampling,
    judge: Judge,
    *,
    beta: float,
    eos: Sequence[int],
    generator: torch.Generator,
) -> Standing:
    """What the policy of now gets, of one fresh response to each prompt."""
    responses = generate(policy, prompts, sampling, eos=eos, generator=generator)
    laid = lay_out(responses)
    consult(policy, laid, exact_in_reward=False, exact_in_loss=False, rescore=False, values=False)
    score = float(np.mean([judge(each.tokens) for each in responses]))
    return Standing(score=score, objective=score - beta * float(laid.kl().mean()), effective=float(len(responses)))
