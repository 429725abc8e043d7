"""One policy in memory: the agent that decides and learns, and its counters."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from surefoot.decide.core.agent import Agent, AgentConfig
from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.encoders.encoder import Likeness, unit_rows
from surefoot.decide.policy.replay import ReplayChooser, ReplayConfig
from surefoot.decide.promotion import Versions
from surefoot.server import schema
from surefoot.server.decisions.inputs import Inputs, encoder_of
from surefoot.server.decisions.outcomes import ClientShares, PendingOutcomes

# Rewards in the mean that a policy reports.
RECENT = 1000
# Past decisions that an explanation searches: 1.5 MB of 384 numbers.
PAST = 1000
# Weights up to which a policy learns in the event loop: a step then takes less than about a millisecond.
INLINE_WEIGHTS = 400_000
# Weights of all actions: 64 MB. Beyond it a step takes more than a tenth of a second.
MOST_WEIGHTS = 1 << 24


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
    clients: ClientShares = field(default_factory=ClientShares)
    job: schema.JobResponse | None = None
    """The update that runs."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is something to learn from."""

    @property
    def learner(self) -> ReplayChooser:
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
        self.agent.config = replace(self.agent.config, abstain_below=self.config.abstain_below)
        self.describe_options()

    def describe_options(self) -> None:
        """Give the agent's options the names and descriptions of the configuration."""
        config, options = self.config, self.agent.options
        described = dict(config.description_embeddings)
        # Removed first, so that they are in the order of their numbers, also those that were retired for a while.
        for name in options.names:
            options.remove(name)
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
    below = config.abstain_below
    settings = AgentConfig(low=low, high=high, extra=extra, seed=config.seed, remembered=PAST, abstain_below=below)
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
