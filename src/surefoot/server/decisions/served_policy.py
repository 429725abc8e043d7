"""One policy in memory: the agent that decides and learns, its decisions that wait, and their stored form."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET

from surefoot.decide.core.agent import Agent, AgentConfig
from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.core.store import Finished
from surefoot.decide.encoders.encoder import Likeness, unit_rows
from surefoot.decide.policy.experience_log import Log
from surefoot.decide.policy.replay import ReplayChooser, ReplayConfig
from surefoot.decide.promotion import Versions
from surefoot.errors import CheckpointIncompatible
from surefoot.server import schema
from surefoot.server.decisions.inputs import Inputs, encoder_of

# Rewards in the mean that a policy reports.
RECENT = 1000
# Past decisions that an explanation searches: 1.5 MB of 384 numbers.
PAST = 1000
# Outcomes over which the share of each client is counted.
ARRIVALS = 1000
# Weights up to which a policy learns in the event loop: a step then takes less than about a millisecond.
INLINE_WEIGHTS = 400_000
# Weights of all actions: 64 MB. Beyond it a step takes more than a tenth of a second.
MOST_WEIGHTS = 1 << 24


class RewardRecord(NamedTuple):
    """A reward as it was received."""

    value: float
    parts: dict[str, float]
    terminated: bool
    truncated: bool
    id: str = ""
    client: str = ""
    """Short hash of the client that sent it."""
    order: int = 0
    """Position of its decision among the outcomes that the policy learns from, if it closes it; 0: none."""

    def same(self, other: RewardRecord) -> bool:
        """Return whether the same reward came again, from any client."""
        return self[:5] == other[:5]


@dataclass(slots=True, kw_only=True)
class TrackedDecision:
    """A decision and its rewards so far."""

    policy: str
    """Key of its policy."""
    asked: str
    """Hash of the request: distinguishes a retry from another request with the same id."""
    waiters: list[Callable[[Exception | None], None]] | None = None
    """Called when the decision is on disk; a retry waits for it too. None: it is on disk."""
    telling: asyncio.Future[None] | None = None
    """Done when the last reward is on disk."""
    answer: schema.DecisionResponse | None = None
    record: DecisionRecord | None = None
    """What it is learned from; None once it is closed."""
    episode: str = ""
    """Empty: the decision stands alone."""
    deferred: bool = False
    learns: bool = True
    rewards: list[RewardRecord] = field(default_factory=list[RewardRecord])
    final: float | None = None
    """The reward it was closed with."""

    @property
    def answered(self) -> schema.DecisionResponse:
        """The answer; the decision must have been made."""
        assert self.answer is not None
        return self.answer


class PendingOutcomes:
    """The agent's store: outcomes that are on disk and wait to be learned from. Steps of an episode share a position."""

    def __init__(self) -> None:
        self._finished: deque[Finished] = deque()
        self._lock = threading.Lock()
        self.batch: int | None = None
        """Outcomes after which one call of `finished` ends; None: all."""

    def __len__(self) -> int:
        return len(self._finished)

    def put(self, position: int, record: DecisionRecord, reward: float) -> None:
        """Add an outcome; positions never fall."""
        with self._lock:
            self._finished.append(Finished(position, record, reward))

    def add(self, record: DecisionRecord, reward: float) -> None:
        """Add an outcome after the last one."""
        self.put(self._finished[-1].position + 1 if self._finished else 1, record, reward)

    def finished(self, after: int) -> list[Finished]:
        with self._lock:
            while self._finished and self._finished[0].position <= after:
                self._finished.popleft()
            taken = list[Finished]()
            for each in self._finished:
                # Never between two steps of an episode: the next call would skip the rest of it.
                if self.batch is not None and len(taken) >= self.batch and each.position != taken[-1].position:
                    break
                taken.append(each)
            return taken


class ClientShares:
    """Which rewards are learned from, so that no client makes up more than its share of the last ones."""

    def __init__(self) -> None:
        self._arrivals: deque[tuple[str, bool]] = deque()
        self._seen: Counter[str] = Counter()
        self._learned: Counter[str] = Counter()

    def take(self, client: str, share: float) -> bool:
        """Count a reward of a client; return whether it is learned from."""
        self._seen[client] += 1
        # With fewer than 1 / share clients each has an even share; a single one has all.
        limit = max(share, 1.0 / len(self._seen))
        counts = self._learned[client] + 1 <= max(1.0, limit * (len(self._arrivals) + 1))
        self._arrivals.append((client, counts))
        self._learned[client] += counts
        if len(self._arrivals) > ARRIVALS:
            old, counted = self._arrivals.popleft()
            self._learned[old] -= counted
            self._seen[old] -= 1
            if not self._seen[old]:
                del self._seen[old], self._learned[old]
        return counts


@dataclass(slots=True, kw_only=True)
class ServedPolicy:
    """One policy in memory."""

    key: str
    """Its first name: the name of its folder, and its label in the store."""
    config: schema.NewPolicy
    frozen: bool = False
    retired: list[str] = field(default_factory=list[str])
    versions: Versions
    agent: Agent
    inputs: Inputs
    pending: PendingOutcomes
    version: int = 0
    """The version that decides."""
    newest: int = 0
    pinned: ReplayChooser | None = None
    """The chooser of `version` if that is not the newest; otherwise the agent's decides, and learns on."""
    canary: tuple[int, float, ReplayChooser] | None = None
    recent: deque[float] = field(default_factory=lambda: deque[float](maxlen=RECENT))
    due: deque[tuple[float, str]] = field(default_factory=deque[tuple[float, str]])
    """(expiry time, id) of decisions that wait for a reward, in this order."""
    episodes: dict[str, list[tuple[DecisionRecord, float]]] = field(
        default_factory=dict[str, list[tuple[DecisionRecord, float]]]
    )
    """Steps of episodes that are not over."""
    decision_count: int = 0
    rewarded: int = 0
    waiting: int = 0
    """Decisions without an outcome."""
    shares: Counter[str] = field(default_factory=Counter[str])
    """{name: how often it was chosen} since the start of the service."""
    order: int = 0
    """Position of the last outcome to be learned from."""
    observed: int = 0
    """Position up to which outcomes are in the calibration."""
    since: int = 0
    """Outcomes learned since the newest version."""
    left_out: int = 0
    """Outcomes since the newest version that were not learned from, because of their client's share."""
    draws: int = 0
    """Random numbers that decisions have taken."""
    clients: ClientShares = field(default_factory=ClientShares)
    job: schema.JobResponse | None = None
    """The update that runs."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is something to learn from."""

    @property
    def learner(self) -> ReplayChooser:
        """The policy that learns."""
        assert isinstance(self.agent.chooser, ReplayChooser)
        return self.agent.chooser

    @property
    def inline(self) -> bool:
        """True if a step is short enough for the event loop."""
        dim = self.config.embedding_size
        shared = dim * dim if self.agent.candidates.changing else 0
        options = max(len(self.config.actions), self.agent.candidates.highest)
        return options * (dim + self.config.feature_size + 1) + shared <= INLINE_WEIGHTS

    def scales(self) -> list[float] | None:
        """Return what was observed of cosines and embeddings, until both are settled; None afterwards."""
        cosines, inputs = self.agent.cosines, self.inputs
        if inputs.settled and (cosines.settled or not self.agent.encoder.likeness.relative):
            return None
        return [cosines.count, cosines.mean, cosines.variance, inputs.count, inputs.length]

    def set_scales(self, scales: list[float]) -> None:
        """Continue with what `scales` returned."""
        count, mean, variance, inputs, length = scales
        self.agent.cosines.set_state({"count": count, "mean": mean, "variance": variance})
        self.inputs.count, self.inputs.length = int(inputs), length

    def reconfigure(self) -> None:
        """Follow a change of the configuration."""
        self.inputs.config = self.config
        if self.config.abstain_below is not UNSET:
            self.agent.config = replace(self.agent.config, abstain_below=self.config.abstain_below)
        self.describe_options()

    def describe_options(self) -> None:
        """Give the agent's options the names and descriptions of the configuration."""
        config, options = self.config, self.agent.options
        described = dict(config.description_embeddings)
        for name in config.actions:
            if name in config.descriptions:
                options.add(name, config.descriptions[name])
            elif name in described:
                options.add_vector(name, unit_rows(np.array([described[name]], np.float32))[0])
            else:
                options.add_vector(name)
        for name in self.retired:
            options.remove(name)
        likeness = likeness_of(config, self.agent.encoder.inner.likeness)
        self.agent.encoder.likeness = self.learner.likeness = likeness


def likeness_of(config: schema.NewPolicy, likeness: Likeness) -> Likeness:
    """Return how a policy reads cosines; without descriptions every choice is equally likely at first."""
    if config.choose == "actions" and not config.descriptions and not config.description_embeddings:
        return Likeness(sharpness=1e-3, slope=1.0, middle=0.0)
    if config.encoder == "none":
        return likeness  # GivenVectors has the factor `prior` in it
    # 1e-3 and not 0: the shared part of candidates is divided by it.
    return Likeness(max(config.prior * likeness.sharpness, 1e-3), likeness.slope, likeness.middle, likeness.relative)


def learner_config(config: schema.NewPolicy) -> ReplayConfig:
    """Return the settings of the learner. Raise `ConfigError` for unknown names and values out of range."""
    return ReplayConfig.make(**config.training.settings)


def make_policy(key: str, config: schema.NewPolicy, versions: Versions, **state: Any) -> ServedPolicy:
    """Return a policy that has learned nothing."""
    encoder, pending = encoder_of(config), PendingOutcomes()
    low, high = config.reward_range
    extra = config.feature_size
    options: dict[str, Any] = {} if config.abstain_below is UNSET else {"abstain_below": config.abstain_below}
    settings = AgentConfig(low=low, high=high, extra=extra, seed=config.seed, remembered=PAST, **options)
    chooser = ReplayChooser(config.embedding_size + extra, encoder.likeness, config=learner_config(config))
    agent = Agent(encoder, config=settings, chooser=chooser, store=pending)
    serving = ServedPolicy(
        key=key,
        config=config,
        versions=versions,
        agent=agent,
        inputs=Inputs(config, agent.encoder),
        pending=pending,
        **state,
    )
    serving.describe_options()
    return serving


def snapshot(serving: ServedPolicy) -> dict[str, Any]:
    """Return the parts of a version: weights and counters, without the log, which is in the store."""
    state = serving.agent.state()
    chooser = state["chooser"]
    written = chooser.pop("log")["written"]
    return {
        "weights": {"table": chooser.pop("table")},
        **state,
        "service": {
            "cursor": serving.agent.cursor,
            "observed": serving.observed,
            "draws": serving.draws,
            "written": written,
            "inputs": serving.inputs.state(),
        },
    }


def restore(serving: ServedPolicy, parts: dict[str, Any], log: Log) -> None:
    """Continue from the parts of a version, with the outcomes it has learned from."""
    require_readable(parts)
    service, logged = parts["service"], log.state()
    chooser = {**parts["chooser"], "table": parts["weights"]["table"], "log": logged}
    written = int(service["written"])
    if len(log) == min(written, log.capacity):
        # In the same places as before: replay draws places, and must draw the same outcomes.
        turn = written % log.capacity if written > log.capacity else 0
        logged["columns"] = {name: np.roll(column, turn, axis=0) for name, column in logged["columns"].items()}
        logged["written"] = written
    else:  # outcomes were deleted from the store
        chooser["usable"] = np.ones(max(64, len(log)), bool)
    serving.agent.set_state({"agent": parts["agent"], "chooser": chooser})
    serving.describe_options()
    serving.agent.cursor, serving.observed = int(service["cursor"]), int(service["observed"])
    serving.order, serving.draws = serving.agent.cursor, int(service["draws"])
    serving.inputs.set_state(service["inputs"])


def version_chooser(serving: ServedPolicy, number: int) -> ReplayChooser:
    """Return the chooser of a saved version; it has no log and does not learn."""
    parts: dict[str, Any] = serving.versions.load(number).parts
    require_readable(parts)
    learner = serving.learner
    chooser = ReplayChooser(learner.dim, learner.likeness, config=learner.config)
    table = {"table": parts["weights"]["table"], "log": Log(learner.dim, learner.config.log).state()}
    chooser.set_state({**parts["chooser"], **table})
    return chooser


def require_readable(parts: dict[str, Any]) -> None:
    """Raise if a version is not of this learner."""
    if "service" not in parts:
        raise CheckpointIncompatible("it was made by an earlier version of surefoot, with another learner")
