"""Several updates as one line, for runs that learn faster than anybody reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import msgspec
import numpy as np

from surefoot.telemetry.schema import Episodes, Update


def merge(updates: Sequence[Update]) -> Update:
    """One record for all: means with the range of what varied, times and counts summed, the rest from the last."""
    last = updates[-1]
    if len(updates) == 1:
        return last
    m: dict[str, float | None] = {}
    low: dict[str, float | None] = {}
    high: dict[str, float | None] = {}
    for name, values in _columns([u.m for u in updates]):
        if not values:
            m[name] = None
            continue
        smallest, largest = min(values), max(values)
        if smallest == largest:  # so that what is constant stays itself to the last digit
            m[name] = smallest
        else:
            m[name], low[name], high[name] = sum(values) / len(values), smallest, largest
    seconds: dict[str, float | None] = {name: sum(values) for name, values in _columns([u.seconds for u in updates])}
    return _together(updates, m, low, high, seconds)


def merge_plain(updates: Sequence[Update]) -> Update | None:
    """What `merge` gives, many numbers at a time; None where names differ or a number is missing or not finite."""
    last = updates[-1]
    names, times = last.m.keys(), last.seconds.keys()
    if any(u.m.keys() != names or u.seconds.keys() != times or u.nonfinite for u in updates):
        return None
    rows = np.array([[*u.m.values(), *u.seconds.values()] for u in updates], np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # looked for in the next line
        total = rows.sum(axis=0)
    if not np.isfinite(total).all():
        return None
    width = len(names)
    smallest, largest = rows.min(axis=0)[:width], rows.max(axis=0)[:width]
    varied = (smallest < largest).tolist()
    means, lows, highs = (total[:width] / len(updates)).tolist(), smallest.tolist(), largest.tolist()
    m, low, high = dict(last.m), dict[str, float | None](), dict[str, float | None]()
    for name, differs, mean, least, most in zip(names, varied, means, lows, highs, strict=True):
        if differs:
            m[name], low[name], high[name] = mean, least, most
    seconds: dict[str, float | None] = dict(zip(times, total[width:].tolist(), strict=True))
    return _together(updates, m, low, high, seconds)


def _together(
    updates: Sequence[Update],
    m: dict[str, float | None],
    low: dict[str, float | None],
    high: dict[str, float | None],
    seconds: dict[str, float | None],
) -> Update:
    return msgspec.structs.replace(
        updates[-1],
        m=m,
        m_min=low,
        m_max=high,
        covers=sum(u.covers for u in updates),
        epochs=[],
        seconds=seconds,
        episodes=_merge_episodes([u.episodes for u in updates if u.episodes]),
        episodes_dropped=sum(u.episodes_dropped for u in updates),
        stopped_early=sum(u.stopped_early for u in updates),
        rolled_back=sum(u.rolled_back for u in updates),
        skipped_reason=next((u.skipped_reason for u in reversed(updates) if u.skipped_reason), None),
        nonfinite={name: how for u in updates for name, how in u.nonfinite.items() if not name.startswith("epochs.")},
    )


def _columns(rows: Sequence[dict[str, float | None]]) -> Iterable[tuple[str, Sequence[float]]]:
    """Each name with its numbers over the rows that have one."""
    names = rows[0].keys()
    if all(row.keys() == names for row in rows):
        for name, column in zip(names, zip(*(row.values() for row in rows), strict=True), strict=True):
            yield name, [x for x in column if x is not None] if None in column else cast(Sequence[float], column)
    else:
        for name in dict.fromkeys(name for row in rows for name in row):
            yield name, [x for row in rows if (x := row.get(name)) is not None]


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
