"""A prompt made better by a trained policy: which mutations, what each gained, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
"""[N] actions for what N prompts look like now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One mutation and its effect."""

    mutation: str
    gain: float
    tokens: int
    """Added; negative where some were saved."""
    text: str
    """The prompt after it."""


@dataclass(slots=True, kw_only=True)
class Improved:
    """What became of a prompt."""

    original: str
    score_before: float
    score: float = 0.0
    changes: list[Change] = field(default_factory=list[Change])
    reward: float = 0.0
    """The gain less what its tokens cost."""
    scorer_calls: int = 0

    @property
    def text(self) -> str:
        """The prompt as it is now."""
        return self.changes[-1].text if self.changes else self.original

    @property
    def gain(self) -> float:
        """How much better it scores."""
        return self.score - self.score_before

    @property
    def tokens_added(self) -> int:
        """How much longer it is."""
        return sum(change.tokens for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
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
    """Every prompt of the world once, in order; `world` was made with in_order=True."""
    view = world.reset(seed)
    done: list[Improved | None] = [None] * len(world.prompts)
    at = list(range(world.num_envs))
    now = [_begin(world, i) for i in range(world.num_envs)]
    given = world.num_envs
    while any(each is None for each in done):
        before, texts = world.scores.copy(), list(world.texts)
        action = choose(world, view)
        step = world.step(action)
        ended = step.terminated | step.truncated
        for i in range(world.num_envs):
            each, name = now[i], ACTIONS[int(action[i])]
            each.reward += float(step.reward[i])
            if name != STOP:
                text = world.last_texts[i]
                gain = float(step.stats["score"][i] - before[i])
                change = Change(mutation=name, gain=gain, tokens=tokens(text) - tokens(texts[i]), text=text)
                each.changes.append(change)
                each.scorer_calls += 1
            if ended[i]:
                each.score = float(step.stats["score"][i])
                if at[i] < len(done) and done[at[i]] is None:
                    done[at[i]] = each
                at[i], given = given, given + 1
                now[i] = _begin(world, i)
        view = step.view
    return [each for each in done if each is not None]


def _begin(world: PromptWorld, stream: int) -> Improved:
    return Improved(original=world.texts[stream], score_before=float(world.scores[stream]), scorer_calls=1)


def by_policy(policy: Policy, *, deterministic: bool = True, seed: int = 0) -> Chooser:
    """Choose as a trained policy does."""
    generator = torch.Generator().manual_seed(seed)

    def choose(world: PromptWorld, view: View) -> np.ndarray:
        mask = None if view.action_mask is None else torch.from_numpy(view.action_mask)
        seen = PolicyInput(obs={name: torch.from_numpy(x) for name, x in view.obs.items()}, action_mask=mask)
        with torch.no_grad():
            return policy.act(seen, generator=generator, deterministic=deterministic).action.numpy()

    return choose


def at_random(seed: int = 0) -> Chooser:
    """Any mutation that is possible, or stop."""
    rng = np.random.default_rng(seed)

    def choose(world: PromptWorld, view: View) -> np.ndarray:
        assert view.action_mask is not None
        return np.array([rng.choice(np.flatnonzero(row)) for row in view.action_mask])

    return choose


def round_robin(world: PromptWorld, view: View) -> np.ndarray:
    """The first mutation first, the second second, and so on, those that are not possible left out; then stop."""
    assert view.action_mask is not None
    stop, chosen = ACTIONS.index(STOP), np.full(world.num_envs, ACTIONS.index(STOP))
    for i, row in enumerate(view.action_mask):
        left = [k for k in range(len(MUTATIONS)) if row[k] and k >= world.steps_taken[i]]
        chosen[i] = left[0] if left else stop
    return chosen


def one_each(mutations: Sequence[int | None]) -> Chooser:
    """One mutation by category (as CATEGORIES lists them; None for none), then stop."""
    from surefoot.decide.prompts.classify import CATEGORIES

    def choose(world: PromptWorld, view: View) -> np.ndarray:
        assert view.action_mask is not None
        stop = ACTIONS.index(STOP)
        chosen = np.full(world.num_envs, stop)
        for i, category in enumerate(world.categories):
            wanted = mutations[CATEGORIES.index(category)]
            if wanted is not None and world.steps_taken[i] == 0 and view.action_mask[i, wanted]:
                chosen[i] = wanted
        return chosen

    return choose


def greedy(world: PromptWorld, view: View) -> np.ndarray:
    """Choose the mutation that gains most according to the scorer; stop where nothing gains."""
    assert view.action_mask is not None
    chosen = np.full(world.num_envs, ACTIONS.index(STOP))
    for i, text in enumerate(world.texts):
        best = 0.0
        for k in range(len(MUTATIONS)):
            if view.action_mask[i, k]:
                made = mutate(text, k, category=world.categories[i], seed=world.seed).text
                cost = world.config.token_cost * (tokens(made) - tokens(text))
                gain = float(world.scorer.score([made], [world.categories[i]])[0]) - world.scores[i] - cost
                if gain > best:
                    best, chosen[i] = gain, k
    return chosen
