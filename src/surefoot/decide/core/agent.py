"""An agent over named options: decide → record → outcome → learn → version → explain."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.data.seeds import seed_for
from surefoot.decide.core.candidates import Candidates, CandidateSet
from surefoot.decide.core.chooser_registry import CHOOSERS, as_ppo, make_chooser
from surefoot.decide.core.explanation import Explanation, PastDecisions, explain
from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.core.store import DecisionStore, MemoryStore
from surefoot.decide.encoders.encoder import Cached, Encoder
from surefoot.decide.encoders.observed import CosineScale
from surefoot.decide.evaluation.log_replay import compare
from surefoot.decide.policy.calibration import Calibration
from surefoot.decide.policy.choosers import Chooser, OptionChoice
from surefoot.decide.policy.options import Options
from surefoot.decide.policy.outcome_model import Scene
from surefoot.decide.policy.replay import ReplayChooser
from surefoot.decide.promotion import AgreementRate, GateConfig, Judgement, Versions
from surefoot.errors import CheckpointIncompatible, ConfigError, DecisionError, UnknownDecision
from surefoot.learn.checkpoint.typed_state import restoring
from surefoot.learn.report import UpdateReport

# Shared weights of candidates are dim² numbers: 16 MB at this size.
_LARGEST_SHARED = 2048
# Below one half an answer is more often wrong than right.
_ABSTAIN_BELOW = 0.5
# Share of past successes that refusing at this score may have lost.
_MOST_LOST = 0.0025
# Before that, queries with a low score are what the policy learns from: refusing them cost up to 4 points of success.
_OUTCOMES_PER_OPTION = 20
# Share of the refused queries that are answered; without them nothing would ever be learned about such queries.
_ANSWER_ANYWAY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """Settings of an agent."""

    chooser: str = "replay"
    """replay, ppo, residual, linucb, lints, egreedy or nearest."""
    low: float = 0.0
    high: float = 1.0
    """Range of rewards; they are scaled to 0 … 1 for learning."""
    abstain_below: float | None = None
    """Answer "none of these" if the expected success rate is below this; 0 never does.

    None: below 0.5, as soon as there are 20 outcomes per option, if fewer than 1 in 400 of the past successes had so low a
    score: a policy that is still learning must try. One such query in ten is answered nevertheless, so that wrong refusals
    are noticed."""
    remembered: int = 10_000
    """Capacity for open decisions, and for finished ones that `explain` searches."""
    extra: int = 0
    """Number of extra features, appended to the query's vector for learning."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.chooser not in CHOOSERS:
            raise ConfigError(f"chooser is {self.chooser!r}; it must be one of {', '.join(CHOOSERS)}")
        if not self.low < self.high:
            raise ConfigError(f"low is {self.low} and high is {self.high}; the first must be the smaller one")


class Agent:
    """Decides without waiting for learning: `learn` works on copies and replaces the policy in one assignment.

    Args:
        encoder: Turns texts into vectors. A policy belongs to one encoder.
        config: Chooser, reward range, abstention and seed.
        chooser: The policy, instead of the one that `config` names.
        reserved: Names that have the indices 0, 1, … whether or not they are ever added.
        store: Where finished decisions wait to be learned from; in memory by default.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        config: AgentConfig | None = None,
        chooser: Chooser | None = None,
        reserved: Sequence[str] = (),
        store: DecisionStore | None = None,
    ) -> None:
        self.config = config or AgentConfig()
        self.encoder = Cached(encoder)
        self.options = Options(self.encoder, reserved)
        self.chooser = chooser or make_chooser(self.config.chooser, encoder, self.config.extra)
        # `is None`: a store that has a length is falsy while it is empty.
        self.store = MemoryStore() if store is None else store
        self.calibration, self.agreement = Calibration(), AgreementRate()
        self.candidates, self.cosines = CandidateSet(encoder.dim), CosineScale()
        self.draws = 0
        """Random numbers that decisions have taken."""
        self.cursor = 0
        """Position in the store up to which everything is learned."""
        self._generator = np.random.default_rng(seed_for("decide", self.config.seed))
        self._open: OrderedDict[str, DecisionRecord] = OrderedDict()
        self._past = PastDecisions(self.config.remembered)
        self._lock, self._learning = threading.Lock(), threading.Lock()

    @property
    def version(self) -> int:
        return self.chooser.version

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for the header of a telemetry file: those of the chooser, and the encoder."""
        ppo, known = as_ppo(self.chooser), dict[str, Any]()
        if ppo is not None:
            known = ppo.ppo.to_json() | ppo.config.to_json()
        elif isinstance(self.chooser, ReplayChooser):
            known = self.chooser.config.to_json()
        return {**known, "encoder": self.encoder.name}

    @property
    def waiting(self) -> int:
        """Number of decisions without an outcome."""
        return len(self._open)

    @property
    def unlearned(self) -> int:
        """Number of outcomes that `learn` has not seen."""
        return len(self.store.finished(self.cursor))

    def choose(
        self,
        text: str,
        *,
        allowed: Collection[str] | None = None,
        candidates: Candidates | None = None,
        id: str | None = None,
        vector: np.ndarray | None = None,
        extra: np.ndarray | None = None,
        greedy: bool = False,
        chooser: Chooser | None = None,
        peek: bool = False,
    ) -> DecisionRecord:
        """Choose one of the allowed options, as `decide` does, but wait for no outcome.

        Args:
            text: The query; kept with the record, and encoded if there is no `vector`.
            allowed: Names of the options to choose among; default: all.
            candidates: The options of this decision, instead of those in `options`.
            id: Id of the record; generated by default.
            vector: The query as a vector, [dim].
            extra: Further features, [config.extra].
            greedy: Choose the best option; nothing is drawn.
            chooser: Decides instead of the agent's policy, for example another version of it.
            peek: Change nothing, not even the random numbers of later decisions.
        """
        query = self.encoder.encode([text])[0] if vector is None else vector
        if candidates is None:
            names = self.options.allowed(allowed)
            scene = self.options.scene(query, names, extra)
        else:
            names = list(candidates.ids)
            option, cosine = self.candidates.scene(query, candidates, register=not peek)
            x = query if extra is None else np.concatenate([query, extra]).astype(np.float32)
            scene = Scene(x=x, option=option, cosine=cosine)
        scene = self._scaled(scene, query, candidates, observe=not peek)
        generator = np.random.default_rng(0) if peek else self._generator
        choice = (chooser or self.chooser).choose(scene, generator, greedy=greedy)
        self.draws += not (peek or greedy)
        confidence = self.calibration(choice.score)
        below = self.config.abstain_below
        abstain = confidence < (_ABSTAIN_BELOW if below is None else below)
        if abstain and below is None:
            abstain = self._may_abstain(choice)
            if abstain and not greedy and not peek:
                self.draws += 1
                if generator.random() < _ANSWER_ANYWAY:
                    abstain, choice = False, replace(choice, probability=choice.probability * _ANSWER_ANYWAY)
        record = DecisionRecord(
            id=id or uuid.uuid4().hex,
            name=None if abstain else names[choice.at],
            names=names,
            scene=scene,
            choice=choice,
            confidence=confidence,
            encoder=self.encoder.name,
            text=text,
        )
        if candidates is not None and self._shares:
            expected = choice.worth @ candidates.vectors
            record = replace(record, contrast=candidates.vectors[choice.at] - expected)
        return record

    @property
    def _shares(self) -> bool:
        return self.candidates.changing and self.encoder.dim <= _LARGEST_SHARED

    def _scaled(self, scene: Scene, query: np.ndarray, candidates: Candidates | None, *, observe: bool) -> Scene:
        """Return the scene with cosines in the scale of the likeness, and the shared part of candidates in them."""
        like, cosine = self.encoder.likeness, scene.cosine
        if like.relative:
            # Vectors of a caller may have any length; those of encoders have length 1.
            length = float(np.linalg.norm(query))
            cosine = self.cosines(cosine / np.float32(length) if length > 0.0 else cosine, observe=observe)
        if candidates is not None and self._shares:
            cosine = cosine + self.candidates.shared(query, candidates) / np.float32(like.sharpness)
        return scene if cosine is scene.cosine else replace(scene, cosine=cosine)

    def _may_abstain(self, choice: OptionChoice) -> bool:
        """Return whether enough is known to refuse, and whether it would have lost few of the past successes."""
        options = len(self.options) or len(choice.probabilities)
        enough = self.calibration.outcomes >= _OUTCOMES_PER_OPTION * options
        return enough and self.calibration.lost(choice.score) < _MOST_LOST

    def decide(self, text: str, *, id: str | None = None, **options: Any) -> DecisionRecord:
        """Choose one of the allowed options; the outcome is expected under the record's id.

        The same id again returns the same record, and draws nothing. `options` are those of `choose`.
        """
        if id is not None and (known := self._open.get(id)) is not None:
            return known
        record = self.choose(text, id=id, **options)
        # "None of these": nothing is done that an outcome could be reported for.
        if record.name is not None:
            self._wait_for(record)
        return record

    def imitate(self, text: str, done: str, **options: Any) -> DecisionRecord:
        """Record what the application itself has `done`: the outcome is of that, and learning sees it as certain.

        `agreement` counts how often the agent would have done the same.
        """
        policy_choice = self.choose(text, **options)
        if done not in policy_choice.names:
            raise DecisionError(
                f"the application chose {done!r}, which is not among the allowed: {', '.join(policy_choice.names)}"
            )
        self.agreement.add(policy_choice.name or "", done)
        record = policy_choice.imitated(policy_choice.names.index(done))
        self._wait_for(record)
        return record

    def outcome(self, id: str, reward: float) -> DecisionRecord:
        """Join the reward of an open decision; `learn` will see it."""
        low, high = self.config.low, self.config.high
        if not low <= reward <= high:
            raise DecisionError(f"the reward of decision {id!r} is {reward}; it must lie between {low:g} and {high:g}")
        with self._lock:
            if id not in self._open:
                raise UnknownDecision(
                    f"no open decision {id!r}: it was never made here, or it already has its outcome "
                    f"({len(self._open)} are open)"
                )
            # Under the lock: of two concurrent reports the second is refused, not learned from as well.
            record = self._open.pop(id)
        unit = (reward - low) / (high - low)
        # Stored before it is counted: the calibration must not contain an outcome that a crash can lose.
        self.store.add(record, unit)
        self.observe(record, unit)
        return record

    def observe(self, record: DecisionRecord, reward: float) -> None:
        """Take an outcome (0 … 1) that is in the store into the calibration and into what `explain` remembers."""
        choice = record.choice
        with self._lock:
            self._open.pop(record.id, None)
            if len(choice.worth):
                self.calibration.add(choice.score, reward, choice.weight)
        self._past.add(record, self.encoder.dim, reward)

    def remember(self, record: DecisionRecord, reward: float) -> None:
        """Take an outcome that is already learned into what `explain` searches."""
        self._past.add(record, self.encoder.dim, reward)

    def skip_draws(self, count: int) -> None:
        """Continue after decisions that took `count` random numbers."""
        self._generator.random(count)
        self.draws += count

    def learn(self, force: bool = False) -> UpdateReport | None:
        """Learn from every outcome since the last call; the report of the PPO update, if one was due.

        With `force` a PPO update is made even if few outcomes are new.
        """
        with self._learning:
            finished = self.store.finished(self.cursor)
            report = None
            if finished:
                # Vectors of another encoder have another meaning, also where their size is the same.
                usable = [each for each in finished if each.record.encoder == self.encoder.name]
                report = (
                    self.chooser.learn([[each.record.experience(each.reward)] for each in usable]) if usable else None
                )
                for each in usable:
                    self._learn_shared(each.record, each.reward)
                # Only now: if learning raises, the next call gets the same outcomes again.
                self.cursor = finished[-1].position
            if report is None and force and (ppo := as_ppo(self.chooser)) is not None:
                report = ppo.update()
            return report

    def _learn_shared(self, record: DecisionRecord, reward: float) -> None:
        if not len(record.contrast):
            return
        # The gradient of the logits in replay.py, with the same bounds.
        taken = float(record.choice.worth[record.choice.at])
        residual = max((reward - taken) / max(1.0 - taken, 0.02), -1.0)
        self.candidates.learn(record.scene, record.contrast, residual)

    def explain(self, record: DecisionRecord, nearest: int = 3) -> Explanation:
        """Return prior, learned part, exploration and the most similar past outcomes."""
        return explain(record, self._past.nearest(record.scene.x[: self.encoder.dim], nearest))

    def save(self, versions: Versions, number: int | None = None, **parts: dict[str, Any]) -> int:
        """Save the policy as a version, and further `parts` with it; return its number. The first one is live immediately."""
        number = max([0, *versions.numbers]) + 1 if number is None else number
        state = self.state()
        weights = state["chooser"].pop("weights", {})
        versions.save(number, {"weights": weights, **state, **parts})
        return number

    def load(self, versions: Versions, number: int | None = None) -> dict[str, Any]:
        """Take over a saved version, by default the live one; return its parts."""
        parts = versions.load(number).parts
        self.set_state({"agent": parts["agent"], "chooser": _chooser_state(parts)})
        return parts

    def promote(self, versions: Versions, number: int, gate: GateConfig | None = None) -> Judgement:
        """Make a version live if, on this agent's log, it is not worse than the live one."""
        core = self.chooser if isinstance(self.chooser, ReplayChooser) else as_ppo(self.chooser)
        if core is None:
            raise ConfigError("only the choosers replay and ppo log probabilities that a version could be judged by")
        targets = dict[str, Any]()
        for name, which in (("live", None), ("new", number)):
            # Separate choosers: loading a version into `core` would change the policy that answers.
            other = type(core)(core.dim, core.likeness)
            other.set_state(_chooser_state(versions.load(which).parts))
            targets[name] = other.probabilities
        judgement = compare(core, core.log.latest(len(core.log)), targets, gate).judgement
        versions.record(judgement, number)
        if judgement.verdict == "promote":
            versions.promote(number, judgement.reason)
        return judgement

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
                "candidates": self.candidates.state(),
                "cosines": self.cosines.state(),
                "generator": self._generator.bit_generator.state,
            },
        }

    @restoring("agent")
    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved state; one of another encoder or another kind of chooser is refused."""
        agent = state["agent"]
        for what, saved, current in (
            ("encoder", agent["encoder"], self.encoder.name),
            ("chooser", agent["kind"], self.config.chooser),
            ("extra features", agent["extra"], self.config.extra),
        ):
            if saved != current:
                raise CheckpointIncompatible(f"this policy was made with {what} {saved!r}, this agent has {current!r}")
        # `_learning` too: a running update would write into the state that is replaced here.
        with self._learning, self._lock:
            self.options.set_state(agent["options"])
            self.chooser.set_state(state["chooser"])
            self.calibration.set_state(agent["calibration"])
            if "candidates" in agent:  # not in policies of earlier versions
                self.candidates.set_state(agent["candidates"])
                self.cosines.set_state(agent["cosines"])
            self._generator.bit_generator.state = agent["generator"]

    def _wait_for(self, record: DecisionRecord) -> None:
        with self._lock:
            self._open[record.id] = record
            while len(self._open) > self.config.remembered:
                self._open.popitem(last=False)


def _chooser_state(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the chooser's state, with the weights that the checkpoint keeps as a separate part."""
    return {**parts["chooser"], "weights": parts["weights"]} if parts["weights"] else parts["chooser"]
