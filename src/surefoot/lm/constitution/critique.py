"""Critique and revision: the model gets its response and a principle, and rewrites the response."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from surefoot.data.seeds import seed_for
from surefoot.lm.constitution.principles import Constitution, Principle
from surefoot.lm.data import Talk
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
    policy: LMPolicy,
    speech: Speech,
    questions: Sequence[Talk],
    *,
    tokens: int,
    temperature: float,
    seeds: Sequence[int],
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
    """Return one revision per prompt: of `rounds` attempts one that is `better`, the most fluent if there are several.

    For a principle with examples an attempt is an answer after a few of them, as earlier turns of the conversation;
    otherwise the model criticises its answer and rewrites it.
    """
    scored = scorer or constitution.score
    seeds = [seed_for(f"revise {prompt}", seed) for prompt in prompts]
    options: dict[str, Any] = {"tokens": tokens, "temperature": temperature}
    first = write(policy, speech, prompts, seeds=seeds, **options)
    now, n = list(first), range(len(prompts))
    history: list[list[dict[str, Any]]] = [[] for _ in prompts]
    for number in range(rounds):
        chosen = [_principle(constitution, now[i], seeds[i] + number) for i in n]
        # Critiques only where nothing is to be imitated; an empty list of questions costs nothing.
        plain = [i for i in n if not chosen[i].examples]
        asked = [CRITIQUE.format(prompt=prompts[i], response=now[i], ask=chosen[i].critique) for i in plain]
        answers = write(policy, speech, asked, seeds=[seeds[i] + 2 * number + 1 for i in plain], **options)
        critiques = {i: answer or "No specific issue was named." for i, answer in zip(plain, answers, strict=True)}
        wanted: list[Talk] = [
            REVISION.format(prompt=prompts[i], response=now[i], critique=critiques[i], ask=chosen[i].revision)
            if i in critiques
            else _after_examples(chosen[i], prompts[i], seeds[i] + number)
            for i in n
        ]
        revised = write(policy, speech, wanted, seeds=[s + 2 * number + 2 for s in seeds], **options)
        now = [new or old for new, old in zip(revised, now, strict=True)]
        for i in n:
            history[i].append({"principle": chosen[i].name, "critique": critiques.get(i, ""), "revision": now[i]})
    scores = [[scored(p, text) for text in (first[i], *_attempts(history[i]))] for i, p in enumerate(prompts)]
    # Only attempts that score higher are measured.
    rows = [(i, 0) for i in n] + [(i, k) for i in n for k, x in enumerate(scores[i]) if k and x > scores[i][0]]
    texts = [first[i] if k == 0 else _attempts(history[i])[k - 1] for i, k in rows]
    questions = [prompts[i] for i, _ in rows]
    unlikely = nats_per_token(policy, speech, questions, texts)
    near = relevance(questions, texts) if relevance else [0.0] * len(rows)
    measured = {row: (text, u, r) for row, text, u, r in zip(rows, texts, unlikely, near, strict=True)}
    revisions: list[Revision] = []
    for i, prompt in enumerate(prompts):
        before, u, r = measured[i, 0]
        attempts = [
            Revision(prompt, before, text, tuple(history[i]), scores[i][0], scores[i][k], (u, v), (r, q))
            for (j, k), (text, v, q) in measured.items()
            if j == i
        ]
        # The first one is the answer itself, which is what remains if no attempt is better.
        revisions.append(min(attempts, key=lambda each: (not each.better, -each.after, each.nll[1])))
    return revisions


# Examples before a prompt: more cost time and leave a small model's attention.
SHOTS = 4


def _after_examples(principle: Principle, prompt: str, seed: int) -> Talk:
    """Return a conversation of some examples and the prompt."""
    shown = random.Random(seed).sample(principle.examples, min(SHOTS, len(principle.examples)))
    turns = [(role, text) for example in shown for role, text in zip(("user", "assistant"), example, strict=True)]
    return [{"role": role, "content": text} for role, text in (*turns, ("user", prompt))]


def _attempts(history: Sequence[dict[str, Any]]) -> list[str]:
    return [str(each["revision"]) for each in history]


@torch.no_grad()
def nats_per_token(policy: LMPolicy, speech: Speech, prompts: Sequence[str], texts: Sequence[str]) -> list[float]:
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
