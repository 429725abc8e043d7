"""Prompt improvement as an environment: one prompt per episode, one mutation per action, the gain in score as reward."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.data.kinds import NOT_NEGATIVE, Interval, flag, integer, real
from surefoot.data.knobs import knob, settle
from surefoot.data.spaces import ActionSpace, Box, Discrete, ObservationSpace
from surefoot.decide.encoders.encoder import Encoder
from surefoot.decide.prompts.classify import CATEGORIES, Category, classify
from surefoot.decide.prompts.measures import GENERAL, measures
from surefoot.decide.prompts.mutations import ACTIONS, MUTATIONS, STOP, allowed, mutate
from surefoot.decide.prompts.scorers import Scorer
from surefoot.decide.prompts.text import sentences, tokens
from surefoot.envs.api import Arrays, Step, View
from surefoot.envs.builtin.streams import Actions, checked_streams
from surefoot.errors import ConfigError, IllegalAction

# Cached texts: about 25 MB with 256 numbers per embedding.
REMEMBERED = 20_000
FACTS = (
    *(f"is_{category.lower()}" for category in CATEGORIES),
    "time",
    *("confidence", "tokens", "sentences", *GENERAL),
    *(f"did_{mutation}" for mutation in MUTATIONS),
)
"""Names of the numbers that the policy observes besides the embedding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptConfig:
    """Length of an episode and price of a token."""

    max_steps: int = knob(5, "Mutations after which an episode is truncated.", integer(Interval(1)))
    token_cost: float = knob(
        0.002,
        "Cost in score of each token that a mutation adds; saved tokens count as a gain.",
        real(NOT_NEGATIVE),
    )
    allow_cut: bool = knob(False, "Allow mutations that remove words of the prompt.", flag())

    def __post_init__(self) -> None:
        settle(self)


class PromptWorld:
    """N prompts at a time, drawn from a list. The action `stop` terminates an episode."""

    inexact: str | None = None

    def __init__(
        self,
        prompts: Sequence[str],
        scorer: Scorer,
        encoder: Encoder,
        num_envs: int = 1,
        config: PromptConfig | None = None,
        *,
        in_order: bool = False,
    ) -> None:
        self.prompts = [prompt for prompt in prompts if prompt.strip()]
        if not self.prompts:
            raise ConfigError("no prompt to improve; pass at least one that is not empty")
        if num_envs < 1:
            raise ConfigError(f"num_envs is {num_envs}; it must be at least 1")
        self.name, self.num_envs = "surefoot/Prompts-v0", num_envs
        self.scorer, self.encoder, self.config = scorer, encoder, config or PromptConfig()
        self.scorer_calls = 0
        """Number of prompts scored so far."""
        self.observation: ObservationSpace = {"embedding": Box((encoder.dim,), -1.0, 1.0), "facts": Box((len(FACTS),))}
        self.action: ActionSpace = Discrete(len(ACTIONS))
        self._actions, self._in_order = Actions(self.name, self.action, num_envs), in_order
        self._known: OrderedDict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = OrderedDict()
        self.reset(0)

    def reset(self, seed: int) -> View:
        """Draw N prompts."""
        self.seed, self._rng = seed, np.random.Generator(np.random.PCG64(seed))
        self._next = 0
        n = self.num_envs
        self._which = np.zeros(n, np.int64)
        self.texts: list[str] = [""] * n
        self.last_texts: list[str] = list(self.texts)
        """Texts after the last step, before finished streams started another prompt."""
        self.categories: list[Category] = ["GENERAL_QA"] * n
        self.scores, self._clock = np.zeros(n), np.zeros(n, np.int64)
        self._did = np.zeros((n, len(MUTATIONS)), np.float32)
        self._begin(np.ones(n, bool))
        return self._view()

    def step(self, action: np.ndarray) -> Step:
        """Apply one action per stream; a finished stream starts its next prompt."""
        action = self._actions.checked(action)
        mask, stops = self._mask, action == ACTIONS.index(STOP)
        if not mask[np.arange(self.num_envs), action].all():
            i = int(np.flatnonzero(~mask[np.arange(self.num_envs), action])[0])
            raise IllegalAction(
                f"{ACTIONS[action[i]]} in stream {i} is not possible for its prompt; see the action mask"
            )
        before, costs = self.scores.copy(), np.zeros(self.num_envs)
        changed = np.flatnonzero(~stops)
        for i in changed:
            text = mutate(self.texts[i], int(action[i])).text
            costs[i] = self.config.token_cost * (tokens(text) - tokens(self.texts[i]))
            self.texts[i] = text
            self._did[i, action[i]] = 1.0
        self._score(changed)
        reward = np.where(stops, 0.0, self.scores - before - costs)
        self._clock += 1
        truncated = ~stops & (self._clock >= self.config.max_steps)
        ended = stops | truncated
        # The observation of the ended prompt itself: a truncated episode is bootstrapped from it.
        final = self._observe().obs if ended.any() else None
        self.last_texts = list(self.texts)
        stats = {"score": self.scores.copy(), "tokens": np.array([float(tokens(text)) for text in self.texts])}
        self._begin(ended)
        return Step(
            view=self._view(),
            reward=reward,
            terminated=stops,
            truncated=truncated,
            valid=np.ones(self.num_envs, bool),
            final_obs=final,
            stats=stats,
        )

    def score_by(self, scorer: Scorer) -> None:
        """Use another scorer from now on; score the current prompts again."""
        self.scorer = scorer
        self._score(np.arange(self.num_envs))

    @property
    def steps_taken(self) -> np.ndarray:
        """Mutations applied so far per stream, [N]."""
        return self._clock

    def reset_streams(self, streams: np.ndarray) -> View:
        """Draw new prompts for these streams."""
        self._begin(checked_streams(streams, self))
        return self._view()

    def state(self) -> dict[str, Any]:
        """Return texts, scores, step counts and the generator's state."""
        return {
            "seed": self.seed,
            "next": self._next,
            "which": self._which.copy(),
            "texts": list(self.texts),
            "scores": self.scores.copy(),
            "clock": self._clock.copy(),
            "did": self._did.copy(),
            "rng": dict(self._rng.bit_generator.state),
            "scorer_calls": self.scorer_calls,
        }

    def set_state(self, state: dict[str, Any]) -> View:
        """Continue from a `state()`."""
        self.seed, self._next = int(state["seed"]), int(state["next"])
        self._which = np.array(state["which"], np.int64)
        self.texts = [str(text) for text in state["texts"]]
        self.categories = [classify(self.prompts[i]).category for i in self._which]
        self.scores, self._clock = np.array(state["scores"]), np.array(state["clock"], np.int64)
        self._did = np.array(state["did"], np.float32)
        self._rng.bit_generator.state = state["rng"]
        self.scorer_calls = int(state["scorer_calls"])
        return self._view()

    def render(self) -> np.ndarray | None:
        """Return None: there is nothing to draw."""
        return None

    def close(self) -> None:
        """Do nothing: no resources are held."""

    def _begin(self, streams: np.ndarray) -> None:
        indices = np.flatnonzero(streams)
        if not len(indices):
            return
        for i in indices:
            self._which[i] = self._next % len(self.prompts) if self._in_order else self._rng.integers(len(self.prompts))
            self._next += 1
            self.texts[i] = self.prompts[self._which[i]]
            self.categories[i] = classify(self.texts[i]).category
        self._clock[indices], self._did[indices] = 0, 0.0
        self._score(indices)

    def _score(self, streams: np.ndarray) -> None:
        if len(streams):
            texts, categories = [self.texts[i] for i in streams], [self.categories[i] for i in streams]
            self.scores[streams] = self.scorer.score(texts, categories)
            self.scorer_calls += len(streams)

    def _view(self) -> View:
        view = self._observe()
        assert view.action_mask is not None
        self._mask = view.action_mask
        return view

    def _observe(self) -> View:
        new = list(dict.fromkeys(text for text in self.texts if text not in self._known))
        for text, embedding in zip(new, self.encoder.encode(new) if new else (), strict=True):
            self._known[text] = (
                np.asarray(embedding, np.float32),
                text_facts(text),
                allowed(text, allow_cut=self.config.allow_cut),
            )
        embedding, facts, mask = (
            np.stack(rows) for rows in zip(*(self._known[text] for text in self.texts), strict=True)
        )
        # Only after the lookup: the current texts must still be there.
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        kinds = np.array([[c == category for c in CATEGORIES] for category in self.categories], np.float32)
        time = (self._clock / self.config.max_steps).astype(np.float32)[:, None]
        obs: Arrays = {"embedding": embedding, "facts": np.concatenate([kinds, time, facts, self._did], axis=1)}
        return View(obs=obs, action_mask=mask)


def text_facts(text: str) -> np.ndarray:
    """Return the numbers of `FACTS` that depend on the text only."""
    values = measures(text)
    # Scaled to about 1 for a long prompt and clipped, so that one huge prompt does not saturate the network.
    sizes = (classify(text).confidence, min(3.0, tokens(text) / 100.0), min(3.0, len(sentences(text)) / 10.0))
    return np.array([*sizes, *(values[name] for name in GENERAL)], np.float32)
