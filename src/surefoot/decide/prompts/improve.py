"""Improve prompts with a policy, a fixed sequence or a search, and compare them by their gain on held-out prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefoot.decide.prompts.examples import Examples
from surefoot.decide.prompts.policy import CHANGES, PromptConfig, versions
from surefoot.decide.prompts.scorers import Scorer
from surefoot.decide.prompts.text import tokens

Chooser = Callable[[str], "list[tuple[str, str]]"]
"""Returns (mutation, text after it) of each step for a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One mutation and its effect."""

    mutation: str
    tokens: int
    """Tokens added; negative if the prompt became shorter."""
    text: str
    """The prompt after the mutation."""


@dataclass(slots=True, kw_only=True)
class Improved:
    """A prompt with the mutations applied to it, and its scores."""

    original: str
    changes: list[Change] = field(default_factory=list[Change])
    score_before: float = 0.0
    score: float = 0.0
    token_cost: float = 0.0

    @property
    def text(self) -> str:
        """The prompt after all mutations."""
        return self.changes[-1].text if self.changes else self.original

    @property
    def gain(self) -> float:
        """Score after minus score before."""
        return self.score - self.score_before

    @property
    def tokens_added(self) -> int:
        """Tokens added by all mutations."""
        return sum(change.tokens for change in self.changes)

    @property
    def reward(self) -> float:
        """Gain minus the cost of the added tokens."""
        return self.gain - self.token_cost * self.tokens_added

    def to_json(self) -> dict[str, Any]:
        numbers = {"score_before": self.score_before, "score": self.score, "gain": self.gain, "reward": self.reward}
        changes = [{"mutation": c.mutation, "tokens": c.tokens, "text": c.text} for c in self.changes]
        return {
            "original": self.original,
            "text": self.text,
            **numbers,
            "tokens": self.tokens_added,
            "changes": changes,
        }


def improve(choose: Chooser, prompts: Sequence[str], scorer: Scorer, *, token_cost: float = 0.0) -> list[Improved]:
    """Improve every prompt, and score it before and after."""
    before, results = scorer.score(prompts, prompts), list[Improved]()
    for prompt, score in zip(prompts, before, strict=True):
        last, changes = prompt, list[Change]()
        for name, text in choose(prompt):
            changes.append(Change(mutation=name, tokens=tokens(text) - tokens(last), text=text))
            last = text
        results.append(Improved(original=prompt, changes=changes, score_before=float(score), token_cost=token_cost))
    for each, score in zip(results, scorer.score([each.text for each in results], prompts), strict=True):
        each.score = float(score)
    return results


def fixed(names: Sequence[str], config: PromptConfig, examples: Examples | None = None) -> Chooser:
    """Return a chooser that applies the same mutations to every prompt, skipping those that are not possible."""

    def choose(prompt: str) -> list[tuple[str, str]]:
        text, done = prompt, list[tuple[str, str]]()
        for name in names:
            possible = versions(text, prompt, config, examples)
            if name in possible:
                text = possible[name]
                done.append((name, text))
        return done

    return choose


def at_random(config: PromptConfig, seed: int = 0, examples: Examples | None = None) -> Chooser:
    """Return a chooser that draws among the possible mutations and stopping, all equally likely."""
    rng = np.random.default_rng(seed)

    def choose(prompt: str) -> list[tuple[str, str]]:
        text, done = prompt, list[tuple[str, str]]()
        while len(done) < config.max_steps:
            possible = versions(text, prompt, config, examples)
            names = [name for name in possible if name not in [did for did, _ in done]]
            drawn = int(rng.integers(len(names) + 1))
            if drawn == len(names):
                break
            text = possible[names[drawn]]
            done.append((names[drawn], text))
        return done

    return choose


def best_single(
    scorer: Scorer, prompts: Sequence[str], config: PromptConfig, evaluations: int, examples: Examples | None = None
) -> tuple[str, ...]:
    """Return the mutation with the highest mean reward over the prompts, within `evaluations` scores; none if all lose."""
    rows = prompts[: max(1, evaluations // (len(CHANGES) + 1))]
    return _best([(name,) for name in CHANGES], scorer, rows, config, examples)


def best_of_n(
    scorer: Scorer,
    prompts: Sequence[str],
    config: PromptConfig,
    evaluations: int,
    examples: Examples | None = None,
    *,
    n: int = 24,
) -> tuple[str, ...]:
    """Return the best of n random sequences of mutations, by mean reward over the prompts, within `evaluations` scores."""
    rng = np.random.default_rng(0)
    drawn = [
        tuple(CHANGES[int(i)] for i in rng.permutation(len(CHANGES))[: int(rng.integers(1, config.max_steps + 1))])
        for _ in range(n)
    ]
    return _best(drawn, scorer, prompts[: max(1, evaluations // (n + 1))], config, examples)


def best_sequence(
    scorer: Scorer, prompts: Sequence[str], config: PromptConfig, evaluations: int, examples: Examples | None = None
) -> tuple[str, ...]:
    """Return the sequence that grows by the mutation with the highest mean reward until none gains (greedy search)."""
    rows = prompts[: max(1, evaluations // (config.max_steps * len(CHANGES)))]
    names: tuple[str, ...] = ()
    while len(names) < config.max_steps:
        more = [names, *((*names, name) for name in CHANGES if name not in names)]
        longer = _best(more, scorer, rows, config, examples)
        if longer == names:
            break
        names = longer
    return names


def _best(
    sequences: Sequence[tuple[str, ...]],
    scorer: Scorer,
    prompts: Sequence[str],
    config: PromptConfig,
    examples: Examples | None,
) -> tuple[str, ...]:
    """Return the sequence with the highest mean reward; the empty one if none is above 0."""
    best, highest = (), 0.0
    for names in dict.fromkeys(sequences):
        results = improve(fixed(names, config, examples), prompts, scorer, token_cost=config.token_cost)
        mean = float(np.mean([each.reward for each in results]))
        if mean > highest:
            best, highest = names, mean
    return best


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return (mean, low, high): the mean with its 95 % bootstrap interval over the values."""
    array = np.asarray(values, np.float64)
    drawn = np.random.default_rng(0).integers(len(array), size=(2000, len(array)))
    means = array[drawn].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(array.mean()), float(low), float(high)
