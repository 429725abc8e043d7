"""What happened in a tick, by kind: who, with whom, where, how much. For stories, films and counters."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened in one town; -1 where nobody or nothing belongs."""

    kind: str
    town: int
    actor: int
    other: int
    object: int
    value: float


Part = tuple[str, np.ndarray, np.ndarray | int, np.ndarray | int, np.ndarray | int, np.ndarray | float]


@dataclass(slots=True)
class Happenings:
    """Everything of a tick, kept as it came until somebody asks."""

    parts: list[Part] = field(default_factory=list[Part])

    def add(
        self,
        kind: str,
        town: np.ndarray,
        actor: np.ndarray | int = -1,
        other: np.ndarray | int = -1,
        thing: np.ndarray | int = -1,
        value: np.ndarray | float = 0.0,
    ) -> None:
        """`len(town)` of one kind."""
        if len(town):
            self.parts.append((kind, town, actor, other, thing, value))

    def of(self, town: int) -> list[Happening]:
        """What happened in one town."""
        found: list[Happening] = []
        for kind, towns, *rest in self.parts:
            actor, other, thing, value = (np.broadcast_to(np.asarray(x), (len(towns),)) for x in rest)
            found += [
                Happening(kind, town, int(actor[i]), int(other[i]), int(thing[i]), float(value[i]))
                for i in np.flatnonzero(towns == town)
            ]
        return found
