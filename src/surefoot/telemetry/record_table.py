"""Numbers of a record as columns: one row per update or evaluation, each with four clocks."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from surefoot.telemetry.schema import EventRecord, HeaderRecord, Record, UpdateRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTable:
    """Columns of numbers with four clocks: one number per row, NaN where a row has none."""

    env_steps: np.ndarray
    updates: np.ndarray
    t: np.ndarray
    """Unix time."""
    elapsed: np.ndarray
    """Seconds of running time, without the time between two sessions."""
    columns: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a column, all NaN if no row has it."""
        column = self.columns.get(name)
        return np.full(len(self), np.nan) if column is None else column


def update_row(update: UpdateRecord) -> dict[str, float | None]:
    """Return the numbers of an update by the names that its columns have."""
    row = update.m | {"covers": update.covers}
    row |= {f"{name}.min": x for name, x in update.m_min.items()}
    row |= {f"{name}.max": x for name, x in update.m_max.items()}
    row |= {f"seconds.{name}": x for name, x in update.seconds.items()}
    row |= {f"nonfinite.{name.removeprefix('m.')}": 1.0 for name in update.nonfinite}
    if update.episodes:
        row |= {f"episodes.{name}": x for name, x in msgspec.structs.asdict(update.episodes).items()}
    return row


class RunningTime:
    """Running time over several sessions."""

    def __init__(self) -> None:
        self.sessions = 0
        self._session: str | None = None
        self._start = self._last = self._before = 0.0

    def tick(self, record: Record) -> float:
        """Return the running time when `record` was written, in seconds."""
        fresh = isinstance(record, HeaderRecord) and record.session != self._session
        if fresh or (isinstance(record, EventRecord) and record.name == "resumed") or self._start == 0.0:
            self._before += self._last - self._start
            self._start = self._last = record.t
        if isinstance(record, HeaderRecord) and fresh:
            self._session = record.session
            self.sessions += 1
        self._last = max(self._last, record.t)  # the machine's clock may have been set back
        return self._before + self._last - self._start


class RowBuilder:
    """Numbers by name, row after row; a name that first appears in a later row has NaN before it."""

    def __init__(self) -> None:
        self._columns: dict[str, array[float]] = {}
        self._rows = 0

    def add(self, record: Record, elapsed: float, row: Mapping[str, float | None]) -> None:
        clocks = {"@env_steps": record.env_steps, "@updates": record.updates, "@t": record.t, "@elapsed": elapsed}
        for name, x in (clocks | dict(row)).items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = array("d", [math.nan]) * self._rows
            column.append(math.nan if x is None else x)
        self._rows += 1
        for column in self._columns.values():
            if len(column) < self._rows:
                column.append(math.nan)

    def table(self) -> RecordTable:
        columns = {name: np.array(column) for name, column in self._columns.items()}
        none = np.zeros(0)
        return RecordTable(
            env_steps=columns.pop("@env_steps", none).astype(np.int64),
            updates=columns.pop("@updates", none).astype(np.int64),
            t=columns.pop("@t", none),
            elapsed=columns.pop("@elapsed", none),
            columns=columns,
        )
