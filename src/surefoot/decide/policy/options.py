"""The available options: names with stable indices, and their descriptions as vectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from surefoot.decide.encoders.encoder import Encoder
from surefoot.decide.policy.outcome_model import Scene, times
from surefoot.errors import ConfigError, UnknownOption


class Options:
    """Names, descriptions and stable indices. A removed option keeps its index and gets it back when it is added again."""

    def __init__(self, encoder: Encoder, first: Iterable[str] = ()) -> None:
        """`first`: names that have the indices 0, 1, … reserved, whether or not they are ever added."""
        self.encoder = encoder
        self._index: dict[str, int] = {name: i for i, name in enumerate(first)}
        self._described: dict[str, str] = {}
        self._present: dict[str, None] = {}
        self._table = np.zeros((max(16, len(self._index)), encoder.dim), np.float32)
        self._scenes: dict[tuple[str, ...], np.ndarray] = {}

    def __len__(self) -> int:
        return len(self._present)

    def __contains__(self, name: object) -> bool:
        return name in self._present

    @property
    def names(self) -> list[str]:
        """Options that can be chosen now."""
        return list(self._present)

    @property
    def highest(self) -> int:
        """One more than the highest index in use."""
        return len(self._index)

    @property
    def vectors(self) -> np.ndarray:
        """[options, d]: the descriptions' vectors by index, of removed options too."""
        return self._table[: len(self._index)]

    def add(self, name: str, description: str) -> int:
        """Add an option, or change the description of a known one; return its index."""
        if not name or not description.strip():
            raise ConfigError(f"option {name!r} has the description {description!r}; neither may be empty")
        vector = None
        if self._described.get(name) != description:
            vector = self.encoder.encode([f"{name.replace('_', ' ')}: {description}"])[0]
        index = self.add_vector(name, vector)
        self._described[name] = description
        return index

    def add_vector(self, name: str, vector: np.ndarray | None = None) -> int:
        """Add an option whose description is a unit vector, [d]; None keeps what is known. Return its index."""
        index = self._index.setdefault(name, len(self._index))
        if index >= len(self._table):
            more = np.zeros((2 * len(self._table), self.encoder.dim), np.float32)
            more[: len(self._table)] = self._table
            self._table = more
        if vector is not None:
            # A copy, replaced in one assignment: another thread may be reading the table for a decision.
            table = self._table.copy()
            table[index] = vector
            self._table = table
        self._present[name] = None
        self._scenes.clear()
        return index

    def remove(self, name: str) -> None:
        """Remove an option from the candidates; keep what was learned about it."""
        self.index(name)
        self._present.pop(name, None)
        self._scenes.clear()

    def index(self, name: str) -> int:
        """Return the stable index of a name."""
        if name not in self._index:
            known = ", ".join(self._index) or "none yet"
            raise UnknownOption(f"no option {name!r}; there are: {known}")
        return self._index[name]

    def name(self, index: int) -> str:
        for name, known in self._index.items():
            if known == index:
                return name
        raise UnknownOption(f"no option has index {index}; there are {len(self._index)}")

    def description(self, name: str) -> str:
        return self._described.get(name, "")

    def allowed(self, only: Collection[str] | None) -> list[str]:
        """Return the present options, or those of `only` that are present; raise for an unknown name."""
        if only is None:
            return list(self._present)
        for name in only:
            self.index(name)
        # In the order of the present options: the order of `only` must not change which option a random number draws.
        wanted = set(only)
        return [name for name in self._present if name in wanted]

    def scene(self, vector: np.ndarray, names: list[str], extra: np.ndarray | None = None) -> Scene:
        """Return the scene of a query vector and these candidates; `extra` features are appended for learning only."""
        key = tuple(names)
        option = self._scenes.get(key)
        if option is None:
            option = np.array([self._index[name] for name in names], np.int64)
            # Bounded: callers may allow another subset in every decision.
            if len(self._scenes) >= 1000:
                self._scenes.clear()
            self._scenes[key] = option
        x = vector if extra is None else np.concatenate([vector, extra]).astype(np.float32)
        described = self.vectors
        return Scene(x=x, option=option, cosine=times(described, option, vector), described=described)

    def state(self) -> dict[str, Any]:
        """Return JSON: names by index, descriptions, present options."""
        return {"names": list(self._index), "described": dict(self._described), "present": list(self._present)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore saved indices; options added before must not contradict them."""
        saved = {str(name): i for i, name in enumerate(state["names"])}
        current = [(name, self._table[self._index[name]].copy()) for name in self._present]
        described = {name: self._described[name] for name in self._present if name in self._described}
        self._index, self._described, self._present = saved, described, {}
        self._table = np.zeros((max(16, 2 * len(saved)), self.encoder.dim), np.float32)
        for name, vector in current:
            self.add_vector(name, vector)


# Cosine of two descriptions from which one option is taken for the other under a new name.
_SAME = 0.95


def successors(described: np.ndarray, new: np.ndarray, old: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return those of the `new` options that have the description of an `old` one, and the old one of each."""
    old = old[old < len(described)]
    if not len(old):
        return new[:0], old
    same = described[new] @ described[old].T
    inherits = same.max(axis=1) >= _SAME
    return new[inherits], old[same.argmax(axis=1)[inherits]]
