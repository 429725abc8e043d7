"""The patient's chart: the last records of a run as numbers, and what its returns were from the start; bounded memory."""

from __future__ import annotations

import math
from collections import Counter, deque
from itertools import islice
from typing import Any

import numpy as np

from surefoot.telemetry.reader import LineProblem
from surefoot.telemetry.schema import EndRecord, EpisodeRecord, EventRecord, HeaderRecord, Record, UpdateRecord

KEPT = 256
"""Update records that are kept."""
SAMPLED = (
    "bootstrap_zero_share",
    "obs_mean_max",
    "obs_std_max",
    "action_at_bound_share",
    "top_action_share",
    "entropy_max",
    "weight_jump",
    "weight_norm",
    "weight_step",
    "frozen_share",
    "dormant_share",
    "rss_mb",
)
"""Numbers of train/diagnose/diagnostics.py, which only some updates have; they are held until the next measurement."""
BASELINE = 20
"""First episodes, whose returns stand for the untrained policy."""


class Chart:
    """Takes records one by one; whoever looks for a sign asks it for windows of numbers."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.total_steps: int | None = None
        self.env_steps = self.updates = 0
        self.records = 0
        """Update records so far."""
        self.end: EndRecord | None = None
        self.update: UpdateRecord | None = None
        """The last one."""
        self.returns = Returns()
        self.lengths: Counter[int] = Counter()
        """Terminated episodes by length."""
        self.longest = 0
        self.ended_episodes = 0
        self.odd_lines = 0
        """Lines of the record that cannot be as they are, and the last sentences about them."""
        self.oddities: deque[str] = deque(maxlen=20)
        self.repeats = 0
        """How often the last update's numbers were those of an earlier one, in a row."""
        self._rows: deque[dict[str, float]] = deque(maxlen=KEPT)
        self._highs: deque[dict[str, float]] = deque(maxlen=KEPT)
        self._measured: dict[str, deque[float]] = {name: deque(maxlen=4) for name in SAMPLED}
        self._first: dict[str, float] = {}
        self._seen: dict[int, None] = {}
        self._last: tuple[int, int, float] | None = None
        self._sessions: list[str] = []
        self._told_at: float | None = None
        """When the last update of this session was written."""
        self._resumed = False

    def add(self, record: Record | LineProblem) -> None:
        """Take one record, or a line that is none."""
        if isinstance(record, LineProblem):
            self._odd(str(record))
            return
        self._clock(record)
        match record:
            case HeaderRecord():
                self.config, self.total_steps = record.config, record.total_steps
                self.end, self._told_at = None, None
            case UpdateRecord():
                self._add_update(record)
            case EpisodeRecord():
                self._add_episode(record)
            case EndRecord():
                self.end = record
            case _:
                pass

    def now(self, name: str) -> float:
        """A number of the last update; NaN if it has none."""
        return self._rows[-1].get(name, math.nan) if self._rows else math.nan

    def high(self, name: str) -> float:
        """The largest of the updates that the last record covers."""
        return self._highs[-1].get(name, self.now(name)) if self._highs else math.nan

    def last(self, name: str, n: int) -> np.ndarray:
        """[≤ n]: what there is of a number in the last n update records, NaN left out."""
        rows = islice(reversed(self._rows), n)
        found = [x for row in rows if not math.isnan(x := row.get(name, math.nan))]
        return np.array(found[::-1], np.float64)

    def measured(self, name: str, n: int) -> list[float]:
        """The last n measurements of a number that only some updates have."""
        return list(self._measured[name])[-n:]

    def first(self, name: str) -> float:
        """The number as the run first had it; NaN if it never did."""
        return self._first.get(name, math.nan)

    @property
    def progress(self) -> float:
        """Share of the run that is over; NaN if nobody said how long it is."""
        return self.env_steps / self.total_steps if self.total_steps else math.nan

    def knob(self, name: str) -> Any:
        """What the run's config says of a knob; None if nothing."""
        for part in (self.config, *(self.config.get(key) for key in ("ppo", "net", "collect"))):
            if isinstance(part, dict) and name in part:
                return part[name]  # pyright: ignore[reportUnknownVariableType]  # config is whatever JSON the run wrote
        return None

    @property
    def thriving(self) -> bool:
        """The returns are clearly better than the untrained policy's, and near the best they ever were."""
        return self.returns.better and not self.returns.fallen(0.5)

    def _add_update(self, record: UpdateRecord) -> None:
        self.update = record
        self.records += 1
        row = {name: float(x) for name, x in record.m.items() if x is not None}
        for name in SAMPLED:
            if name in row:
                self._measured[name].append(row[name])
            elif self._measured[name]:
                row[name] = self._measured[name][-1]
        row |= {f"seconds.{name}": float(x) for name, x in record.seconds.items() if x is not None}
        row |= {"covers": float(record.covers), "env_steps": float(record.env_steps)}
        row["rolled_back"] = float(record.rolled_back)
        if self._told_at is not None:
            row["gap"] = record.t - self._told_at
        self._told_at = record.t
        row["nonfinite"] = float(len(record.nonfinite))
        self._rows.append(row)
        self._highs.append({name: float(x) for name, x in record.m_max.items() if x is not None})
        for name, x in row.items():
            self._first.setdefault(name, x)
        episodes = record.episodes
        if episodes is not None and episodes.return_mean is not None:
            self.ended_episodes += episodes.count
            self.returns.add(record.env_steps, episodes.return_mean, episodes.count)
        self._look_for_repeats(row)

    def _look_for_repeats(self, row: dict[str, float]) -> None:
        told = tuple(row.get(name, 0.0) for name in _FINGERPRINT)
        if row.get("minibatches", 1.0) == 0.0 or sum(x != 0.0 for x in told) < 3:
            return  # nothing was learned, or nothing is told
        key = hash(told)
        self.repeats = self.repeats + 1 if key in self._seen else 0
        self._seen[key] = None
        if len(self._seen) > 4096:
            del self._seen[next(iter(self._seen))]

    def _add_episode(self, record: EpisodeRecord) -> None:
        if record.return_ is not None:
            self.returns.add_first(record.return_)
        self.longest = max(self.longest, record.length)
        if record.terminated:
            self.lengths[record.length] += 1
            if len(self.lengths) > 1024:
                del self.lengths[self.lengths.most_common()[-1][0]]

    def _odd(self, what: str) -> None:
        self.odd_lines += 1
        self.oddities.append(what)

    def _clock(self, record: Record) -> None:
        """Note what cannot be in a record that one writer wrote whole."""
        if isinstance(record, HeaderRecord):
            if record.session in self._sessions[:-1]:
                self._odd(f"session {record.session} goes on after another one began")
            elif record.session not in self._sessions:
                self._sessions.append(record.session)
                self._resumed = True
        if isinstance(record, EventRecord):
            self._resumed |= record.name == "resumed"
            if record.name == "torn_tail":
                self._odd(record.message or "a torn line was cut off")
        if self._last is not None:
            seq, steps, _ = self._last
            if record.seq <= seq:
                self._odd(f"seq {record.seq} follows {seq}")
            elif record.seq > seq + 1 and not self._resumed:
                self._odd(f"{record.seq - seq - 1} records are missing before seq {record.seq}")
            if record.env_steps < steps and not self._resumed:
                self._odd(f"env_steps go back from {steps} to {record.env_steps}")
        self._resumed = self._resumed and not isinstance(record, UpdateRecord)
        steps = max(record.env_steps, 0 if self._resumed or self._last is None else self._last[1])
        self._last = (record.seq, steps, record.t)
        self.env_steps, self.updates = record.env_steps, record.updates


_FINGERPRINT = ("policy_loss", "value_loss", "entropy", "approx_kl", "grad_norm", "explained_variance", "advantage_std")


class Returns:
    """Returns of training episodes from the first to the last, thinned as they become many."""

    LENGTH = 512

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.means: list[float] = []
        self.counts: list[float] = []
        self.smooth = math.nan
        """Mean of about the last hundred episodes."""
        self.best = -math.inf
        """The best that `smooth` was, once it stood for fifty episodes or ten records."""
        self.records = 0
        self._episodes = 0.0
        self._each: list[float] = []
        self._start = (0, math.nan, math.nan)

    def add_first(self, value: float) -> None:
        """One episode's return; only the first count, as the baseline."""
        if len(self._each) < BASELINE:
            self._each.append(value)

    def add(self, env_steps: int, mean: float, count: int) -> None:
        """The mean return of some episodes."""
        if len(self._each) < BASELINE and self.records == len(self._each):
            self._each.append(mean)  # a record without episode lines
        self.records += 1
        self._episodes += count
        share = min(1.0, max(count / 100.0, 0.05))
        self.smooth = mean if math.isnan(self.smooth) else self.smooth + share * (mean - self.smooth)
        if self._episodes >= 50 or self.records >= 10:
            self.best = max(self.best, self.smooth)
        for column, x in ((self.steps, float(env_steps)), (self.means, mean), (self.counts, float(count))):
            column.append(x)
        if len(self.means) > self.LENGTH:
            self._thin()

    def _thin(self) -> None:
        """Join neighbours, weighted by their episodes."""
        weight = np.array(self.counts[: len(self.counts) // 2 * 2]).reshape(-1, 2)
        pairs = np.array(self.means[: len(weight) * 2]).reshape(-1, 2)
        rest = len(weight) * 2
        self.means = [*((pairs * weight).sum(1) / weight.sum(1)).tolist(), *self.means[rest:]]
        self.steps = [*self.steps[1:rest:2], *self.steps[rest:]]
        self.counts = [*weight.sum(1).tolist(), *self.counts[rest:]]

    @property
    def start(self) -> tuple[float, float]:
        """Mean and deviation of the first episodes; NaN with fewer than five."""
        if len(self._each) < 5:
            return math.nan, math.nan
        if self._start[0] != len(self._each):  # asked for many times a record
            self._start = (len(self._each), float(np.mean(self._each)), float(np.std(self._each)))
        return self._start[1:]

    @property
    def varied(self) -> bool:
        """Not all returns are one and the same number."""
        return bool(self.means) and max(*self.means, *self._each) - min(*self.means, *self._each) > 1e-9

    def tolerance(self) -> float:
        """What a difference from the start must exceed to be one: three standard errors, or a twentieth of the mean."""
        mean, std = self.start
        return max(3.0 * std / math.sqrt(len(self._each)), 0.05 * abs(mean), 1e-9)

    @property
    def better(self) -> bool:
        """The smoothed return is above the start by more than the spread there."""
        mean, _ = self.start
        return not math.isnan(mean) and self.smooth > mean + self.tolerance()

    @property
    def worse(self) -> bool:
        """It is below by as much."""
        mean, _ = self.start
        return not math.isnan(mean) and self.smooth < mean - self.tolerance()

    def fallen(self, share: float) -> bool:
        """It has lost more than this share of what it had gained over the start."""
        mean, _ = self.start
        if math.isnan(mean) or not self.best > mean + 2.0 * self.tolerance():
            return False
        return self.smooth < self.best - share * (self.best - mean)

    def recent(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """(steps, means) of the last `share` of the run so far."""
        if not self.steps:
            return np.zeros(0), np.zeros(0)
        steps, means = np.array(self.steps), np.array(self.means)
        kept = steps >= self.steps[-1] * (1.0 - share)
        return steps[kept], means[kept]
