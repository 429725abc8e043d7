"""The policy that chooses mutations: the decision core, with outcomes of a mutation against stopping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, Interval, flag, integer, real
from surefoot.data.knobs import Config, knob
from surefoot.decide.core.agent import Agent, AgentConfig
from surefoot.decide.encoders.observed import GivenVectors
from surefoot.decide.policy.replay import ReplayChooser
from surefoot.decide.policy.replay_config import ReplayConfig
from surefoot.decide.prompts.examples import EXAMPLES, Examples, split_examples
from surefoot.decide.prompts.mutations import MUTATIONS, STOP, allowed, mutate
from surefoot.decide.prompts.scorers import Scorer
from surefoot.decide.prompts.structure import KINDS, structure
from surefoot.decide.prompts.text import tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptConfig(Config):
    """What mutations may do to a prompt, and what a token costs."""

    max_steps: int = knob(4, "Most mutations per prompt.", integer(Interval(1)))
    token_cost: float = knob(0.002, "Cost of each added token, in units of the score.", real(NOT_NEGATIVE))
    max_tokens: int = knob(200, "Most tokens that the mutations of a prompt may add in all.", integer(Interval(0)))
    allow_cut: bool = knob(False, "Allow mutations that remove words of the prompt.", flag())
    span: float = knob(
        2.0, "Gain in score that counts as a full success; a loss of as much is a full failure.", real(POSITIVE)
    )


CHANGES = (*MUTATIONS, EXAMPLES)
"""What the policy chooses among: the mutations, and examples if there are rows to take them from."""


def versions(text: str, original: str, config: PromptConfig, examples: Examples | None = None) -> dict[str, str]:
    """Return the text after each mutation that is possible and stays within the cap, by the mutation's name."""
    head, body = split_examples(text)
    mask, room = allowed(body, allow_cut=config.allow_cut), config.max_tokens + tokens(original)
    texts = {name: head + mutate(body, name).text for name, possible in zip(MUTATIONS, mask, strict=False) if possible}
    if examples is not None and not head:
        texts[EXAMPLES] = examples.before(body, original, room - tokens(text))
    return {name: new for name, new in texts.items() if new != text and tokens(new) <= room}


_FORMS = ("option", "yes-no", "short", "text", "open")
FACTS = (
    *(f"form_{form}" for form in _FORMS),
    *(f"kind_{kind}" for kind in (*KINDS, "")),
    *("strict", "cue", "material", "asks", "question", "paragraphs", "short", "long", "longer", "like", "alike"),
    *(f"did_{mutation}" for mutation in CHANGES),
)
"""Names of the numbers that the policy observes."""


def facts(text: str, did: Sequence[str], likeness: float = 0.0) -> np.ndarray:
    """Return the numbers of `FACTS`, [F] of length 1: what the prompt asks for and in which form, and what was done to it.

    `likeness` is the cosine with the nearest example, 0 without one.
    """
    body = split_examples(text)[1]
    parsed, size = structure(body), tokens(body)
    values = [
        *(parsed.form == form for form in _FORMS),
        *(parsed.kind == kind for kind in (*KINDS, "")),
        parsed.strict,
        bool(parsed.cue),
        bool(parsed.material),
        bool(parsed.instruction),
        body.rstrip().endswith("?"),
        "\n\n" in body.strip(),
        size < 25,
        size > 60,
        size > 150,
        likeness > 0.0,
        likeness > _ALIKE,
        *(name in did for name in CHANGES),
    ]
    row = np.array(values, np.float32)
    return row / np.float32(max(1.0, np.sqrt(row.sum())))


# Cosine with the nearest example that about half of the prompts of one task have.
_ALIKE = 0.7
# A mutation's mean gain is learned first, and what depends on the prompt only after many outcomes. Rows of one task are
# alike, so a difference between prompts that was seen on few tasks is mostly chance.
# Together they have length 1, as vectors of encoders have.
_CONSTANT, _FACTS = 0.93, 0.3676
# Smaller steps than the default's: the features of all prompts are alike.
_LR = 0.02


class PromptPolicy:
    """Chooses mutations one after the other, and when to stop, without evaluating anything.

    An agent of the decision core with the mutations and "stop" as options and `FACTS` as its vector. Each outcome is one of
    the pair of a mutation and "stop": several mutations can help the same prompt, and none of them makes another one wrong.

    Args:
        config: Limits and price.
        seed: Seed of the exploration in training.
        examples: Rows that examples are taken from.
    """

    def __init__(self, config: PromptConfig | None = None, *, seed: int = 0, examples: Examples | None = None) -> None:
        self.config, self.seed, self.examples = config or PromptConfig(), seed, examples
        # Descriptions do not tell which mutation helps.
        encoder = GivenVectors(len(FACTS) + 1, prior=0.0)
        settings = AgentConfig(abstain_below=0.0, seed=seed)
        chooser = ReplayChooser(encoder.dim, encoder.likeness, config=ReplayConfig(lr=_LR, seed=seed))
        self.agent = Agent(encoder, config=settings, chooser=chooser)
        for name in (*CHANGES, STOP):
            self.agent.options.add_vector(name)

    def choose(self, text: str, did: Sequence[str], possible: Sequence[str], original: str = "") -> str:
        """Return the name of the next mutation of a version of `original`, or stop."""
        vector = self.observe(text, did, original)
        return self.agent.choose("", allowed=(*possible, STOP), vector=vector, greedy=True).name or STOP

    def learn(self, text: str, did: Sequence[str], mutation: str, gain: float, original: str = "") -> None:
        """Learn that `mutation` changed the score of `text` by `gain`, less its cost; stopping changes it by 0."""
        success = float(np.clip(0.5 + 0.5 * gain / self.config.span, 0.0, 1.0))
        vector = self.observe(text, did, original)
        for name, reward in ((mutation, success), (STOP, 1.0 - success)):
            record = self.agent.imitate("", name, allowed=(mutation, STOP), vector=vector)
            self.agent.outcome(record.id, reward)
            self.agent.learn()

    def observe(self, text: str, did: Sequence[str], original: str = "") -> np.ndarray:
        """Return the vector of a version of `original`, [F + 1]."""
        near = [] if self.examples is None else self.examples.nearest(original or text)
        row = _FACTS * facts(text, did, near[0][0] if near else 0.0)
        return np.append(row, _CONSTANT).astype(np.float32)

    def steps(self, prompt: str) -> list[tuple[str, str]]:
        """Return (mutation, text after it) of each step for one prompt."""
        text, done = prompt, list[tuple[str, str]]()
        while len(done) < self.config.max_steps:
            did = [name for name, _ in done]
            possible = {n: t for n, t in versions(text, prompt, self.config, self.examples).items() if n not in did}
            name = self.choose(text, did, list(possible), prompt)
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
        texts = versions(walk.text, walk.original, policy.config, policy.examples)
        possible = [name for name in texts if name not in walk.tried and name not in walk.did]
        if not possible:
            continue
        if rng.random() < EXPLORE:
            name = possible[int(rng.integers(len(possible)))]
        else:
            name = policy.choose(walk.text, walk.did, possible, walk.original)
        if name != STOP:
            moves.append((walk, name, texts[name]))
    return moves


def _learn(policy: PromptPolicy, walk: _Walk, name: str, text: str, score: float) -> None:
    cost = policy.config.token_cost * (tokens(text) - tokens(walk.text))
    gain = score - walk.score - cost
    policy.learn(walk.text, walk.did, name, gain, walk.original)
    if gain > 0.0:
        walk.text, walk.score, walk.did, walk.tried = text, score, [*walk.did, name], set()
    else:
        walk.tried.add(name)
