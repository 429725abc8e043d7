"""Several updates as one line, for runs that learn faster than anybody reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np

from surefoot.telemetry.files.json_numbers import all_finite, finite, finite_episodes, finite_rows, numbers_of
from surefoot.telemetry.schema import VERSION, Episodes, UpdateRecord

_Numbers = dict[str, float | None]
_MOST = 1e290
"""Beyond it, sums may leave what a float can hold."""


Rows = Sequence[Mapping[str, float | None]]
NewRows = list[dict[str, float | None]]
"""Rows that nobody else keeps."""
Row = tuple[tuple[str, ...], Sequence[float | None]]
"""Names and their numbers."""
MetricSource = Mapping[str, float | None] | Callable[[], Row]
"""Numbers by name, or what gives them when it is asked."""


class PendingUpdate(NamedTuple):
    """An update as the run told it, before it is a line: nothing asked for, nothing copied, nothing checked."""

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

    def row(self) -> Row:
        """What `m` says."""
        return self.m() if callable(self.m) else (tuple(self.m), tuple(self.m.values()))

    def record(self, run: str) -> UpdateRecord:
        """The update as a line of its own; what is not finite is not yet looked for."""
        epochs = self.epochs() if callable(self.epochs) else [dict(epoch) for epoch in self.epochs]
        return UpdateRecord(
            v=VERSION,
            run=run,
            seq=0,
            t=self.t,
            env_steps=self.env_steps,
            updates=self.updates,
            m=dict(zip(*self.row(), strict=True)),
            epochs=epochs,
            seconds=dict(self.seconds),
            episodes=self.episodes,
            episodes_dropped=self.episodes_dropped,
            stopped_early=int(self.stopped_early),
            rolled_back=int(self.rolled_back),
            skipped_reason=self.skipped_reason,
            labels=dict(self.labels),
        )


def merge_pending(waiting: Sequence[PendingUpdate], run: str) -> UpdateRecord:
    """Return the updates as one record, with null for what JSON cannot hold."""
    merged = merge_plain(waiting, run) if len(waiting) > 1 else None
    return merged or merge([_finite(update.record(run)) for update in waiting])


def _finite(update: UpdateRecord) -> UpdateRecord:
    """The update with null for what JSON cannot hold, and its name."""
    if all_finite(chain.from_iterable(row.values() for row in (update.m, update.seconds, *update.epochs))) and (
        update.episodes is None or all_finite(numbers_of(update.episodes))
    ):
        return update
    bad: dict[str, str] = {}
    update.m = finite(update.m, "m", bad)
    update.epochs = finite_rows(update.epochs, "epochs", bad)
    update.seconds = finite(update.seconds, "seconds", bad)
    update.episodes = finite_episodes(update.episodes, bad) if update.episodes else None
    update.nonfinite = bad
    return update


def merge(updates: Sequence[UpdateRecord]) -> UpdateRecord:
    """One record for all: means with the range of what varied, times and counts summed, the rest from the last."""
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


def merge_plain(told: Sequence[PendingUpdate], run: str) -> UpdateRecord | None:
    """What `merge` gives, many numbers at a time; None where that cannot be: a number is missing or not finite.

    The updates begin with the same names; what some say beyond them, as they do now and then, is added up by itself.
    """
    last, rows, times = told[-1], [u.row() for u in told], tuple(told[-1].seconds)
    names = min([names for names, _ in rows], key=len)
    width = len(names)
    more = [dict(zip(said[width:], x[width:], strict=True)) for said, x in rows if len(said) > width]
    if any(said[:width] != names for said, _ in rows) or any(tuple(u.seconds) != times for u in told):
        return None
    try:
        grid = np.array([(*x[:width], *u.seconds.values()) for (_, x), u in zip(rows, told, strict=True)], np.float64)
    except TypeError:  # what is neither a number nor None
        return None
    smallest, largest, total = grid.min(axis=0).tolist(), grid.max(axis=0).tolist(), grid.sum(axis=0).tolist()
    episodes = [u.episodes for u in told if u.episodes]
    if not all(low > -_MOST and high < _MOST for low, high in zip(smallest, largest, strict=True)):  # NaN is neither
        return None
    if not all(map(all_finite, [*map(numbers_of, episodes), *(row.values() for row in more)])):
        return None
    m, low, high = _Numbers(zip(names, rows[-1][1], strict=False)), _Numbers(), _Numbers()
    for name, least, most, added in zip(names, smallest, largest, total, strict=False):
        if least < most:
            m[name], low[name], high[name] = added / len(told), least, most
    if more:
        m, low, high = (mine | its for mine, its in zip((m, low, high), _ranges(more), strict=True))
    return UpdateRecord(
        v=VERSION,
        run=run,
        seq=0,
        t=last.t,
        env_steps=last.env_steps,
        updates=last.updates,
        m=m,
        covers=len(told),
        m_min=low,
        m_max=high,
        seconds=dict(zip(times, total[width:], strict=True)),
        **_totals(told),
        labels=dict(last.labels),
    )


def _ranges(rows: Sequence[Mapping[str, float | None]]) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Mean, smallest and largest of each name; the last two only of what varied."""
    m, low, high = _Numbers(), _Numbers(), _Numbers()
    for name, values in _columns(rows):
        if not values:
            m[name] = None
            continue
        smallest, largest = min(values), max(values)
        if smallest == largest:  # so that what is constant stays itself to the last digit
            m[name] = smallest
        else:
            m[name], low[name], high[name] = sum(values) / len(values), smallest, largest
    return m, low, high


def _columns(rows: Sequence[Mapping[str, float | None]]) -> Iterable[tuple[str, Sequence[float]]]:
    """Each name with its numbers over the rows that have one."""
    names = rows[0].keys()
    if all(row.keys() == names for row in rows):
        for name, column in zip(names, zip(*(row.values() for row in rows), strict=True), strict=True):
            yield name, [x for x in column if x is not None] if None in column else cast(Sequence[float], column)
    else:
        for name in dict.fromkeys(name for row in rows for name in row):
            yield name, [x for row in rows if (x := row.get(name)) is not None]


def _totals(updates: Sequence[UpdateRecord] | Sequence[PendingUpdate]) -> dict[str, Any]:
    """Return the fields of the merged record that are sums over the updates, or of the last one that has any."""
    skipped = [u.skipped_reason for u in updates if u.skipped_reason]
    counts = ("episodes_dropped", "stopped_early", "rolled_back")
    totals: dict[str, Any] = {name: sum([getattr(u, name) for u in updates]) for name in counts}
    episodes = _merge_episodes([u.episodes for u in updates if u.episodes])
    return totals | {"episodes": episodes, "skipped_reason": skipped[-1] if skipped else None}


def _merge_episodes(parts: Sequence[Episodes]) -> Episodes | None:
    if not parts:
        return None
    return Episodes(
        count=sum(p.count for p in parts),
        return_mean=_weighted([(p.count, p.return_mean) for p in parts]),
        return_min=min((p.return_min for p in parts if p.return_min is not None), default=None),
        return_max=max((p.return_max for p in parts if p.return_max is not None), default=None),
        length_mean=_weighted([(p.count, p.length_mean) for p in parts]),
        success_rate=_weighted([(p.count, p.success_rate) for p in parts]),
    )


def _weighted(parts: Sequence[tuple[int, float | None]]) -> float | None:
    known = [(n, x) for n, x in parts if x is not None]
    total = sum(n for n, _ in known)
    return sum(n * x for n, x in known) / total if total else None
