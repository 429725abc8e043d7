"""Reading a run's record: rotated parts in order; broken lines are reported, never raised."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from surefoot.errors import RunNotFound, TelemetryError
from surefoot.telemetry import schema
from surefoot.telemetry.files import rotation
from surefoot.telemetry.line_errors import explain_no_record, explain_not_json, foreign_format
from surefoot.telemetry.record_table import RecordTable, RowBuilder, RunningTime, update_row
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
    """All records of a run, and all lines that are not records."""

    records: list[Record]
    problems: list[LineProblem]


class _Claim(msgspec.Struct):
    """The version that a line states; records of telemetry 1.x do not have `v`."""

    v: str | None = None


_claims = msgspec.json.Decoder(_Claim)
_objects = msgspec.json.Decoder(dict[str, Any])


def read_records(path: Path | str, *, skip: tuple[str, ...] = ()) -> Iterator[Record]:
    """Return an iterator over the records in order; unreadable lines are left out.

    Args:
        path: Run directory or record file.
        skip: Kinds of lines that may be left out, which saves decoding them.
    """
    return (r for r in scan(path, skip=skip) if not isinstance(r, LineProblem))


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


def scan(path: Path | str, *, skip: tuple[str, ...] = ()) -> Iterator[Record | LineProblem]:
    """Return an iterator over records and problems. Raise `RunNotFound` or `TelemetryError` if there is no record.

    Args:
        path: Run directory or record file.
        skip: Kinds of lines that may be left out.
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
    rotation.refuse_later_version(files[0])
    # The recorder writes the kind first; lines of other writers are decoded and come all the same.
    starts = tuple(f'{{"kind":"{kind}",'.encode() for kind in skip)
    return _scan(files, starts)  # a generator: the errors above are raised by this call, not by the first `next`


def _scan(files: list[Path], skip: tuple[bytes, ...]) -> Iterator[Record | LineProblem]:
    last_seq = 0
    for part in files:
        # A crash during rotation leaves the same lines in two parts: those up to the last `seq` of the parts before.
        older, number, seconds = last_seq, 0, 0.0
        try:
            with rotation.open_part(part) as file:
                for line in file:
                    number += 1
                    if skip and line.startswith(skip):
                        continue
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
        return LineProblem(part, number, f"not a record: {explain_not_json(line, str(error))}")
    except RecursionError:
        return LineProblem(part, number, "not a record: it is nested too deep to be read")
    foreign = foreign_format()
    version = foreign.version_of(raw)
    if version is None:
        return LineProblem(part, number, f"not a record: {explain_no_record(line, raw)}")
    if errors := foreign.errors(raw, version):
        return LineProblem(part, number, f"not a {version} record: {errors[0]}")
    return foreign.migrate(raw, version, number=number, before=before)


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
    """The first `MOST_PROBLEMS` of them."""
    unreadable: int = 0
    """Lines that are not records, all of them."""
    findings: list[FindingRecord] = field(default_factory=list[FindingRecord])
    """The last record of each finding: open or resolved."""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    """The labels of the last update that has any."""


# A file of another kind would otherwise keep one message per line.
MOST_PROBLEMS = 100


def load_curves(path: Path | str, *, take: Callable[[UpdateRecord, float], None] | None = None) -> Curves:
    """Return a record as columns. Memory is used for the numbers only, even for a long run.

    Args:
        path: Run directory or record file.
        take: Called with each update and its running time; the updates are then not kept as rows.
    """
    clock, updates, evals = RunningTime(), RowBuilder(), RowBuilder()
    curves = Curves(updates=updates.table(), evals=evals.table())
    findings: dict[tuple[str, int], FindingRecord] = {}
    for item in scan(path):
        if isinstance(item, LineProblem):
            curves.unreadable += 1
            if len(curves.problems) < MOST_PROBLEMS:
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
                if take is None:
                    updates.add(item, now, update_row(item))
                else:
                    take(item, now)
                curves.labels = item.labels or curves.labels
            case EvaluationRecord():
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
