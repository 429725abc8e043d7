"""Updates waiting for their line, and their merge: a run that learns faster than lines are written shares lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np

from surefoot.telemetry.files.json_numbers import all_finite, finite
from surefoot.telemetry.schema import VERSION, Episodes, UpdateRecord

_Numbers = dict[str, float | None]
# Sums of values beyond this could overflow a float64 (1.8e308); they take the slow path.
_MOST = 1e290
# Lines may take 0.2 % of the run's time. Expensive lines are therefore further apart, but at most five times as far,
# so that a run can still be watched.
_SHARE = 0.002
_LONGEST = 5.0

Rows = Sequence[Mapping[str, float | None]]
NewRows = list[dict[str, float | None]]
"""Rows that no caller keeps a reference to."""
Row = tuple[tuple[str, ...], Sequence[float | None]]
"""Names and their numbers."""
MetricSource = Mapping[str, float | None] | Callable[[], Row]
"""Numbers by name, or a function that returns them when the line is due."""


class PendingUpdate(NamedTuple):
    """An update before it becomes a line: nothing is evaluated, copied or checked yet."""

    t: float
    env_steps: int
    updates: int
    m: MetricSource
    epochs: Rows | Callable[[], NewRows]
    seconds: Mapping[str, float]
    episodes: Episodes | None
    episodes_dropped: int
    stopped_early: bool
    rolled_back: bool
    skipped_reason: str | None
    labels: Mapping[str, str]
    stats: Mapping[str, float | None] = {}
    """Further numbers, which only some updates have."""

    def row(self) -> Row:
        """Return the names and numbers of `m`."""
        return self.m() if callable(self.m) else (tuple(self.m), tuple(self.m.values()))

    def record(self, run: str) -> UpdateRecord:
        """Return the update as one record; non-finite numbers are not replaced yet."""
        epochs = self.epochs() if callable(self.epochs) else [dict(epoch) for epoch in self.epochs]
        return UpdateRecord(
            v=VERSION,
            run=run,
            seq=0,
            t=self.t,
            env_steps=self.env_steps,
            updates=self.updates,
            m=dict(zip(*self.row(), strict=True)) | dict(self.stats),
            epochs=epochs,
            seconds=dict(self.seconds),
            episodes=self.episodes,
            episodes_dropped=self.episodes_dropped,
            stopped_early=int(self.stopped_early),
            rolled_back=int(self.rolled_back),
            skipped_reason=self.skipped_reason,
            labels=dict(self.labels),
        )


class UpdateQueue:
    """Hold updates until a line is due: immediately for the first `early` lines, then `updates_per_second` at most."""

    def __init__(self, run: str, *, updates_per_second: float, early: int) -> None:
        self._run, self._gap, self._early = run, 1.0 / updates_per_second, early
        self._deferred: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._waiting: list[PendingUpdate] = []
        self._catching_up = False
        self._written_at = self._due_at = -math.inf

    def defer(self, now: float, report: Callable[..., None], args: tuple[Any, ...]) -> bool:
        """Call `report(*args)`, which adds an update, before the next `take`; return whether a line is due."""
        self._deferred.append((report, args))
        # Not `is_due`: this runs after every update, and a call takes longer than the comparison.
        return not self._written_at <= now < self._due_at

    def add(self, update: PendingUpdate) -> None:
        """Append one update to the next line."""
        self._waiting.append(update)

    def is_due(self, now: float) -> bool:
        """Return whether a line may be written now."""
        # Before the last line means that the clock was set back; waiting for it to catch up could take hours.
        return not (self._written_at <= now < self._due_at or self._catching_up)

    def line_took(self, seconds: float) -> None:
        """Set when the next line is due by what the last one took, from merging to writing."""
        gap = min(max(self._gap, seconds / _SHARE), _LONGEST * self._gap) if self._early <= 0 else 0.0
        self._due_at = self._written_at + gap

    def take(self) -> UpdateRecord | None:
        """Return all waiting updates as one record; None if there are none."""
        if self._deferred:
            deferred, self._deferred, self._catching_up = self._deferred, [], True
            try:
                for report, args in deferred:
                    report(*args)
            finally:
                self._catching_up = False
        if not self._waiting:
            return None
        waiting, self._waiting = self._waiting, []
        record = merge_pending(waiting, self._run)
        self._written_at, self._early = record.t, self._early - 1
        self.line_took(0.0)
        return record


def merge_pending(waiting: Sequence[PendingUpdate], run: str) -> UpdateRecord:
    """Return the updates as one record, with null for numbers that JSON cannot hold."""
    merged = merge_plain(waiting, run) if len(waiting) > 1 else None
    return merged or merge([_finite(update.record(run)) for update in waiting])


def _finite(update: UpdateRecord) -> UpdateRecord:
    """Replace non-finite numbers by null and name them in `nonfinite`."""
    episodes = update.episodes
    if all_finite(chain.from_iterable(row.values() for row in (update.m, update.seconds, *update.epochs))) and (
        episodes is None or all_finite(_numbers_of(episodes))
    ):
        return update
    bad: dict[str, str] = {}
    update.m = finite(update.m, "m", bad)
    update.epochs = [finite(epoch, f"epochs.{i}", bad) for i, epoch in enumerate(update.epochs)]
    update.seconds = finite(update.seconds, "seconds", bad)
    if episodes is not None:
        numbers = msgspec.structs.asdict(episodes)
        update.episodes = Episodes(count=numbers.pop("count"), **finite(numbers, "episodes", bad))
    update.nonfinite = bad
    return update


def _numbers_of(episodes: Episodes) -> tuple[float | None, ...]:
    """Return the numbers that may be non-finite; not `success_rate`, which is often None and never infinite."""
    return episodes.return_mean, episodes.return_min, episodes.return_max, episodes.length_mean


def merge(updates: Sequence[UpdateRecord]) -> UpdateRecord:
    """Return one record: means with the range of what varied, sums of times and counts, other fields of the last."""
    last = updates[-1]
    if len(updates) == 1:
        return last
    m, low, high = _ranges([u.m for u in updates])
    seconds: _Numbers = {name: sum(values) for name, values in _columns([u.seconds for u in updates])}
    return msgspec.structs.replace(
        last,
        m=m,
        m_min=low,
        m_max=high,
        covers=sum(u.covers for u in updates),
        epochs=[],
        seconds=seconds,
        **_totals(updates),
        nonfinite={name: how for u in updates for name, how in u.nonfinite.items() if not name.startswith("epochs.")},
    )


def merge_plain(updates: Sequence[PendingUpdate], run: str) -> UpdateRecord | None:
    """Return the same as `merge`, vectorised; None if a number is missing or not finite, or if names differ."""
    last, rows = updates[-1], [u.row() for u in updates]
    names, times, extra = rows[-1][0], tuple(last.seconds), [u.stats for u in updates if u.stats]
    # Reports share one tuple of names, so that the comparison is one of identities.
    if any(row is not names and row != names for row, _ in rows) or any(tuple(u.seconds) != times for u in updates):
        return None
    if not (width := len(names) + len(times)):
        return None
    pack = Struct(f"{width}d").pack  # half the time of np.array
    try:
        packed = b"".join([pack(*x, *u.seconds.values()) for (_, x), u in zip(rows, updates, strict=True)])
    except StructError:  # None, or not a number
        return None
    grid = np.frombuffer(packed).reshape(-1, width)
    smallest, largest = grid.min(axis=0), grid.max(axis=0)
    # NaN fails both comparisons.
    if not (smallest.min() > -_MOST and largest.max() < _MOST):
        return None
    total = grid.sum(axis=0).tolist()
    added_stats = _ranges(extra) if extra else None
    # NaN and infinity survive the means.
    if added_stats and not all_finite(added_stats[0].values()):
        return None
    if not all(all_finite(_numbers_of(u.episodes)) for u in updates if u.episodes):
        return None
    m, low, high = _Numbers(zip(names, rows[-1][1], strict=False)), _Numbers(), _Numbers()
    for name, least, most, added in zip(names, smallest.tolist(), largest.tolist(), total, strict=False):
        if least < most:
            m[name], low[name], high[name] = added / len(updates), least, most
    if added_stats:
        m, low, high = (common | some for common, some in zip((m, low, high), added_stats, strict=True))
    return UpdateRecord(
        v=VERSION,
        run=run,
        seq=0,
        t=last.t,
        env_steps=last.env_steps,
        updates=last.updates,
        m=m,
        covers=len(updates),
        m_min=low,
        m_max=high,
        seconds=dict(zip(times, total[len(names) :], strict=True)),
        **_totals(updates),
        labels=dict(last.labels),
    )


def _ranges(rows: Sequence[Mapping[str, float | None]]) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Return mean, minimum and maximum of each name; the last two only if it varied."""
    m, low, high = _Numbers(), _Numbers(), _Numbers()
    for name, values in _columns(rows):
        if not values:
            m[name] = None
            continue
        smallest, largest = min(values), max(values)
        # sum / len of equal numbers can differ from them in the last digit.
        if smallest == largest:
            m[name] = smallest
        else:
            m[name], low[name], high[name] = sum(values) / len(values), smallest, largest
    return m, low, high


def _columns(rows: Sequence[Mapping[str, float | None]]) -> Iterable[tuple[str, Sequence[float]]]:
    """Yield each name with its numbers, from the rows that have one."""
    names = rows[0].keys()
    if all(row.keys() == names for row in rows):
        for name, column in zip(names, zip(*(row.values() for row in rows), strict=True), strict=True):
            yield name, [x for x in column if x is not None] if None in column else cast(Sequence[float], column)
    else:
        columns: dict[str, list[float]] = {}
        for row in rows:
            for name, x in row.items():
                column = columns.setdefault(name, [])
                if x is not None:
                    column.append(x)
        yield from columns.items()


def _totals(updates: Sequence[UpdateRecord] | Sequence[PendingUpdate]) -> dict[str, Any]:
    """Return the fields of the merged record that are sums over the updates, or of the last one that has any."""
    skipped = [u.skipped_reason for u in updates if u.skipped_reason]
    counts = ("episodes_dropped", "stopped_early", "rolled_back")
    totals: dict[str, Any] = {name: sum([getattr(u, name) for u in updates]) for name in counts}
    parts, episodes = [u.episodes for u in updates if u.episodes], None
    if parts:
        episodes = Episodes(
            count=sum(p.count for p in parts),
            return_mean=_weighted([(p.count, p.return_mean) for p in parts]),
            return_min=min((p.return_min for p in parts if p.return_min is not None), default=None),
            return_max=max((p.return_max for p in parts if p.return_max is not None), default=None),
            length_mean=_weighted([(p.count, p.length_mean) for p in parts]),
            success_rate=_weighted([(p.count, p.success_rate) for p in parts]),
        )
    return totals | {"episodes": episodes, "skipped_reason": skipped[-1] if skipped else None}


def _weighted(parts: Sequence[tuple[int, float | None]]) -> float | None:
    known = [(n, x) for n, x in parts if x is not None]
    total = sum(n for n, _ in known)
    return sum(n * x for n, x in known) / total if total else None
