"""A task whose trial_runs are counted, not trained: what a search does with trials needs no env."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from surefoot.errors import ConfigError, Diverged, RunError
from surefoot.learn.search_ranges import Choice, Range, Space


class Hill:
    """Scores grow with the share that was walked, the faster the closer `lr` is to 1e-3."""

    name = "hill"

    def __init__(self, *, fails: str = "") -> None:
        self.space: Space = {"lr": Range(1e-5, 1e-1, log=True), "kind": Choice(("bad", "good"))}
        self.base: dict[str, Any] = {"lr": 1e-5, "kind": "bad"}
        self.moving = frozenset({"lr"})
        self.fails = fails

    def trial_run(self, params: dict[str, Any], seeds: Sequence[int]) -> Climb:
        if self.fails == "config":
            raise ConfigError("no such hill")
        return Climb(params, seeds, self.fails)

    def settings(self, params: dict[str, Any]) -> dict[str, Any]:
        return dict(params)


class Climb:
    def __init__(self, params: dict[str, Any], seeds: Sequence[int], fails: str = "") -> None:
        self.params, self.seeds, self.fails = params, seeds, fails
        self.height, self.share, self.closed = 0.0, 0.0, False

    def advance(self, share: float, stop: Callable[[], bool]) -> list[float] | None:
        if stop():
            return None
        if self.fails == "diverges":
            raise Diverged("the weights left the finite")
        self.height += (share - self.share) * (10 - (math.log10(self.params["lr"]) + 3) ** 2)
        self.share = share
        return [self.height for _ in self.seeds]

    def state(self) -> dict[str, Any]:
        if self.fails == "unkept":
            raise RunError("a hill cannot be put back")
        return {"climb": {"height": self.height, "share": self.share}}

    def set_state(self, parts: dict[str, Any]) -> None:
        self.height, self.share = parts["climb"]["height"], parts["climb"]["share"]

    def close(self) -> None:
        self.closed = True
