"""An agent over named options: decides, waits for outcomes by id, learns on the side, and can say why."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from surefoot.data.seeds import seed_for
from surefoot.decide.encoders.encoder import Cached, Encoder
from surefoot.decide.policy.calibration import Calibration
from surefoot.decide.policy.choosers import (
    Choice,
    Chooser,
    EpsilonGreedy,
    Experience,
    LinTS,
    LinUCB,
    Residual,
    ZeroShot,
)
from surefoot.decide.policy.options import Options
from surefoot.decide.policy.outcome_model import Scene
from surefoot.decide.policy.ppo import PPOChooser
from surefoot.decide.promotion import Match
from surefoot.errors import CheckpointIncompatible, ConfigError, DecisionError, UnknownDecision
from surefoot.learn.report import UpdateReport

Mode = Literal["live", "shadow", "apprentice"]
CHOOSERS = ("ppo", "residual", "linucb", "lints", "egreedy", "nearest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """An answer, with everything learning and explaining need."""

    id: str
    name: str | None
    """The option to take; None: none of these."""
    probability: float
    names: list[str]
    scene: Scene
    choice: Choice
    confidence: float
    """The success rate to expect, 0 … 1, calibrated on past outcomes."""
    version: int
    text: str = ""

    @property
    def probabilities(self) -> dict[str, float]:
        return {name: float(p) for name, p in zip(self.names, self.choice.probabilities, strict=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A past decision like this one, and what came of it."""

    text: str
    name: str
    reward: float
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an option was chosen, candidate by candidate."""

    chosen: str | None
    confidence: float
    exploration: float
    """Share of decisions like this one in which another candidate than the favourite is tried."""
    explored: bool
    """This was one of them."""
    candidates: list[dict[str, Any]]
    """name, prior, learned, worth, probability; best first."""
    nearest: list[Neighbour] = field(default_factory=list[Neighbour])

    def __str__(self) -> str:
        lines = [f"{self.chosen or 'none of these'} (expected success {self.confidence:.0%})"]
        lines += [
            f"  {c['name']:<16} description {c['prior']:+.3f}  outcomes {c['learned']:+.3f}  → {c['probability']:.1%}"
            for c in self.candidates[:5]
        ]
        lines.append(f"  tries another than its favourite in {self.exploration:.1%} of such cases")
        lines += [f"  {n.similarity:.2f} like “{n.text[:50]}”: {n.name}, reward {n.reward:.2f}" for n in self.nearest]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """What an agent is made of."""

    chooser: str = "ppo"
    """ppo, residual, linucb, lints, egreedy or nearest."""
    low: float = 0.0
    high: float = 1.0
    """Rewards lie between these; inside, learning sees 0 … 1."""
    abstain_below: float = 0.0
    """Answer "none of these" where the best candidate's calibrated success rate is below this; 0 never does."""
    remembered: int = 10_000
    """Open decisions, and finished ones that `explain` looks among."""
    extra: int = 0
    """Numbers that join the query's vector for learning."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.chooser not in CHOOSERS:
            raise ConfigError(f"chooser is {self.chooser!r}; it must be one of {', '.join(CHOOSERS)}")
        if not self.low < self.high:
            raise ConfigError(f"low is {self.low} and high is {self.high}; the first must be the smaller one")


def make_chooser(name: str, encoder: Encoder, extra: int = 0, **options: Any) -> Chooser:
    """A fresh chooser of that name for vectors of this encoder."""
    dim, like = encoder.dim + extra, encoder.likeness
    kinds: dict[str, Any] = {"residual": Residual, "linucb": LinUCB, "lints": LinTS, "egreedy": EpsilonGreedy}
    if name == "ppo":
        return PPOChooser(dim, like, **options)
    if name == "nearest":
        return ZeroShot(dim, like)
    return kinds[name](dim, like, **options)


class Agent:
    """Decides without waiting for learning: `learn` works on its own copies and swaps them in whole."""

    def __init__(
        self,
        encoder: Encoder,
        *,
        config: AgentConfig | None = None,
        chooser: Chooser | None = None,
        reserved: Sequence[str] = (),
    ) -> None:
        self.config = config or AgentConfig()
        self.encoder = Cached(encoder)
        self.options = Options(self.encoder, reserved)
        self.chooser = chooser or make_chooser(self.config.chooser, encoder, self.config.extra)
        self.calibration, self.match = Calibration(), Match()
        self._generator = np.random.default_rng(seed_for("decide", self.config.seed))
        self._open: OrderedDict[str, Decided] = OrderedDict()
        self._finished: list[Experience] = []
        self._past: OrderedDict[str, tuple[np.ndarray, str, str, float]] = OrderedDict()
        self._lock, self._learning = threading.Lock(), threading.Lock()

    @property
    def version(self) -> int:
        """Of the policy that answers."""
        return self.chooser.version

    @property
    def waiting(self) -> int:
        """Decisions without an outcome."""
        return len(self._open)

    @property
    def unlearned(self) -> int:
        """Outcomes that `learn` has not seen."""
        return len(self._finished)

    def decide(
        self,
        text: str,
        *,
        allowed: Collection[str] | None = None,
        id: str | None = None,
        vector: np.ndarray | None = None,
        extra: np.ndarray | None = None,
        greedy: bool = False,
        mode: Mode = "live",
        done: str | None = None,
    ) -> Decided:
        """Choose one of the allowed options. The same id asked again gets the same answer, and no second draw.

        In `shadow` mode nothing waits for an outcome. In `apprentice` mode the application says what it has `done`:
        that is what the outcome will be of; the agent only counts whether it would have done the same.
        """
        id = id or uuid.uuid4().hex
        with self._lock:
            if id in self._open:
                return self._open[id]
        seen = self.encoder.encode([text])[0] if vector is None else vector
        names = self.options.allowed(allowed)
        scene = self.options.scene(seen, names, extra)
        choice = self.chooser.choose(scene, self._generator, greedy=greedy)
        confidence = self.calibration(float(choice.worth[choice.at]) if len(choice.worth) else choice.probability)
        name: str | None = names[choice.at]
        if confidence < self.config.abstain_below:
            name = None
        if mode == "apprentice":
            choice, name = self._apprentice(choice, names, name, done)
        decided = Decided(
            id=id,
            name=name,
            probability=choice.probability,
            names=names,
            scene=scene,
            choice=choice,
            confidence=confidence,
            version=choice.version,
            text=text,
        )
        if mode != "shadow" and name is not None:
            self._remember(decided)
        return decided

    def outcome(self, id: str, reward: float) -> Decided:
        """What came of a decision; `learn` will see it."""
        low, high = self.config.low, self.config.high
        if not low <= reward <= high:
            raise DecisionError(f"the reward of decision {id!r} is {reward}; it must lie between {low:g} and {high:g}")
        with self._lock:
            if id not in self._open:
                raise UnknownDecision(
                    f"no open decision {id!r}: it was never made here, or it already has its outcome "
                    f"({len(self._open)} are open)"
                )
            decided = self._open.pop(id)
            unit = (reward - low) / (high - low)
            experience = Experience(scene=decided.scene, choice=decided.choice, reward=unit, id=id)
            self._finished.append(experience)
        self.saw(experience, decided.text, decided.name or "")
        return decided

    def saw(self, experience: Experience, text: str, name: str) -> None:
        """Take an outcome into the calibration and into what `explain` remembers; nothing is learned from it here."""
        choice = experience.choice
        with self._lock:
            if len(choice.worth):
                self.calibration.add(float(choice.worth[choice.at]), experience.reward)
            vector = experience.scene.x[: self.encoder.dim]
            self._past[experience.id] = (vector, text, name, experience.reward)
            while len(self._past) > self.config.remembered:
                self._past.popitem(last=False)

    def learn(self) -> UpdateReport | None:
        """Learn from every outcome since the last call; the report of the PPO update, if one was due."""
        with self._learning:
            with self._lock:
                taken, self._finished = self._finished, []
            return self.chooser.learn([[each] for each in taken]) if taken else None

    def absorb(self, experiences: Sequence[Experience]) -> UpdateReport | None:
        """Learn from experiences that somebody else kept, a journal for example."""
        with self._learning:
            return self.chooser.learn([[each] for each in experiences]) if experiences else None

    def explain(self, decided: Decided, nearest: int = 3) -> Explanation:
        """Prior, learned part, exploration and the most similar past outcomes."""
        choice = decided.choice
        empty = np.zeros(len(decided.names))
        prior = choice.prior if len(choice.prior) else empty
        learned = choice.learned if len(choice.learned) else empty
        rows = [
            {
                "name": name,
                "prior": float(prior[k]),
                "learned": float(learned[k]),
                "worth": float(prior[k] + learned[k]),
                "probability": float(choice.probabilities[k]),
            }
            for k, name in enumerate(decided.names)
        ]
        rows = [rows[k] for k in np.argsort(-(prior + learned), kind="stable")]
        favourite = int(np.nanargmax(choice.probabilities)) if np.isfinite(choice.probabilities).any() else choice.at
        return Explanation(
            chosen=decided.name,
            confidence=decided.confidence,
            exploration=1.0 - float(np.nanmax(choice.probabilities, initial=0.0)),
            explored=choice.at != favourite,
            candidates=rows,
            nearest=self._nearest(decided, nearest),
        )

    def state(self) -> dict[str, Any]:
        """Everything but open decisions, in parts that a checkpoint takes."""
        return {
            "chooser": self.chooser.state(),
            "agent": {
                "encoder": self.encoder.name,
                "kind": self.config.chooser,
                "extra": self.config.extra,
                "options": self.options.state(),
                "calibration": self.calibration.state(),
                "generator": self._generator.bit_generator.state,
            },
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from a saved state; one of another encoder or another kind of chooser is refused."""
        mine = state["agent"]
        for what, saved, here in (
            ("encoder", mine["encoder"], self.encoder.name),
            ("chooser", mine["kind"], self.config.chooser),
            ("extra features", mine["extra"], self.config.extra),
        ):
            if saved != here:
                raise CheckpointIncompatible(f"this policy was made with {what} {saved!r}, here it is {here!r}")
        with self._learning, self._lock:
            self.options.set_state(mine["options"])
            self.chooser.set_state(state["chooser"])
            self.calibration.set_state(mine["calibration"])
            self._generator.bit_generator.state = mine["generator"]

    def _apprentice(
        self, choice: Choice, names: list[str], own: str | None, done: str | None
    ) -> tuple[Choice, str | None]:
        if done is None:
            raise DecisionError("an apprentice needs `done`: what the application itself chose")
        if done not in names:
            raise DecisionError(f"the application chose {done!r}, which is not among the allowed: {', '.join(names)}")
        self.match.saw(own or "", done)
        at = names.index(done)
        certain = np.zeros(len(names), np.float32)
        certain[at] = 1.0
        copied = Choice(
            at=at,
            probability=1.0,  # the application's own choice: no draw of ours
            probabilities=certain,
            value=choice.value,
            worth=choice.worth,
            prior=choice.prior,
            learned=choice.learned,
            base=np.where(certain > 0, 0.0, -1e3).astype(np.float32) if len(choice.base) else choice.base,
            plausible=certain > 0 if len(choice.plausible) else choice.plausible,
            version=choice.version,
        )
        return copied, done

    def _remember(self, decided: Decided) -> None:
        with self._lock:
            self._open[decided.id] = decided
            while len(self._open) > self.config.remembered:
                self._open.popitem(last=False)

    def _nearest(self, decided: Decided, count: int) -> list[Neighbour]:
        with self._lock:
            past = list(self._past.values())
        if not past or count == 0:
            return []
        similarity = np.stack([vector for vector, *_ in past]) @ decided.scene.x[: self.encoder.dim]
        best = np.argsort(-similarity)[:count]
        return [
            Neighbour(text=past[i][1], name=past[i][2], reward=past[i][3], similarity=float(similarity[i]))
            for i in best
        ]
