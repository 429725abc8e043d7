"""Returns and lengths of episodes as people report them: raw rewards, complete episodes, no ghost rows."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.envs.api import Step

# SB3's window for ep_rew_mean, so that curves of both can be compared.
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
    """Return the success that the world reports for the episode that ended; None if it reports none (NaN)."""
    success = float(step.stats["success"][stream]) if "success" in step.stats else math.nan
    return None if math.isnan(success) else success


def episode_continues(step: Step, stream: int) -> bool:
    """Return whether only a part of the episode ended, such as one of a game's lives."""
    return "whole_return" in step.stats and math.isnan(step.stats["whole_return"][stream])


def return_of(step: Step, stream: int, summed: float) -> float:
    """Return the episode's return: the world's own number if it has one, else the summed rewards."""
    return float(step.stats["whole_return"][stream]) if "whole_return" in step.stats else float(summed)


class EpisodeLog:
    """Sums the rewards of N running episodes and keeps the last hundred finished ones."""

    def __init__(self, streams: int) -> None:
        self.returns = np.zeros(streams)
        self.lengths = np.zeros(streams, dtype=np.int64)
        self.finished = 0
        self.fresh: list[Episode] = []
        """Finished since the last call of `take_fresh`."""
        self._recent: deque[tuple[float, int, float | None]] = deque(maxlen=WINDOW)

    def count(self, step: Step) -> None:
        """Count one step of every stream; an invalid row drops its running episode."""
        # In place: a kernel rollout that is running holds references to these arrays.
        self.returns[:] = np.where(step.valid, self.returns + step.reward, 0.0)
        self.lengths[:] = np.where(step.valid, self.lengths + 1, 0)

    def finish(self, step: Step, ended: np.ndarray) -> None:
        """Close the episodes that ended with the step counted last."""
        for stream in map(int, np.flatnonzero(ended)):
            if episode_continues(step, stream):
                continue
            length, total = int(self.lengths[stream]), return_of(step, stream, self.returns[stream])
            self.add(Episode(stream, total, length, success_of(step, stream), bool(step.truncated[stream])))
            self.forget(stream)

    def add(self, episode: Episode) -> None:
        self.fresh.append(episode)
        self._recent.append((episode.return_, episode.length, episode.success))
        self.finished += 1

    def forget(self, stream: int) -> None:
        """Drop a running episode without counting it."""
        self.returns[stream], self.lengths[stream] = 0.0, 0

    def take_fresh(self) -> list[Episode]:
        """Return the episodes finished since the last call."""
        fresh, self.fresh = self.fresh, []
        return fresh

    def recent(self) -> tuple[float | None, float | None, float | None]:
        """Return mean return, length and success of the last hundred episodes; None where nothing is known."""
        if not self._recent:
            return None, None, None
        returns, lengths, success = zip(*self._recent, strict=True)
        known = [s for s in success if s is not None]
        return float(np.mean(returns)), float(np.mean(lengths)), float(np.mean(known)) if known else None

    def state(self) -> dict[str, Any]:
        recent = [list(entry) for entry in self._recent]
        running = {"returns": self.returns.copy(), "lengths": self.lengths.copy()}
        return {**running, "finished": self.finished, "recent": recent}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.returns, self.lengths = np.array(state["returns"]), np.array(state["lengths"])
        self.finished = state["finished"]
        self._recent = deque(((r, n, s) for r, n, s in state["recent"]), maxlen=WINDOW)
