"""Open decisions that wait for outcomes, and finished episodes that wait for learning."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from surefoot.data.experience import Decision, Outcome
from surefoot.data.rollout import Rollout
from surefoot.errors import DecisionError, NonFiniteValue, ShapeError, UnknownDecision

Step = tuple[Decision, Outcome]


class Ledger:
    """Join outcomes to decisions by id. An episode is ready when its last decision ended it and none is open.

    `capacity` limits the open decisions: beyond it the oldest episodes are dropped and counted in `expired`.
    """

    def __init__(self, capacity: int = 100_000) -> None:
        self.capacity = capacity
        self.expired = 0
        self._open: dict[str, Decision] = {}
        self._episodes: dict[str, list[Decision]] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._ready: list[list[Step]] = []

    def __len__(self) -> int:
        """Return the number of finished decisions that wait for learning."""
        return sum(map(len, self._ready))

    @property
    def waiting(self) -> int:
        """The number of decisions without an outcome."""
        return len(self._open)

    def open(self, decision: Decision) -> None:
        """Add a decision whose outcome will follow."""
        if decision.id in self._open or decision.id in self._outcomes:
            raise DecisionError(f"decision {decision.id!r} already exists; every decision needs a unique id")
        self._open[decision.id] = decision
        self._episodes.setdefault(decision.episode, []).append(decision)
        while len(self._open) > self.capacity:
            for dropped in self._episodes.pop(next(iter(self._open.values())).episode):
                self._open.pop(dropped.id, None)
                self._outcomes.pop(dropped.id, None)
                self.expired += 1

    def find(self, decision: str) -> Decision:
        """Return the open decision of that id; raise `UnknownDecision` if there is none."""
        if decision not in self._open:
            raise UnknownDecision(
                f"no open decision {decision!r}: it was never opened, or it already has its outcome "
                f"({len(self._open)} are open)"
            )
        return self._open[decision]

    def close(self, outcome: Outcome) -> Decision:
        """Record the outcome of an open decision and return the decision."""
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
        """Remove finished episodes and return them as one rollout, one stream per episode; None if there are none."""
        count, steps = 0, 0
        while count < len(self._ready) and (most is None or steps < most):
            steps += len(self._ready[count])
            count += 1
        episodes, self._ready = self._ready[:count], self._ready[count:]
        return rollout_of(episodes) if episodes else None

    @property
    def ready(self) -> Sequence[Sequence[Step]]:
        """The finished episodes, oldest first."""
        return self._ready

    def discard(self, episodes: Collection[int]) -> None:
        """Remove finished episodes by their index in `ready`; nothing is learned from them."""
        self._ready = [episode for place, episode in enumerate(self._ready) if place not in episodes]


def rollout_of(episodes: Sequence[Sequence[Step]]) -> Rollout:
    """Return a rollout [T, N] with one stream per episode; shorter ones are padded with steps that are not valid.

    Observations of unequal length (rows of candidates) are padded with zeros at the end, masks with False.
    """
    longest, streams = max(map(len, episodes)), len(episodes)
    places = [(t, n, d, o) for n, episode in enumerate(episodes) for t, (d, o) in enumerate(episode)]
    first = places[0][2]

    def column(values: Iterator[float | bool | int], dtype: type) -> np.ndarray:
        array = np.zeros((longest, streams), dtype)
        for (t, n, _, _), value in zip(places, values, strict=True):
            array[t, n] = value
        return array

    def dense(name: str, parts: list[np.ndarray]) -> np.ndarray:
        shape = np.max([part.shape for part in parts], axis=0) if parts[0].ndim else ()
        array = np.zeros((longest, streams, *shape), parts[0].dtype)
        for (t, n, d, _), part in zip(places, parts, strict=True):
            if part.ndim != parts[0].ndim:
                raise ShapeError(f"{name} of decision {d.id!r} is {list(part.shape)}, the others are {list(shape)}")
            array[(t, n, *(slice(size) for size in part.shape))] = part
        return array

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
        raise ShapeError("some decisions have an action mask and some have none; pass a mask for all of them")
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
