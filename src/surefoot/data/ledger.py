"""Decisions that wait for their outcomes, and the finished ones that wait to be learned from."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from surefoot.data.experience import Decision, Outcome
from surefoot.data.rollout import Rollout
from surefoot.errors import DecisionError, NonFiniteValue, ShapeError, UnknownDecision

Step = tuple[Decision, Outcome]


class Ledger:
    """Joins outcomes to decisions by id. An episode is ready once its last decision ended it and none is open.

    `capacity` bounds the open decisions: past it the oldest are dropped and counted in `expired`.
    """

    def __init__(self, capacity: int = 100_000) -> None:
        self.capacity = capacity
        self.expired = 0
        self._open: dict[str, Decision] = {}
        self._episodes: dict[str, list[Decision]] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._ready: list[list[Step]] = []

    def __len__(self) -> int:
        """Decisions that are finished and wait to be learned from."""
        return sum(map(len, self._ready))

    @property
    def waiting(self) -> int:
        """Decisions without an outcome."""
        return len(self._open)

    def open(self, decision: Decision) -> None:
        """A decision was made; its outcome will come."""
        if decision.id in self._open or decision.id in self._outcomes:
            raise DecisionError(f"decision {decision.id!r} is already there; every decision needs an id of its own")
        self._open[decision.id] = decision
        self._episodes.setdefault(decision.episode, []).append(decision)
        while len(self._open) > self.capacity:
            for dropped in self._episodes.pop(next(iter(self._open.values())).episode):
                self._open.pop(dropped.id, None)
                self._outcomes.pop(dropped.id, None)
                self.expired += 1

    def find(self, decision: str) -> Decision:
        """The open decision of that id."""
        if decision not in self._open:
            raise UnknownDecision(
                f"no open decision {decision!r}: it was never made here, or it already has its outcome "
                f"({len(self._open)} are open)"
            )
        return self._open[decision]

    def close(self, outcome: Outcome) -> Decision:
        """The outcome of an open decision is there."""
        decision = self.find(outcome.decision)
        if not math.isfinite(outcome.reward):
            raise NonFiniteValue(f"the reward of decision {outcome.decision!r} is {outcome.reward}; it must be finite")
        del self._open[decision.id]
        self._outcomes[decision.id] = outcome
        steps = self._episodes[decision.episode]
        last = self._outcomes.get(steps[-1].id)
        if last is not None and (last.terminated or last.truncated) and all(d.id in self._outcomes for d in steps):
            del self._episodes[decision.episode]
            self._ready.append([(d, self._outcomes.pop(d.id)) for d in steps])
        return decision

    def drain(self, most: int | None = None) -> Rollout | None:
        """Finished episodes as one rollout, an episode a stream, and out of the ledger; None if there are none."""
        taken, steps = 0, 0
        while taken < len(self._ready) and (most is None or steps < most):
            steps += len(self._ready[taken])
            taken += 1
        episodes, self._ready = self._ready[:taken], self._ready[taken:]
        return rollout_of(episodes) if episodes else None

    @property
    def ready(self) -> Sequence[Sequence[Step]]:
        """Finished episodes, oldest first."""
        return self._ready

    def discard(self, episodes: Collection[int]) -> None:
        """Let go of finished episodes, by their places in `ready`: nothing is learned from them."""
        self._ready = [episode for place, episode in enumerate(self._ready) if place not in episodes]


def rollout_of(episodes: Sequence[Sequence[Step]]) -> Rollout:
    """[T, N]: an episode a stream, shorter ones padded and not valid.

    Observations of unequal length (rows of candidates) are padded with zeros at their end, masks with False.
    """
    longest, streams = max(map(len, episodes)), len(episodes)
    places = [(t, n, d, o) for n, episode in enumerate(episodes) for t, (d, o) in enumerate(episode)]
    first = places[0][2]

    def column(values: Iterator[float | bool | int], dtype: type) -> np.ndarray:
        made = np.zeros((longest, streams), dtype)
        for (t, n, _, _), value in zip(places, values, strict=True):
            made[t, n] = value
        return made

    def dense(name: str, parts: list[np.ndarray]) -> np.ndarray:
        shape = np.max([part.shape for part in parts], axis=0) if parts[0].ndim else ()
        made = np.zeros((longest, streams, *shape), parts[0].dtype)
        for (t, n, d, _), part in zip(places, parts, strict=True):
            if part.ndim != parts[0].ndim:
                raise ShapeError(f"{name} of decision {d.id!r} is {list(part.shape)}, that of others {list(shape)}")
            made[(t, n, *(slice(size) for size in part.shape))] = part
        return made

    value = column((d.value for _, _, d, _ in places), np.float64)
    next_value = np.zeros_like(value)
    next_value[:-1] = value[1:]
    for t, n, _, outcome in places:
        if outcome.truncated:
            next_value[t, n] = outcome.bootstrap
    valid = column((True for _ in places), bool)
    masks = [d.action_mask for _, _, d, _ in places]
    masked = [mask for mask in masks if mask is not None]
    if masked and len(masked) < len(masks):
        raise ShapeError("some decisions have an action mask and some have none; give all of them one")
    each = [o.stats for _, _, _, o in places]
    names = sorted({name for stats in each for name in stats})
    return Rollout(
        obs={name: dense(f"obs[{name!r}]", [d.obs[name] for _, _, d, _ in places]) for name in first.obs},
        action=column((d.action for _, _, d, _ in places), np.int64),
        log_prob=column((d.log_prob for _, _, d, _ in places), np.float64),
        value=value,
        next_value=next_value,
        reward=column((o.reward for _, _, _, o in places), np.float64),
        terminated=column((o.terminated for _, _, _, o in places), bool),
        truncated=column((o.truncated and not o.terminated for _, _, _, o in places), bool),
        start=np.arange(longest)[:, None] == np.zeros(streams, np.int64),
        valid=valid,
        policy_version=column((d.policy_version for _, _, d, _ in places), np.int64),
        action_mask=dense("action_mask", masked) if masked else None,
        stats={name: float(np.mean([stats[name] for stats in each if name in stats])) for name in names},
    )
