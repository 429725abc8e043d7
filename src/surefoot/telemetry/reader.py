"""Reading a run's record: rotated parts in order; broken lines are reported, never raised."""

from __future__ import annotations

import math
import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from surefoot.errors import RunNotFound, TelemetryError
from surefoot.telemetry import schema
from surefoot.telemetry.files import rotation
from surefoot.telemetry.line_errors import explain_no_record, foreign_format
from surefoot.telemetry.schema import EndRecord, EventRecord, FindingRecord, HeaderRecord, Record, UpdateRecord


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
    """All records of a run, and all lines that are not records."""

    records: list[Record]
    problems: list[LineProblem]


class _Claim(msgspec.Struct):
    """The version that a line states; records of telemetry 1.x do not have `v`."""

    v: str | None = None


_claims = msgspec.json.Decoder(_Claim)
_objects = msgspec.json.Decoder(dict[str, Any])


def read_records(path: Path | str) -> Iterator[Record]:
    """Return an iterator over the records in order; unreadable lines are left out.

    Args:
        path: Run directory or record file.
    """
    return (r for r in scan(path) if not isinstance(r, LineProblem))


def read_all(path: Path | str) -> ReadResult:
    """Return every record, and every line that is not one.

    Args:
        path: Run directory or record file.
    """
    result = ReadResult([], [])
    for item in scan(path):
        if isinstance(item, LineProblem):
            result.problems.append(item)
        else:
            result.records.append(item)
    return result


def scan(path: Path | str) -> Iterator[Record | LineProblem]:
    """Return an iterator over records and problems. Raise `RunNotFound` or `TelemetryError` if there is no record.

    Args:
        path: Run directory or record file.
    """
    path = Path(path)
    if not path.exists():
        raise RunNotFound(f"no run or record at {path}; pass a run directory or an .ndjson file")
    live = rotation.live_file(path)
    files = rotation.rotated_parts(live) + ([live] if live.exists() else [])
    if not files:
        raise TelemetryError(
            f"{path} has no {schema.FILE_NAME}; a run writes one while it trains, except with --telemetry off"
        )
    return _scan(files)  # a generator: the errors above are raised by this call, not by the first `next`


def _scan(files: list[Path]) -> Iterator[Record | LineProblem]:
    last_seq = 0
    for part in files:
        # A crash during rotation leaves the same lines in two parts: those up to the last `seq` of the parts before.
        older, number, seconds = last_seq, 0, 0.0
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
                        if isinstance(item, LineProblem):
                            yield item
                        elif item.seq > older:
                            last_seq = max(last_seq, item.seq)
                            yield item
        except (OSError, EOFError, zlib.error) as error:
            yield LineProblem(part.name, number + 1, f"the file cannot be read further: {error}")


def read_line(part: str, number: int, line: bytes, *, before: float = 0.0) -> Record | LineProblem:
    """Return the record of a line of any version, or the problem with it.

    Args:
        part: Name of the file, for the problem.
        number: Line number, counted from 1.
        line: The line with its line end.
        before: Time of the line above: records of telemetry 1.x have the duration of an epoch, not its time.
    """
    try:
        claim = _claims.decode(line)
        if claim.v is not None:
            if claim.v.partition(".")[0] == "2":
                return schema.decode(line)
            return LineProblem(part, number, f"version {claim.v!r} is unknown; this reader knows 2.x")
        raw = _objects.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return LineProblem(part, number, f"not a record: {error}")
    except RecursionError:
        return LineProblem(part, number, "not a record: it is nested too deep to be read")
    foreign = foreign_format()
    version = foreign.version_of(raw)
    if version is None:
        return LineProblem(part, number, f"not a record: {explain_no_record(line, raw)}")
    if errors := foreign.errors(raw, version):
        return LineProblem(part, number, f"not a {version} record: {errors[0]}")
    return foreign.migrate(raw, version, number=number, before=before)


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


@dataclass(slots=True, kw_only=True)
class Curves:
    """A record as columns."""

    header: HeaderRecord | None = None
    """Of the last session."""
    end: EndRecord | None = None
    """Of the last session; None if it is still running or was killed."""
    sessions: int = 0
    updates: RecordTable
    """One row per `update` line. Columns: each metric; `<metric>.min` and `.max` over the covered updates; `covers`;
    `episodes.*`; `seconds.*`; `nonfinite.<metric>` is 1 where the number was NaN or infinite."""
    evals: RecordTable
    """One row per `eval` line. Columns: `return_mean`, `return_std`, `return_min`, `return_max`, `length_mean`,
    `success_rate`, `episodes`."""
    events: list[EventRecord] = field(default_factory=list[EventRecord])
    events_elapsed: list[float] = field(default_factory=list[float])
    problems: list[LineProblem] = field(default_factory=list[LineProblem])
    findings: list[FindingRecord] = field(default_factory=list[FindingRecord])
    """The last record of each finding: open or resolved."""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    """The labels of the last update that has any."""


def load_curves(path: Path | str) -> Curves:
    """Return a record as columns. Memory is used for the numbers only, even for a long run.

    Args:
        path: Run directory or record file.
    """
    clock, updates, evals = _Clock(), _Rows(), _Rows()
    curves = Curves(updates=updates.table(), evals=evals.table())
    findings: dict[tuple[str, int], FindingRecord] = {}
    for item in scan(path):
        if isinstance(item, LineProblem):
            curves.problems.append(item)
            continue
        now = clock.tick(item)
        match item:
            case HeaderRecord():
                # A header that only begins a rotated part may follow the end of its own session.
                if curves.header is None or curves.header.session != item.session:
                    curves.end = None
                curves.header = item
            case UpdateRecord():
                updates.add(item, now, _update_row(item))
                curves.labels = item.labels or curves.labels
            case schema.EvaluationRecord():
                evals.add(item, now, {name: getattr(item, name) for name in _EVAL_COLUMNS})
            case EventRecord():
                curves.events.append(item)
                curves.events_elapsed.append(now)
                curves.end = None if item.name == "resumed" else curves.end
            case FindingRecord():
                findings[item.rule, item.since_update] = item
            case EndRecord():
                curves.end = item
            case _:
                pass
    curves.sessions, curves.findings = clock.sessions, list(findings.values())
    curves.updates, curves.evals = updates.table(), evals.table()
    return curves


_EVAL_COLUMNS = ("return_mean", "return_std", "return_min", "return_max", "length_mean", "success_rate", "episodes")


def _update_row(update: UpdateRecord) -> dict[str, float | None]:
    row = update.m | {"covers": update.covers}
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


class _Rows:
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
