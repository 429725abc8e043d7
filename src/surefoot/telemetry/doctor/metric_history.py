"""The recent metrics of a run, and its returns from the start, in bounded memory: the input of the doctor's signs."""

from __future__ import annotations

import math
from collections import Counter, deque
from itertools import islice
from typing import Any

import numpy as np

from surefoot.telemetry.reader import LineProblem
from surefoot.telemetry.schema import (
    EndRecord,
    EpisodeRecord,
    EventRecord,
    HeaderRecord,
    MinibatchRecord,
    Record,
    UpdateRecord,
)

# Update records in memory. The longest window of a shipped rule is 50.
HISTORY = 256
# Numbers of train/diagnose, which only some updates have; they are held until the next measurement.
SAMPLED = (
    *("bootstrap_zero_share", "obs_mean_max", "obs_std_max", "entropy_max"),
    *("action_at_bound_share", "top_action_share"),
    *("weight_jump", "weight_norm", "weight_step", "frozen_share", "dormant_share", "rss_mb"),
    *("obs_constant_share", "obs_repeat_share", "obs_clock_share", "obs_saturated_share", "obs_distinct_share"),
    *("obs_abs_max", "obs_explained", "obs_dropout_share", "obs_rounded", "obs_noise", "reset_dependence"),
    *("action_effect", "action_share", "action_effect_recent", "action_effect_late", "effect_by_episode"),
    *(
        "stream_difference",
        "reward_at_end_share",
        "reward_explained",
        "reward_lag",
        "reward_roughness",
        "reward_cut_share",
    ),
    *(
        "end_explained",
        "end_random_share",
        "valid_share",
        "start_error",
        "next_value_error",
        "value_error",
        "time_limit",
    ),
    # Of the probe (train/diagnose/replay_tests.py).
    *(
        "replay_same_share",
        "replay_reward_random",
        "replay_end_random",
        "replay_view_correlation",
        "reset_ignored_share",
    ),
    *("branch_effect", "branch_size", "branch_lag", "branch_leak", "branch_gain", "branch_reward", "branch_reward_lag"),
    "reward_varied_share",
)
# The returns of the first episodes stand for the untrained policy: few enough that it has hardly learned.
BASELINE = 20
# Numbers that do not repeat to the last digit unless the same update is computed again.
_FINGERPRINT = ("policy_loss", "value_loss", "entropy", "approx_kl", "grad_norm", "explained_variance", "advantage_std")
# Memory bounds of the fingerprints and of the episode lengths.
_MOST_FINGERPRINTS, _MOST_LENGTHS = 4096, 1024


class MetricHistory:
    """Take records one by one; signs read windows of numbers from it."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.env = ""
        self.total_steps: int | None = None
        self.env_steps = self.updates = 0
        self.end: EndRecord | None = None
        self.returns = Returns()
        self.lengths, self.truncated_lengths = Counter[int](), set[int]()
        """Terminated episodes by length; of truncated ones only the different lengths."""
        self.longest = 0
        self.ended_episodes = 0
        self.odd_lines = 0
        """Lines that are unreadable, or that one writer cannot have written in this order."""
        self.repeats = 0
        """How many of the last updates in a row had exactly the numbers of an earlier one."""
        self._rows: deque[dict[str, float]] = deque(maxlen=HISTORY)
        self._highs: deque[dict[str, float]] = deque(maxlen=HISTORY)
        self._knobs: dict[str, Any] = {}
        """Settings by name: every update needs the same ones."""
        self._windows: dict[tuple[str, int], np.ndarray] = {}
        """Results of `last` since the last update: several rules need the same."""
        self._measured: dict[str, deque[float]] = {name: deque(maxlen=4) for name in SAMPLED}
        self._first: dict[str, float] = {}
        self._fingerprints: dict[int, None] = {}
        self._last: tuple[int, int] | None = None
        self._sessions: list[str] = []
        self._updated_at: float | None = None
        """Time of the last update of this session."""
        self._resumed = False

    def add(self, record: Record | LineProblem) -> None:
        """Take one record, or the problem of an unreadable line."""
        if isinstance(record, LineProblem):
            self.odd_lines += 1
            return
        self._check_order(record)
        match record:
            case HeaderRecord():
                self.config, self.total_steps, self.env = record.config, record.total_steps, record.env
                self.end, self._updated_at, self._knobs = None, None, {}
            case UpdateRecord():
                self._add_update(record)
            case EpisodeRecord():
                if record.return_ is not None:
                    self.returns.add_first(record.return_)
                self.longest = max(self.longest, record.length)
                if record.terminated is False and len(self.truncated_lengths) < _MOST_LENGTHS:
                    self.truncated_lengths.add(record.length)
                if record.terminated:
                    self.lengths[record.length] += 1
                    if len(self.lengths) > _MOST_LENGTHS:
                        del self.lengths[self.lengths.most_common()[-1][0]]
            case EndRecord():
                self.end = record
            case _:
                pass

    def now(self, name: str) -> float:
        """Return a number of the last update; NaN if it has none."""
        return self._rows[-1].get(name, math.nan) if self._rows else math.nan

    def high(self, name: str) -> float:
        """Return the maximum of a number over the updates that the last record covers."""
        return self._highs[-1].get(name, self.now(name)) if self._highs else math.nan

    def last(self, name: str, n: int) -> np.ndarray:
        """Return a number's values in the last n update records, [≤ n], without NaN."""
        if (name, n) not in self._windows:
            rows = islice(reversed(self._rows), n)
            values = [x for row in rows if not math.isnan(x := row.get(name, math.nan))]
            self._windows[name, n] = np.array(values[::-1], np.float64)
        return self._windows[name, n]

    def measured(self, name: str, n: int) -> list[float]:
        """Return the last n measurements of a number that only some updates have."""
        return list(self._measured[name])[-n:]

    def first(self, name: str) -> float:
        """Return the first value of a number; NaN if it has none."""
        return self._first.get(name, math.nan)

    @property
    def progress(self) -> float:
        """Share of the planned env steps that are done; NaN if the plan is unknown."""
        return self.env_steps / self.total_steps if self.total_steps else math.nan

    def knob(self, name: str) -> Any:
        """Return a setting of the run's config; None if it has none."""
        if name not in self._knobs:
            # Config is any JSON that the run wrote.
            parts: list[Any] = [self.config, *(self.config.get(key) for key in ("ppo", "net", "collect"))]
            self._knobs[name] = next((part[name] for part in parts if isinstance(part, dict) and name in part), None)
        return self._knobs[name]

    @property
    def thriving(self) -> bool:
        """Whether the returns are clearly better than the untrained policy's, and near their best."""
        return self.returns.better and not self.returns.fallen(0.5)

    def _add_update(self, record: UpdateRecord) -> None:
        row = {name: float(x) for name, x in record.m.items() if x is not None}
        for name in SAMPLED:
            if name in row:
                self._measured[name].append(row[name])
            elif self._measured[name]:
                row[name] = self._measured[name][-1]
        row |= {f"seconds.{name}": float(x) for name, x in record.seconds.items() if x is not None}
        row |= {"covers": float(record.covers), "env_steps": float(record.env_steps)}
        row |= {"rolled_back": float(record.rolled_back), "nonfinite": float(len(record.nonfinite))}
        if self._updated_at is not None:
            row["gap"] = record.t - self._updated_at
        self._updated_at = record.t
        self._rows.append(row)
        self._windows.clear()
        self._highs.append({name: float(x) for name, x in record.m_max.items() if x is not None})
        for name, x in row.items():
            self._first.setdefault(name, x)
        episodes = record.episodes
        if episodes is not None and episodes.return_mean is not None:
            self.ended_episodes += episodes.count
            self.longest = max(self.longest, int(episodes.length_mean or 0))
            self.returns.add(record.env_steps, episodes.return_mean, episodes.count)
        numbers = tuple(row.get(name, 0.0) for name in _FINGERPRINT)
        # An update that learned nothing, or that reports hardly any number, repeats without meaning anything.
        if row.get("minibatches", 1.0) != 0.0 and sum(x != 0.0 for x in numbers) >= 3:
            key = hash(numbers)
            self.repeats = self.repeats + 1 if key in self._fingerprints else 0
            self._fingerprints[key] = None
            if len(self._fingerprints) > _MOST_FINGERPRINTS:
                del self._fingerprints[next(iter(self._fingerprints))]

    def _check_order(self, record: Record) -> None:
        """Count what a single writer cannot have written: gaps and steps back outside of a resume."""
        if isinstance(record, HeaderRecord):
            if record.session in self._sessions[:-1]:
                self.odd_lines += 1  # a session continues after another one began
            elif record.session not in self._sessions:
                self._sessions.append(record.session)
                self._resumed = True
        if isinstance(record, EventRecord):
            self._resumed |= record.name == "resumed"
            self.odd_lines += record.name == "torn_tail"
        previous = 0
        if self._last is not None:
            seq, previous = self._last
            self.odd_lines += record.seq <= seq or (record.seq > seq + 1 and not self._resumed)
            # Lines of minibatches follow the episodes of their rollout, and carry the steps before it.
            backwards = record.env_steps < previous and not isinstance(record, MinibatchRecord)
            self.odd_lines += backwards and not self._resumed
        self._resumed = self._resumed and not isinstance(record, UpdateRecord)
        self._last = (record.seq, max(record.env_steps, 0 if self._resumed else previous))
        self.env_steps, self.updates = record.env_steps, record.updates


class Returns:
    """Returns of training episodes from the first to the last; neighbours are merged when there are many."""

    LENGTH = 512

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.means: list[float] = []
        self.counts: list[float] = []
        self.smooth = math.nan
        """Mean of about the last hundred episodes."""
        self.best = -math.inf
        """Maximum of `smooth`, from fifty episodes or ten records on."""
        self.lowest, self.highest = math.inf, -math.inf
        """Of the mean returns of all records."""
        self.records = 0
        self._episodes = 0.0
        self._baseline: list[float] = []
        self._by_episodes = False
        """Whether the baseline consists of episode lines."""
        self._start = (0, math.nan, math.nan)

    def add_first(self, value: float) -> None:
        """Add one episode's return to the baseline, unless it is complete."""
        self._by_episodes = True
        if len(self._baseline) < BASELINE:
            self._baseline.append(value)

    def add(self, env_steps: int, mean: float, count: int) -> None:
        """Add the mean return of `count` episodes."""
        if not self._by_episodes:  # a record without episode lines, such as another library's log
            self._baseline += [mean] * min(count, BASELINE - len(self._baseline))
        self.records += 1
        self._episodes += count
        self.lowest, self.highest = min(self.lowest, mean), max(self.highest, mean)
        # Each episode weighs 1 %; at least 5 % per record, so that long episodes do not hide a change for the whole run.
        share = min(1.0, max(count / 100.0, 0.05))
        self.smooth = mean if math.isnan(self.smooth) else self.smooth + share * (mean - self.smooth)
        if self._episodes >= 50 or self.records >= 10:
            self.best = max(self.best, self.smooth)
        for column, x in ((self.steps, float(env_steps)), (self.means, mean), (self.counts, float(count))):
            column.append(x)
        if len(self.means) > self.LENGTH:
            self._merge_neighbours()

    def _merge_neighbours(self) -> None:
        """Halve the points: each pair becomes its mean, weighted by episodes."""
        weight = np.array(self.counts[: len(self.counts) // 2 * 2]).reshape(-1, 2)
        pairs = np.array(self.means[: len(weight) * 2]).reshape(-1, 2)
        end = len(weight) * 2
        self.means = [*((pairs * weight).sum(1) / weight.sum(1)).tolist(), *self.means[end:]]
        self.steps = [*self.steps[1:end:2], *self.steps[end:]]
        self.counts = [*weight.sum(1).tolist(), *self.counts[end:]]

    @property
    def start(self) -> tuple[float, float]:
        """Mean and standard deviation of the baseline; NaN with fewer than five episodes."""
        if len(self._baseline) < 5:
            return math.nan, math.nan
        if self._start[0] != len(self._baseline):  # cached: every record asks many times
            self._start = (len(self._baseline), float(np.mean(self._baseline)), float(np.std(self._baseline)))
        return self._start[1:]

    @property
    def varied(self) -> bool:
        """Whether not all returns are the same number."""
        values = (*self.means, *self._baseline)
        return bool(self.means) and max(values) - min(values) > 1e-9

    def tolerance(self) -> float:
        """Return the smallest significant difference from the start: three standard errors, or 5 % of the mean."""
        mean, std = self.start
        return max(3.0 * std / math.sqrt(len(self._baseline)), 0.05 * abs(mean), 1e-9)

    @property
    def better(self) -> bool:
        """Whether the smoothed return is significantly above the start."""
        mean, _ = self.start
        return not math.isnan(mean) and self.smooth > mean + self.tolerance()

    @property
    def worse(self) -> bool:
        """Whether the smoothed return is significantly below the start."""
        mean, _ = self.start
        return not math.isnan(mean) and self.smooth < mean - self.tolerance()

    def fallen(self, share: float) -> bool:
        """Return whether more than this share of the gain over the start is lost again."""
        mean, _ = self.start
        if math.isnan(mean) or not self.best > mean + 2.0 * self.tolerance():
            return False
        return self.smooth < self.best - share * (self.best - mean)

    def recent(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """Return (steps, means) of the last `share` of the run so far."""
        if not self.steps:
            return np.zeros(0), np.zeros(0)
        steps, means = np.array(self.steps), np.array(self.means)
        mask = steps >= self.steps[-1] * (1.0 - share)
        return steps[mask], means[mask]
