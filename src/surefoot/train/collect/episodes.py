"""Returns and lengths of episodes as people know them: raw rewards, whole episodes, no ghost rows."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.envs.api import Step

WINDOW = 100


@dataclass(frozen=True, slots=True)
class Episode:
    """One finished episode."""

    stream: int
    return_: float
    length: int
    success: float | None
    truncated: bool


def success_of(step: Step, stream: int) -> float | None:
    """What the world says of the episode that ended in a stream; None if it says nothing (NaN stands for that)."""
    said = float(step.stats["success"][stream]) if "success" in step.stats else math.nan
    return None if math.isnan(said) else said


def goes_on(step: Step, stream: int) -> bool:
    """True if only a part of an episode ended, such as one of a game's lives: what people know goes on."""
    return "whole_return" in step.stats and math.isnan(step.stats["whole_return"][stream])


def return_of(step: Step, stream: int, added: float) -> float:
    """The return of an episode that ended: what was added up, unless the world knows the whole of it."""
    return float(step.stats["whole_return"][stream]) if "whole_return" in step.stats else float(added)


class EpisodeLog:
    """Adds up the running episodes of N streams and remembers the last hundred finished ones."""

    def __init__(self, streams: int) -> None:
        self.returns = np.zeros(streams)
        self.lengths = np.zeros(streams, dtype=np.int64)
        self.finished = 0
        self.fresh: list[Episode] = []
        """Finished since `take_fresh` was last called."""
        self._recent: deque[tuple[float, int, float | None]] = deque(maxlen=WINDOW)

    def count(self, step: Step) -> None:
        """Count one step of every stream; a row that is not valid drops a running episode."""
        self.returns[:] = np.where(step.valid, self.returns + step.reward, 0.0)
        self.lengths[:] = np.where(step.valid, self.lengths + 1, 0)

    def finish(self, step: Step, ended: np.ndarray) -> None:
        """Close the episodes that ended with the step that was counted last."""
        for stream in map(int, np.flatnonzero(ended)):
            if goes_on(step, stream):
                continue
            length, total = int(self.lengths[stream]), return_of(step, stream, self.returns[stream])
            self.add(Episode(stream, total, length, success_of(step, stream), bool(step.truncated[stream])))
            self.forget(stream)

    def add(self, episode: Episode) -> None:
        """Remember a finished episode."""
        self.fresh.append(episode)
        self._recent.append((episode.return_, episode.length, episode.success))
        self.finished += 1

    def forget(self, stream: int) -> None:
        """Drop a running episode without counting it."""
        self.returns[stream], self.lengths[stream] = 0.0, 0

    def take_fresh(self) -> list[Episode]:
        """The episodes finished since last asked."""
        fresh, self.fresh = self.fresh, []
        return fresh

    def recent(self) -> tuple[float | None, float | None, float | None]:
        """Mean return, length and success over the last hundred episodes; None where there is nothing to say."""
        if not self._recent:
            return None, None, None
        returns, lengths, success = zip(*self._recent, strict=True)
        known = [s for s in success if s is not None]
        return float(np.mean(returns)), float(np.mean(lengths)), float(np.mean(known)) if known else None

    def state(self) -> dict[str, Any]:
        """Everything that moves."""
        return {
            "returns": self.returns.copy(),
            "lengths": self.lengths.copy(),
            "finished": self.finished,
            "recent": [list(entry) for entry in self._recent],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken."""
        self.returns, self.lengths = np.array(state["returns"]), np.array(state["lengths"])
        self.finished = state["finished"]
        self._recent = deque(((r, n, s) for r, n, s in state["recent"]), maxlen=WINDOW)
