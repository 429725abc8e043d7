"""Improve prompts with a policy or a baseline, and record each mutation with its gain and cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from surefoot.decide.prompts.mutations import ACTIONS, MUTATIONS, STOP, mutate
from surefoot.decide.prompts.text import tokens
from surefoot.decide.prompts.world import PromptWorld
from surefoot.envs.api import View
from surefoot.nets.policy import Policy, PolicyInput

Chooser = Callable[[PromptWorld, View], np.ndarray]
"""Returns actions, [N], for the current observations of N prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One mutation and its effect."""

    mutation: str
    gain: float
    tokens: int
    """Tokens added; negative if the prompt became shorter."""
    text: str
    """The prompt after the mutation."""


@dataclass(slots=True, kw_only=True)
class Improved:
    """A prompt with the mutations applied to it, and its scores."""

    original: str
    score_before: float
    score: float = 0.0
    changes: list[Change] = field(default_factory=list[Change])
    reward: float = 0.0
    """Gain minus the cost of the added tokens."""
    scorer_calls: int = 0

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

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        changes = [{"mutation": c.mutation, "gain": c.gain, "tokens": c.tokens, "text": c.text} for c in self.changes]
        numbers = {"score_before": self.score_before, "score": self.score, "gain": self.gain, "reward": self.reward}
        return {
            "original": self.original,
            "text": self.text,
            **numbers,
            "tokens": self.tokens_added,
            "changes": changes,
        }


def improve(choose: Chooser, world: PromptWorld, seed: int = 0) -> list[Improved]:
    """Improve every prompt once and return the results in order; `world` must be created with in_order=True."""
    view = world.reset(seed)
    results: list[Improved | None] = [None] * len(world.prompts)
    # Index of the prompt that each stream works on.
    index = list(range(world.num_envs))
    current = [_begin(world, i) for i in range(world.num_envs)]
    started = world.num_envs
    while any(each is None for each in results):
        before, texts = world.scores.copy(), list(world.texts)
        action = choose(world, view)
        step = world.step(action)
        ended = step.terminated | step.truncated
        for i in range(world.num_envs):
            each, name = current[i], ACTIONS[int(action[i])]
            each.reward += float(step.reward[i])
            if name != STOP:
                text = world.last_texts[i]
                gain = float(step.stats["score"][i] - before[i])
                change = Change(mutation=name, gain=gain, tokens=tokens(text) - tokens(texts[i]), text=text)
                each.changes.append(change)
                each.scorer_calls += 1
            if ended[i]:
                each.score = float(step.stats["score"][i])
                # Streams that finish early start the list again; those results are dropped.
                if index[i] < len(results) and results[index[i]] is None:
                    results[index[i]] = each
                index[i], started = started, started + 1
                current[i] = _begin(world, i)
        view = step.view
    return [each for each in results if each is not None]


def _begin(world: PromptWorld, stream: int) -> Improved:
    return Improved(original=world.texts[stream], score_before=float(world.scores[stream]), scorer_calls=1)


def by_policy(policy: Policy, *, deterministic: bool = True, seed: int = 0) -> Chooser:
    """Return a chooser that follows a trained policy."""
    generator = torch.Generator().manual_seed(seed)

    def choose(world: PromptWorld, view: View) -> np.ndarray:
        mask = None if view.action_mask is None else torch.from_numpy(view.action_mask)
        observed = PolicyInput(obs={name: torch.from_numpy(x) for name, x in view.obs.items()}, action_mask=mask)
        with torch.no_grad():
            return policy.act(observed, generator=generator, deterministic=deterministic).action.numpy()

    return choose


def at_random(seed: int = 0) -> Chooser:
    """Return a chooser that samples uniformly among the allowed actions."""
    rng = np.random.default_rng(seed)

    def choose(world: PromptWorld, view: View) -> np.ndarray:
        assert view.action_mask is not None
        return np.array([rng.choice(np.flatnonzero(row)) for row in view.action_mask])

    return choose


def round_robin(world: PromptWorld, view: View) -> np.ndarray:
    """Choose the mutations in order, skipping those that are not allowed; then stop."""
    assert view.action_mask is not None
    stop, chosen = ACTIONS.index(STOP), np.full(world.num_envs, ACTIONS.index(STOP))
    for i, row in enumerate(view.action_mask):
        remaining = [k for k in range(len(MUTATIONS)) if row[k] and k >= world.steps_taken[i]]
        chosen[i] = remaining[0] if remaining else stop
    return chosen


def greedy(world: PromptWorld, view: View) -> np.ndarray:
    """Choose the mutation with the largest gain according to the scorer; stop if none gains."""
    assert view.action_mask is not None
    chosen = np.full(world.num_envs, ACTIONS.index(STOP))
    for i, text in enumerate(world.texts):
        best = 0.0
        for k in range(len(MUTATIONS)):
            if view.action_mask[i, k]:
                candidate = mutate(text, k).text
                cost = world.config.token_cost * (tokens(candidate) - tokens(text))
                gain = float(world.scorer.score([candidate], [world.categories[i]])[0]) - world.scores[i] - cost
                if gain > best:
                    best, chosen[i] = gain, k
    return chosen
