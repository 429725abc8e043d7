"""Events of a tick: kind, agents, object and value. For texts, pictures and rewards."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class Happening:
    """One event in one town; -1 for no agent or no object."""

    kind: str
    town: int
    actor: int
    other: int
    object: int
    value: float


KINDS = (
    "use_done", "shared_meal", "queue_conflict", "handover", "chat_success", "chat_failure", "shift_late_start",
    "helped_when_late", "shift_absent", "shift_departed_early", "took_my_shift", "faint", "eviction",
)  # fmt: skip
"""Kinds of events that the kernel numbers, in its order (town.h)."""
EVENT = np.dtype(
    [*((name, np.int32) for name in ("kind", "town", "actor", "other", "object", "unused")), ("value", np.float64)]
)
"""An event of the kernel (`sf_town_event`)."""
Part = tuple[str, np.ndarray, np.ndarray | int, np.ndarray | int, np.ndarray | int, np.ndarray | float]


@dataclass(slots=True)
class Happenings:
    """All events of a tick, as arrays per kind; `of` converts those of one town."""

    parts: list[Part] = field(default_factory=list[Part])
    table: np.ndarray | None = None
    """Events that the kernel reported after those of `parts`, [n] EVENT."""

    def add(
        self,
        kind: str,
        town: np.ndarray,
        actor: np.ndarray | int = -1,
        other: np.ndarray | int = -1,
        thing: np.ndarray | int = -1,
        value: np.ndarray | float = 0.0,
    ) -> None:
        """Add `len(town)` events of one kind."""
        if len(town):
            self.parts.append((kind, town, actor, other, thing, value))

    def of(self, town: int) -> list[Happening]:
        events: list[Happening] = []
        for kind, towns, *columns in self.parts:
            actor, other, thing, value = (np.broadcast_to(np.asarray(x), (len(towns),)) for x in columns)
            events += [
                Happening(kind, town, int(actor[i]), int(other[i]), int(thing[i]), float(value[i]))
                for i in np.flatnonzero(towns == town)
            ]
        for kind, _, actor, other, thing, _, value in (
            () if self.table is None else self.table[self.table["town"] == town]
        ):
            events.append(Happening(KINDS[kind], town, int(actor), int(other), int(thing), float(value)))
        return events
