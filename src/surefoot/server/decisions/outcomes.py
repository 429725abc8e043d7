"""Rewards of decisions, and the outcomes that a policy learns from."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from msgspec import UNSET

from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.core.store import Finished
from surefoot.server import schema
from surefoot.server.http.problems import Refused

# Outcomes over which the share of each client is counted.
ARRIVALS = 1000


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
    storing: asyncio.Future[None] | None = None
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
        self._counts: Counter[str] = Counter()
        self._learned: Counter[str] = Counter()

    def take(self, client: str, share: float) -> bool:
        """Count a reward of a client; return whether it is learned from."""
        self._counts[client] += 1
        # With fewer than 1 / share clients each has an even share; a single one has all.
        limit = max(share, 1.0 / len(self._counts))
        counted = self._learned[client] + 1 <= max(1.0, limit * (len(self._arrivals) + 1))
        self._arrivals.append((client, counted))
        self._learned[client] += counted
        if len(self._arrivals) > ARRIVALS:
            old, was_counted = self._arrivals.popleft()
            self._learned[old] -= was_counted
            self._counts[old] -= 1
            if not self._counts[old]:
                del self._counts[old], self._learned[old]
        return counted


def value_of(reward: schema.NewReward, bounds: tuple[float, float]) -> float:
    """Return the reward as one number within the policy's range."""
    if reward.value is UNSET and reward.parts is UNSET:
        raise Refused("invalid", "give value, or parts", pointer="/value")
    value = sum(reward.parts.values()) if reward.value is UNSET and reward.parts is not UNSET else reward.value
    number = float(value)  # pyright: ignore[reportArgumentType]
    if not bounds[0] <= number <= bounds[1]:
        raise Refused("invalid", f"{number:g} lies outside of {bounds[0]:g} … {bounds[1]:g}", pointer="/value")
    return number


def final_reward(rewards: Sequence[RewardRecord], config: schema.NewPolicy) -> float:
    """Return the reward of a decision: aggregated as the policy declares, or the default without any."""
    value = config.default_reward
    if rewards:
        value = sum(r.value for r in rewards) if config.aggregation == "sum" else rewards[-1].value
    # Each reward is within the range, but their sum may not be.
    return float(np.clip(value, *config.reward_range))


def ends(waiting: TrackedDecision, rewards: Sequence[RewardRecord]) -> bool:
    """Return whether a decision ends its episode; one that stands alone does, and one without a reward."""
    return not waiting.episode or not rewards or rewards[-1].terminated or rewards[-1].truncated


def outcomes_of(steps: Sequence[tuple[DecisionRecord, float]]) -> list[tuple[DecisionRecord, float]]:
    """Return steps last first, each with the mean of the rewards from it on, as `ReplayChooser.learn` takes an episode."""
    outcomes, later = list[tuple[DecisionRecord, float]](), 0.0
    for count, (record, reward) in enumerate(reversed(steps), 1):
        later += reward
        outcomes.append((record, later / count))
    return outcomes
