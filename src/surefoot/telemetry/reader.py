"""A run's record read back: rotated parts in order, and what is broken is told, never raised."""

from __future__ import annotations

import math
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from surefoot.errors import RunNotFound, TelemetryError
from surefoot.telemetry import schema
from surefoot.telemetry.files import rotation
from surefoot.telemetry.foreign import foreign_format
from surefoot.telemetry.schema import (
    EndRecord,
    EvaluationRecord,
    EventRecord,
    FindingRecord,
    HeaderRecord,
    Record,
    UpdateRecord,
)


@dataclass(frozen=True, slots=True)
class LineProblem:
    """A line that could not be read."""

    part: str
    """Name of the file."""
    line: int
    """Counted from 1."""
    message: str

    def __str__(self) -> str:
        return f"{self.part}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class ReadResult:
    """All that a record holds."""

    records: list[Record]
    problems: list[LineProblem]


class _Claim(msgspec.Struct):
    """The version that a line states; records of telemetry 1.x do not have `v`."""

    v: str | None = None


_READERS: dict[str, Callable[[bytes], Record]] = {"2": schema.decode}
"""By major version."""
_claims = msgspec.json.Decoder(_Claim)
_objects = msgspec.json.Decoder(dict[str, Any])


def read_records(path: Path | str) -> Iterator[Record]:
    """The records of a run directory or a record file, in order; what is unreadable is left out."""
    return (r for r in scan(path) if not isinstance(r, LineProblem))


def read_all(path: Path | str) -> ReadResult:
    """Every record, and every line that is none."""
    reading = ReadResult([], [])
    for item in scan(path):
        if isinstance(item, LineProblem):
            reading.problems.append(item)
        else:
            reading.records.append(item)
    return reading


def scan(path: Path | str) -> Iterator[Record | LineProblem]:
    """Records and problems as they come. Raises `RunNotFound` or `TelemetryError` at once if there is no record."""
    return _scan(_files(Path(path)))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise RunNotFound(f"no run or record at {path}; give a run directory or an .ndjson file")
    live = rotation.live_file(path)
    files = rotation.rotated_parts(live) + ([live] if live.exists() else [])
    if not files:
        raise TelemetryError(
            f"{path} has no {schema.FILE_NAME}; a run writes one as it trains, unless it was started with --telemetry off"
        )
    return files


def _scan(files: list[Path]) -> Iterator[Record | LineProblem]:
    seen = 0
    for part in files:
        older = seen
        for item in _read_part(part):
            if isinstance(item, LineProblem):
                yield item
            elif item.seq > older:  # a crash while rotating leaves the same lines in two parts
                seen = max(seen, item.seq)
                yield item


def _read_part(part: Path) -> Iterator[Record | LineProblem]:
    number, seconds = 0, 0.0
    try:
        with rotation.open_part(part) as file:
            for line in file:
                number += 1
                if not line.endswith(b"\n"):
                    yield LineProblem(part.name, number, f"torn: {len(line)} bytes without a line end")
                elif line.strip():
                    item = read_line(part.name, number, line, before=seconds)
                    if isinstance(item, UpdateRecord):
                        seconds = item.t
                    yield item
    except (OSError, EOFError, zlib.error) as error:
        yield LineProblem(part.name, number + 1, f"the file cannot be read further: {error}")


def read_line(part: str, number: int, line: bytes, *, before: float = 0.0) -> Record | LineProblem:
    """The record of a line of any version, or what keeps it from being one.

    `before` is the time of the line above: records of telemetry 1.x have the duration of an epoch, not its time.
    """
    try:
        claim = _claims.decode(line)
        if reader := _READERS.get((claim.v or "").partition(".")[0]):
            return reader(line)
        if claim.v is None:
            return _read_foreign(part, number, _objects.decode(line), before)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return LineProblem(part, number, f"not a record: {error}")
    except RecursionError:
        return LineProblem(part, number, "not a record: it is nested too deep to be read")
    return LineProblem(part, number, f"version {claim.v!r} is unknown; this reader knows {', '.join(_READERS)}.x")


def _read_foreign(part: str, number: int, line: dict[str, Any], before: float) -> Record | LineProblem:
    foreign = foreign_format()
    version = foreign.version_of(line)
    if version is None:
        if "telemetry_version" in line:
            said = repr(line["telemetry_version"])[:40]
            known = ", ".join(foreign.VERSIONS)
            return LineProblem(part, number, f"telemetry_version {said} is unknown; there were {known}")
        return LineProblem(part, number, f'not a record: it has no version; {schema.VERSION} would say "v"')
    if wrong := foreign.errors(line, version):
        return LineProblem(part, number, f"not a {version} record: {wrong[0]}")
    return foreign.migrate(line, version, number=number, before=before)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTable:
    """Rows that share three clocks; every array has one number a row, NaN where there is none."""

    env_steps: np.ndarray
    updates: np.ndarray
    t: np.ndarray
    """Unix time."""
    elapsed: np.ndarray
    """Seconds the run was running, the time between two sessions left out."""
    columns: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, name: str) -> np.ndarray:
        """A column, all NaN if no row has it."""
        column = self.columns.get(name)
        return np.full(len(self), np.nan) if column is None else column


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """A record as columns."""

    header: HeaderRecord | None
    """Of the last session."""
    end: EndRecord | None
    """Of the last session; None if it goes on, or was cut short."""
    sessions: int
    updates: RecordTable
    """A row an `update` line. Columns: each metric; `<metric>.min` and `.max` over the covered updates; `covers`;
    `episodes.*`; `seconds.*`; `nonfinite.<metric>` is 1 where the number was NaN or infinite."""
    evals: RecordTable
    """A row an `eval` line. Columns: `return_mean`, `return_std`, `return_min`, `return_max`, `length_mean`,
    `success_rate`, `episodes`."""
    events: list[EventRecord]
    events_elapsed: list[float]
    problems: list[LineProblem]
    findings: list[FindingRecord] = field(default_factory=list[FindingRecord])
    """Each as last told: open, or resolved."""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    """The words of the last update that has any."""


def load_curves(path: Path | str) -> Curves:
    """The columns of a run directory or a record file; memory for numbers only, however long the run."""
    clock = _Clock()
    updates, evals = _Rows(), _Rows()
    header, end = None, None
    events: list[EventRecord] = []
    events_elapsed: list[float] = []
    problems: list[LineProblem] = []
    findings: dict[tuple[str, int], FindingRecord] = {}
    labels: dict[str, str] = {}
    for item in scan(path):
        if isinstance(item, LineProblem):
            problems.append(item)
            continue
        now = clock.tick(item)
        match item:
            case HeaderRecord():  # one that only begins a rotated part may follow the end
                end = end if header and header.session == item.session else None
                header = item
            case UpdateRecord():
                updates.add(item, now, _update_row(item))
                labels = item.labels or labels
            case EvaluationRecord():
                evals.add(item, now, {name: getattr(item, name) for name in _EVAL_COLUMNS})
            case EventRecord():
                events.append(item)
                events_elapsed.append(now)
                end = None if item.name == "resumed" else end
            case FindingRecord():
                findings[item.rule, item.since_update] = item
            case EndRecord():
                end = item
            case _:
                pass
    return Curves(
        header=header,
        end=end,
        sessions=clock.sessions,
        updates=updates.table(),
        evals=evals.table(),
        events=events,
        events_elapsed=events_elapsed,
        problems=problems,
        findings=list(findings.values()),
        labels=labels,
    )


_EVAL_COLUMNS = ("return_mean", "return_std", "return_min", "return_max", "length_mean", "success_rate", "episodes")


def _update_row(update: UpdateRecord) -> dict[str, float | None]:
    row = dict(update.m)
    row["covers"] = update.covers
    row |= {f"{name}.min": x for name, x in update.m_min.items()}
    row |= {f"{name}.max": x for name, x in update.m_max.items()}
    row |= {f"seconds.{name}": x for name, x in update.seconds.items()}
    row |= {f"nonfinite.{name.removeprefix('m.')}": 1.0 for name in update.nonfinite}
    if update.episodes:
        row |= {f"episodes.{name}": x for name, x in msgspec.structs.asdict(update.episodes).items()}
    return row


class _Clock:
    """Running time over several sessions."""

    def __init__(self) -> None:
        self.sessions = 0
        self._session: str | None = None
        self._start = self._last = self._before = 0.0

    def tick(self, record: Record) -> float:
        """Seconds the run had been running when `record` was written."""
        fresh = isinstance(record, HeaderRecord) and record.session != self._session
        if fresh or (isinstance(record, EventRecord) and record.name == "resumed") or self._start == 0.0:
            self._before += self._last - self._start
            self._start = self._last = record.t
        if isinstance(record, HeaderRecord) and fresh:
            self._session = record.session
            self.sessions += 1
        self._last = max(self._last, record.t)  # the clock of the machine may have been set back
        return self._before + self._last - self._start


class _Rows:
    """Numbers by name, row after row; a name that comes late has NaN before."""

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
