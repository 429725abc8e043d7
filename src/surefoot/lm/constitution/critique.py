"""Critique and revision: the model gets its response and a principle, and rewrites the response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from surefoot.data.seeds import seed_for
from surefoot.lm.constitution.principles import Constitution, Principle
from surefoot.lm.policy.loading import Speech
from surefoot.lm.policy.policy import LMPolicy
from surefoot.lm.rewards.rewards import repetition
from surefoot.lm.sampling.sampler import Sampling, generate
from surefoot.lm.sft import nll

CRITIQUE = "Request: {prompt}\n\nResponse: {response}\n\n{ask}\nCritique:"
REVISION = "Request: {prompt}\n\nResponse: {response}\n\nCritique: {critique}\n\n{ask}\nWrite only the new response."


# A revision may be this much less likely per token than the first response, and this much less similar to the prompt.
NLL_RISE, RELEVANCE_LOSS = 1.15, 0.1


def says_something(text: str) -> bool:
    """Return True for at least three words or eight letters that are not mostly repetitions."""
    words = text.split()
    # Small models often return a fragment or one word many times; neither is a critique.
    enough = len(words) >= 3 or sum(map(len, words)) >= 8
    return enough and repetition([hash(word) for word in words]) < 0.5


@dataclass(frozen=True, slots=True)
class Revision:
    """The revision of one response."""

    prompt: str
    first: str
    last: str
    rounds: tuple[dict[str, Any], ...]
    before: float
    after: float
    nll: tuple[float, float] = (0.0, 0.0)
    """Nats per token of the first and the last response under the model."""
    relevance: tuple[float, float] = (0.0, 0.0)
    """Similarity of both to the prompt; equal if it was not measured."""

    @property
    def better(self) -> bool:
        """Return True if the last response scores higher, and is as fluent and as much to the point as the first one."""
        fluent = says_something(self.last) and self.nll[1] <= NLL_RISE * self.nll[0]
        return self.after > self.before and fluent and self.relevance[1] >= self.relevance[0] - RELEVANCE_LOSS

    def to_json(self) -> dict[str, Any]:
        """Return all fields, as JSON."""
        return {
            "prompt": self.prompt,
            "first": self.first,
            "response": self.last,
            "rounds": list(self.rounds),
            "before": self.before,
            "after": self.after,
            "nll": list(self.nll),
            "relevance": list(self.relevance),
            "kept": self.better,
        }


def write(
    policy: LMPolicy, speech: Speech, questions: Sequence[str], *, tokens: int, temperature: float, seeds: Sequence[int]
) -> list[str]:
    """Return the answers to questions. The random numbers follow from `seeds`, so that a repeated batch is the same."""
    limit = policy.backbone.context_length
    # Long questions lose their start.
    prompts = [ids if limit is None else ids[-(limit - tokens) :] for ids in map(speech.prompt, questions)]
    policy.temperature = temperature
    sampling = Sampling(max_new_tokens=tokens, temperature=temperature, rows=max(1, len(prompts)))
    # One generator for the batch, seeded by all its members (Knuth's multiplicative hash of each seed).
    mixed = int(
        np.bitwise_xor.reduce(np.array([(s * 0x9E3779B1 + i) & 0x7FFFFFFF for i, s in enumerate(seeds)], np.int64))
    )
    generator = torch.Generator().manual_seed(mixed)
    responses = generate(policy, prompts, sampling, eos=speech.eos, generator=generator)
    return [speech.text(each.tokens).strip() for each in responses]


def revise(
    policy: LMPolicy,
    speech: Speech,
    constitution: Constitution,
    prompts: Sequence[str],
    *,
    scorer: Callable[[str, str], float] | None = None,
    relevance: Callable[[Sequence[str], Sequence[str]], list[float]] | None = None,
    rounds: int = 1,
    tokens: int = 64,
    temperature: float = 0.7,
    seed: int = 0,
) -> list[Revision]:
    """Return one revision per prompt: the best of `rounds` rounds by `scorer`."""
    scored = scorer or constitution.score
    seeds = [seed_for(f"revise {prompt}", seed) for prompt in prompts]
    options: dict[str, Any] = {"tokens": tokens, "temperature": temperature}
    first = write(policy, speech, prompts, seeds=seeds, **options)
    best, now = list(first), list(first)
    history: list[list[dict[str, Any]]] = [[] for _ in prompts]
    for number in range(rounds):
        chosen = [_principle(constitution, now[i], seeds[i] + number) for i in range(len(prompts))]
        asked = [
            CRITIQUE.format(prompt=p, response=r, ask=c.critique) for p, r, c in zip(prompts, now, chosen, strict=True)
        ]
        critiques = write(policy, speech, asked, seeds=[s + 2 * number + 1 for s in seeds], **options)
        critiques = [c or "No specific issue was named." for c in critiques]
        wanted = [
            REVISION.format(prompt=p, response=r, critique=c, ask=k.revision)
            for p, r, c, k in zip(prompts, now, critiques, chosen, strict=True)
        ]
        revised = write(policy, speech, wanted, seeds=[s + 2 * number + 2 for s in seeds], **options)
        now = [new or old for new, old in zip(revised, now, strict=True)]
        for i, prompt in enumerate(prompts):
            history[i].append({"principle": chosen[i].name, "critique": critiques[i], "revision": now[i]})
            if scored(prompt, now[i]) > scored(prompt, best[i]):
                best[i] = now[i]
    unlikely = [_nll(policy, speech, prompts, texts) for texts in (first, best)]
    near = [relevance(prompts, texts) if relevance else [0.0] * len(prompts) for texts in (first, best)]
    return [
        Revision(
            prompt,
            first[i],
            best[i],
            tuple(history[i]),
            scored(prompt, first[i]),
            scored(prompt, best[i]),
            (unlikely[0][i], unlikely[1][i]),
            (near[0][i], near[1][i]),
        )
        for i, prompt in enumerate(prompts)
    ]


@torch.no_grad()
def _nll(policy: LMPolicy, speech: Speech, prompts: Sequence[str], texts: Sequence[str]) -> list[float]:
    """Return the mean nats per token of each text after its prompt."""
    limit = policy.backbone.context_length
    rows = [(speech.prompt(p), speech.continuation(text)) for p, text in zip(prompts, texts, strict=True)]
    cut = [(p if limit is None else p[-max(1, limit - len(r)) :], r) for p, r in rows]
    return [float(nll(policy.backbone, [row]).mean()) for row in cut]


def _principle(constitution: Constitution, response: str, seed: int) -> Principle:
    """Return a principle that the response violates by rules; if there is none, any in turn."""
    broken = constitution.evaluate(response)["flagged_principles"]
    candidates = [p for p in constitution.active if p.name in broken] or constitution.active
    return candidates[seed % len(candidates)]
