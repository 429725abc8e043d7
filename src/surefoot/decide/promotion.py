"""Versions of a policy, and the gate between them: a new one goes live only if it is not worse on the log."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surefoot.decide.evaluation.offpolicy import ENOUGH, Estimate, interval, sample_size, weights
from surefoot.errors import CheckpointMissing, DecisionError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, read_link, set_link
from surefoot.learn.checkpoint.checkpoint import Checkpoint, load_checkpoint, newest_first, save_checkpoint, step_of

Verdict = Literal["promote", "hold", "fail"]

_LIVE, _HISTORY = "live", "history.ndjson"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateConfig:
    """Conditions for promoting a new version."""

    margin: float = 0.01
    """How far below 0 the lower bound of the difference may be; 0 requires proof that the new version is better."""
    least_sample_size: float = ENOUGH
    """Below this effective sample size the verdict is `hold`."""
    confidence: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict of the gate, and the reason."""

    verdict: Verdict
    reason: str
    difference: Estimate
    """Reward of the new version minus that of the live one, doubly robust, on the same decisions."""
    effective_sample_size: float
    """The smaller one of both policies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One policy on the log; each is [n]."""

    target: np.ndarray
    """Its probability of the logged action."""
    expected: np.ndarray
    """Its expected reward by the outcome model."""


def judge(
    reward: np.ndarray,
    logged: np.ndarray,
    predicted: np.ndarray,
    live: Side,
    new: Side,
    config: GateConfig | None = None,
) -> Judgement:
    """Compare two policies on the same log, decision by decision: queries that are hard for both cancel out."""
    config = config or GateConfig()
    both = {name: weights(logged, side.target) for name, side in (("live", live), ("new", new))}
    earned = {name: side.expected + both[name] * (reward - predicted) for name, side in (("live", live), ("new", new))}
    # The smaller one: the difference is only as certain as the less certain of its two parts.
    size = min(sample_size(weight) for weight in both.values())
    difference = interval(earned["new"] - earned["live"], config.confidence, size)
    measured = f"{difference.value:+.4f} ({difference.low:+.4f} … {difference.high:+.4f})"
    # First of all checks: where few logged decisions have most of the weight, intervals are far too narrow, so a
    # difference that looks clear is no evidence.
    if size < config.least_sample_size:
        verdict, why = (
            "hold",
            f"effective sample size {size:.0f}, a verdict needs {config.least_sample_size:.0f}; {measured}",
        )
    elif difference.low >= -config.margin:
        verdict, why = "promote", f"not worse by more than {config.margin:g}: {measured}"
    elif difference.high < -config.margin:
        verdict, why = "fail", f"worse: {measured}"
    else:
        verdict, why = "hold", f"it may be worse by more than {config.margin:g}: {measured}"
    return Judgement(verdict=verdict, reason=why, difference=difference, effective_sample_size=size)


class Versions:
    """Saved policies by number, and which of them is live.

    root/000012/      a checkpoint
    root/live         a link to the one that answers
    root/history.ndjson   promotions and rollbacks, with time and reason
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def save(self, number: int, parts: Mapping[str, dict[str, Any]], meta: Mapping[str, Any] | None = None) -> Path:
        """Save a version atomically. The first one is live immediately."""
        path = save_checkpoint(self.root, number, parts, meta=meta)
        if self.live is None:
            self.promote(number, "the first version")
        return path

    @property
    def numbers(self) -> list[int]:
        """All versions, oldest first."""
        steps = (step_of(path.name) for path in newest_first(self.root))
        return sorted({number for number in steps if number is not None})

    @property
    def live(self) -> int | None:
        """The version in use, or None before the first."""
        name = read_link(self.root / _LIVE)
        return None if name is None else step_of(name)

    def load(self, number: int | None = None) -> Checkpoint:
        """Return a version, by default the live one."""
        number = self.live if number is None else number
        if number is None:
            raise CheckpointMissing(f"{self.root} has no version yet; `learn` makes the first")
        return load_checkpoint(self._path(number))

    def promote(self, number: int, reason: str) -> None:
        self._go_live(number, "promote", reason)

    def rollback(self, reason: str = "by hand") -> int:
        """Return to the version that was live before; return its number."""
        before = [entry["to"] for entry in self.history() if entry["to"] != self.live]
        # Checkpoints of versions in the history may have been deleted since.
        available = [number for number in before if number in self.numbers]
        if not available:
            raise DecisionError(f"nothing to go back to: version {self.live} is the only one that was ever live")
        self._go_live(available[-1], "rollback", reason)
        return available[-1]

    def history(self) -> list[dict[str, Any]]:
        """Every change of the live version, oldest first."""
        path = self.root / _HISTORY
        if not path.exists():
            return []
        lines = path.read_text(encoding="utf-8").splitlines()
        # A crash while a line is appended leaves a part of it, which is not JSON.
        return [json.loads(line) for line in lines if line.endswith("}")]

    @property
    def held(self) -> bool:
        """Whether somebody chose the live version while a newer one existed, so that newer ones must not replace it.

        False if a newer version is only not live yet, because the process ended between saving and promoting it.
        """
        changes = [entry for entry in self.history() if entry["what"] != "judged"]
        if not changes or changes[-1]["to"] != self.live:  # a crash before the note
            return True
        last = changes[-1]
        if "newest" not in last:  # in histories of earlier versions
            return last["reason"] not in ("learned", "the first version")
        return last["to"] < last["newest"]

    def record(self, judgement: Judgement, number: int) -> None:
        """Append a verdict of the gate to the history."""
        self._note({"what": "judged", "to": self.live, "version": number, **asdict(judgement)})

    def _go_live(self, number: int, what: str, reason: str) -> None:
        path = self._path(number)
        before = self.live
        # The link alone decides which version is live: after a crash in between, only the note is missing.
        set_link(REAL_FS, self.root / _LIVE, path.name)
        self._note({"what": what, "from": before, "to": number, "newest": self.numbers[-1], "reason": reason})

    def _note(self, entry: dict[str, Any]) -> None:
        with (self.root / _HISTORY).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"t": time.time(), **entry}) + "\n")

    def _path(self, number: int) -> Path:
        for path in newest_first(self.root):
            if step_of(path.name) == number:
                return path
        raise CheckpointMissing(f"{self.root} has no version {number}; there are {self.numbers}")


class AgreementRate:
    """How often the policy would have made the application's choice, over the last decisions."""

    # 1000: the standard error of a rate is then at most 1.6 points.
    def __init__(self, window: int = 1000) -> None:
        self._same: deque[bool] = deque(maxlen=window)

    def add(self, choice: str, done: str) -> None:
        """Count one decision: `choice` is the policy's, `done` the application's."""
        self._same.append(choice == done)

    def __len__(self) -> int:
        return len(self._same)

    @property
    def rate(self) -> float:
        """Share of the last decisions in which both agree; NaN before the first."""
        return float(np.mean(self._same)) if self._same else float("nan")
