"""Why an option was chosen: prior from descriptions, learned part, exploration, similar past decisions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from surefoot.decide.core.record import DecisionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A past decision similar to this one, and its reward."""

    text: str
    name: str
    reward: float
    similarity: float
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an option was chosen, candidate by candidate."""

    chosen: str | None
    confidence: float
    exploration: float
    """Share of decisions like this one in which another candidate than the most probable one is chosen."""
    explored: bool
    """True if this decision was one of them."""
    candidates: list[dict[str, Any]]
    """One row per candidate, best first: name, prior, learned part, their sum, probability."""
    nearest: list[Neighbour] = field(default_factory=list[Neighbour])

    def __str__(self) -> str:
        lines = [f"{self.chosen or 'none of these'} (expected success {self.confidence:.0%})"]
        lines += [
            f"  {c['name']:<16} description {c['prior']:+.3f}  outcomes {c['learned']:+.3f}  → {c['probability']:.1%}"
            for c in self.candidates[:5]
        ]
        lines.append(
            f"  explores (chooses another than the most probable option) in {self.exploration:.1%} of such cases"
        )
        lines += [
            f"  similarity {n.similarity:.2f}: “{n.text[:50]}” → {n.name}, reward {n.reward:.2f}" for n in self.nearest
        ]
        return "\n".join(lines)


def explain(record: DecisionRecord, nearest: list[Neighbour]) -> Explanation:
    """Return prior, learned part and exploration of a decision."""
    choice = record.choice
    empty = np.zeros(len(record.names))
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
        for k, name in enumerate(record.names)
    ]
    # Thompson sampling knows no probabilities: they are NaN, and the choice counts as its favourite.
    favourite = int(np.nanargmax(choice.probabilities)) if np.isfinite(choice.probabilities).any() else choice.at
    return Explanation(
        chosen=record.name,
        confidence=record.confidence,
        exploration=1.0 - float(np.nanmax(choice.probabilities, initial=0.0)),
        explored=choice.at != favourite,
        candidates=[rows[k] for k in np.argsort(-(prior + learned), kind="stable")],
        nearest=nearest,
    )


class PastDecisions:
    """The last finished decisions, for `nearest`."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._past: OrderedDict[str, tuple[np.ndarray, Neighbour]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, record: DecisionRecord, dim: int, reward: float) -> None:
        """Store a finished decision; the first `dim` numbers of its input are the text's vector."""
        with self._lock:
            past = Neighbour(text=record.text, name=record.name or "", reward=reward, similarity=1.0, id=record.id)
            self._past[record.id] = record.scene.x[:dim], past
            while len(self._past) > self.capacity:
                self._past.popitem(last=False)

    def nearest(self, vector: np.ndarray, count: int) -> list[Neighbour]:
        """Return the `count` most similar ones, most similar first."""
        with self._lock:
            # Copied under the lock, so that new outcomes do not wait for the product below.
            past = list(self._past.values())
        if not past or count == 0:
            return []
        # Encoders return vectors of length 1, so the product is the cosine.
        similarity = np.stack([each for each, _ in past]) @ vector
        return [replace(past[i][1], similarity=float(similarity[i])) for i in np.argsort(-similarity)[:count]]
