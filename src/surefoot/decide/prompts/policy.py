"""The policy that chooses mutations: the decision core, with one yes-or-no decision per mutation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, Interval, flag, integer, real
from surefoot.data.knobs import Config, knob
from surefoot.decide.core.agent import Agent, AgentConfig
from surefoot.decide.encoders.encoder import make_encoder
from surefoot.decide.prompts.mutations import ABOUT, MUTATIONS, STOP, allowed, mutate
from surefoot.decide.prompts.scorers import Scorer
from surefoot.decide.prompts.structure import KINDS, structure
from surefoot.decide.prompts.text import tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptConfig(Config):
    """What mutations may do to a prompt, and what a token costs."""

    max_steps: int = knob(4, "Most mutations per prompt.", integer(Interval(1)))
    token_cost: float = knob(0.002, "Cost of each added token, in units of the score.", real(NOT_NEGATIVE))
    max_tokens: int = knob(80, "Most tokens that the mutations of a prompt may add in all.", integer(Interval(0)))
    allow_cut: bool = knob(False, "Allow mutations that remove words of the prompt.", flag())
    span: float = knob(
        2.0, "Gain in score that counts as a full success; a loss of as much is a full failure.", real(POSITIVE)
    )


def versions(text: str, original: str, config: PromptConfig) -> dict[str, str]:
    """Return the text after each mutation that is possible and stays within the cap, by the mutation's name."""
    mask, room = allowed(text, allow_cut=config.allow_cut), config.max_tokens + tokens(original)
    texts = {name: mutate(text, name).text for name, possible in zip(MUTATIONS, mask, strict=False) if possible}
    return {name: new for name, new in texts.items() if new != text and tokens(new) <= room}


_FORMS = ("option", "yes-no", "short", "text", "open")
FACTS = (
    *(f"form_{form}" for form in _FORMS),
    *(f"kind_{kind}" for kind in (*KINDS, "")),
    *("strict", "cue", "material", "asks", "question", "paragraphs", "short", "long", "longer"),
    *(f"did_{mutation}" for mutation in MUTATIONS),
)
"""Names of the numbers that the policy observes."""


def facts(text: str, did: Sequence[str]) -> np.ndarray:
    """Return the numbers of `FACTS`, [F] of length 1: what the prompt asks for and in which form, and what was done to it."""
    found, size = structure(text), tokens(text)
    values = [
        *(found.form == form for form in _FORMS),
        *(found.kind == kind for kind in (*KINDS, "")),
        found.strict,
        bool(found.cue),
        bool(found.material),
        bool(found.instruction),
        text.rstrip().endswith("?"),
        "\n\n" in text.strip(),
        size < 25,
        size > 60,
        size > 150,
        *(name in did for name in MUTATIONS),
    ]
    row = np.array(values, np.float32)
    return row / np.float32(max(1.0, np.sqrt(row.sum())))


# Ridge weights: a mutation's mean gain is learned first, and what depends on the prompt only after many outcomes. Rows of
# one task are alike, so a difference between prompts that was seen on few tasks is mostly chance.
_CONSTANT, _FACTS = 2.0, 0.4


class PromptPolicy:
    """Chooses mutations one after the other, and when to stop, without evaluating anything.

    An agent of the decision core with the mutations and "stop" as options and `FACTS` as features. Its chooser is
    `residual`, a regression per mutation: the core's default chooser assumes that one option is right and the others are
    wrong, but several mutations can help the same prompt.

    Args:
        config: Limits and price.
        seed: Seed of the exploration in training.
    """

    def __init__(self, config: PromptConfig | None = None, *, seed: int = 0) -> None:
        self.config, self.seed = config or PromptConfig(), seed
        # Words of a prompt do not tell which mutation helps it: the encoder is the smallest, and its vector is 0.
        encoder = make_encoder("hashing-1-8")
        self.agent = Agent(encoder, config=AgentConfig(chooser="residual", extra=len(FACTS) + 1, seed=seed))
        for name, about in ABOUT.items():
            self.agent.options.add(name, about)

    def choose(self, text: str, did: Sequence[str], possible: Sequence[str]) -> str:
        """Return the name of the next mutation, or stop."""
        if not possible:
            return STOP
        record = self.agent.choose(text, allowed=(*possible, STOP), greedy=True, **self._observed(text, did))
        return record.name or STOP

    def learn(self, text: str, did: Sequence[str], mutation: str, gain: float) -> None:
        """Learn that `mutation` changed the score of `text` by `gain`, less its cost; stopping changes it by 0."""
        success = float(np.clip(0.5 + 0.5 * gain / self.config.span, 0.0, 1.0))
        for name, reward in ((mutation, success), (STOP, 0.5)):
            record = self.agent.imitate(text, name, allowed=(mutation, STOP), **self._observed(text, did))
            self.agent.outcome(record.id, reward)
        self.agent.learn()

    def _observed(self, text: str, did: Sequence[str]) -> dict[str, Any]:
        extra = np.append(_FACTS * facts(text, did), _CONSTANT).astype(np.float32)
        return {"extra": extra, "vector": np.zeros(self.agent.encoder.dim, np.float32)}

    def steps(self, prompt: str) -> list[tuple[str, str]]:
        """Return (mutation, text after it) of each step for one prompt."""
        text, done = prompt, list[tuple[str, str]]()
        while len(done) < self.config.max_steps:
            did = [name for name, _ in done]
            possible = {n: t for n, t in versions(text, prompt, self.config).items() if n not in did}
            name = self.choose(text, did, list(possible))
            if name == STOP:
                break
            text = possible[name]
            done.append((name, text))
        return done


@dataclass(slots=True)
class _Walk:
    """One prompt and the mutations applied to it so far."""

    original: str
    text: str
    score: float
    did: list[str] = field(default_factory=list[str])
    tried: set[str] = field(default_factory=set[str])


# Share of choices drawn uniformly in training, so that mutations that look bad are not judged by a few early outcomes.
EXPLORE = 0.3
BATCH = 16
"""Prompts that are evaluated together: one batch of the model."""


def train(policy: PromptPolicy, scorer: Scorer, prompts: Sequence[str], evaluations: int) -> list[tuple[int, float]]:
    """Train on the gains of mutations, with at most `evaluations` scores of texts; return (scores so far, mean gain) per pass.

    Each prompt is walked through: a mutation is chosen and scored, and the walk continues from the better text.
    """
    rng, curve, used = np.random.default_rng(policy.seed), list[tuple[int, float]](), 0
    while used < evaluations:
        gains, begun = list[float](), used
        order = rng.permutation(len(prompts))
        for begin in range(0, len(prompts), BATCH):
            chosen = [prompts[int(i)] for i in order[begin : begin + BATCH]][: max(0, (evaluations - used) // 2)]
            if not chosen:
                break
            walks = [_Walk(p, p, float(x)) for p, x in zip(chosen, scorer.score(chosen, chosen), strict=True)]
            first = [walk.score for walk in walks]
            used += len(walks)
            for _ in range(policy.config.max_steps):
                moves = _moves(policy, walks, rng)[: max(0, evaluations - used)]
                if not moves:
                    break
                scores = scorer.score([text for _, _, text in moves], [walk.original for walk, _, _ in moves])
                used += len(moves)
                for (walk, name, text), score in zip(moves, scores, strict=True):
                    _learn(policy, walk, name, text, float(score))
            gains += [walk.score - before for walk, before in zip(walks, first, strict=True)]
        if used == begun:
            break
        curve.append((used, float(np.mean(gains))))
    return curve


def _moves(policy: PromptPolicy, walks: Sequence[_Walk], rng: np.random.Generator) -> list[tuple[_Walk, str, str]]:
    """Return (walk, mutation, text after it) for every walk that continues."""
    moves = list[tuple[_Walk, str, str]]()
    for walk in walks:
        texts = versions(walk.text, walk.original, policy.config)
        possible = [name for name in texts if name not in walk.tried and name not in walk.did]
        if not possible:
            continue
        if rng.random() < EXPLORE:
            name = possible[int(rng.integers(len(possible)))]
        else:
            name = policy.choose(walk.text, walk.did, possible)
        if name != STOP:
            moves.append((walk, name, texts[name]))
    return moves


def _learn(policy: PromptPolicy, walk: _Walk, name: str, text: str, score: float) -> None:
    cost = policy.config.token_cost * (tokens(text) - tokens(walk.text))
    gain = score - walk.score - cost
    policy.learn(walk.text, walk.did, name, gain)
    if gain > 0.0:
        walk.text, walk.score, walk.did, walk.tried = text, score, [*walk.did, name], set()
    else:
        walk.tried.add(name)
