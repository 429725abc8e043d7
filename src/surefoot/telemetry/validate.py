"""Validation of a record line by line: what is wrong, in which line, and what would be right."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from surefoot.errors import TelemetryError
from surefoot.telemetry.files import rotation
from surefoot.telemetry.line_errors import (
    FIELDS,
    UNREADABLE,
    decode_any,
    did_you_mean,
    explain_no_record,
    explain_not_json,
    foreign_format,
    json_type,
    repeated_names,
    value_at,
)
from surefoot.telemetry.schema import (
    METRICS,
    VERSION,
    EndRecord,
    EventRecord,
    HeaderRecord,
    MinibatchRecord,
    Record,
    UpdateRecord,
    decode,
)

Weight = Literal["error", "warning"]

# A broken file of a million lines would otherwise keep a million messages; all of them are counted.
MOST_MISTAKES = 1000
_NAME_END = b'":'
_SPELLED = frozenset(("nan", "inf", "-inf"))


@dataclass(frozen=True, slots=True)
class LineError:
    """A mistake in a line."""

    file: str
    line: int
    """Counted from 1."""
    message: str
    weight: Weight = "error"

    def __str__(self) -> str:
        note = "" if self.weight == "error" else "warning: "
        return f"{self.file}:{self.line}: {note}{self.message}"


@dataclass(slots=True)
class FileReport:
    """The result of validating one file."""

    file: str
    lines: int = 0
    records: int = 0
    """Lines that are records."""
    versions: dict[str, int] = field(default_factory=dict[str, int])
    errors: int = 0
    warnings: int = 0
    mistakes: list[LineError] = field(default_factory=list[LineError])
    """The first `MOST_MISTAKES` of them."""


def validate(path: Path | str, *, strict: bool = False) -> list[FileReport]:
    """Return a report for each part of a run directory's record, or for a single file.

    Mistakes are reported, never raised; only a missing file raises `TelemetryError`. `strict` also reports unknown
    fields.
    """
    live = rotation.live_file(Path(path))
    files = [*rotation.rotated_parts(live), live] if Path(path).is_dir() else [live]
    files = [file for file in files if file.exists()]
    if not files:
        raise TelemetryError(f"there is no record at {path}; pass an .ndjson or .jsonl file, or a run directory")
    checker = _Checker(strict)
    return [checker.run(str(file), _lines(file)) for file in files]


def _lines(file: Path) -> Iterator[bytes]:
    """Yield the lines of a file. Opened at the first one, so that the checker also reports a file that cannot be opened."""
    with rotation.open_part(file) as lines:
        yield from lines


def validate_lines(name: str, lines: Iterable[bytes], *, strict: bool = False) -> FileReport:
    """Return a report on lines of any source; each but perhaps the last ends in a newline."""
    return _Checker(strict).run(name, lines)


class _Checker:
    """Check lines against the lines before them, over the parts of one record in order."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._seq = self._steps = self._updates = 0
        self._run: str | None = None
        self._ended = False
        self._typos: dict[str, str | None] = {}
        self._report = FileReport("")

    def run(self, name: str, lines: Iterable[bytes]) -> FileReport:
        self._report = report = FileReport(name)
        number, current, older, canonical = 0, 0, False, bytearray()
        encode_into = msgspec.json.Encoder().encode_into
        try:
            for number, line in enumerate(lines, 1):
                try:
                    record = None if older and b'"v"' not in line else decode(line)
                except UNREADABLE:
                    record = None
                if record is None or record.v[:2] != "2.":
                    self._check_other(number, line)
                    older = True
                    continue
                if line[-1] != 10:
                    self._add(number, f"torn: {len(line)} bytes without a line end; the writer was killed here")
                current += 1
                encode_into(record, canonical)
                # As many names as the record has: the usual case, in a few microseconds.
                if line.count(_NAME_END) != canonical.count(_NAME_END):
                    self._check_repeats(number, line)
                # The fast path: a line that simply follows the last needs no further checks.
                if record.seq != self._seq + 1 or record.run != self._run or record.nonfinite or self._strict:
                    self._check_line(number, line, record)
                self._seq = record.seq
                self._check_order(number, record)
        except (OSError, EOFError, zlib.error) as error:
            number += 1
            self._add(number, f"the file cannot be read further: {error}; only the lines above were checked")
        report.lines = number
        if current:
            report.versions["2"] = current
        report.records += current
        if not report.records and not report.errors:
            self._add(max(number, 1), f"the file has no record; the first line is a header of version {VERSION}")
        elif current and not self._ended and not report.errors:
            self._add(number, "no end record: the run is still running, or was killed", "warning")
        return report

    def _check_repeats(self, number: int, line: bytes) -> None:
        for name in repeated_names(line):
            self._add(number, f"{name!r} is there twice in one object; readers would silently take one of them")

    def _check_order(self, number: int, record: Record) -> None:
        """Check the counters that must never decrease."""
        if record.updates < self._updates and not isinstance(record, EventRecord):
            self._add(number, f"updates is {record.updates} after {self._updates}; it must not decrease", "warning")
        self._updates = record.updates
        kind = type(record)
        if kind is UpdateRecord:
            if record.env_steps < self._steps:
                message = f"env_steps is {record.env_steps} after {self._steps}; it must not decrease between updates"
                self._add(number, message, "warning")
            self._steps = record.env_steps
        elif kind is HeaderRecord:
            self._ended = False
        elif kind is EndRecord:
            self._ended = True
        elif kind is EventRecord:
            self._steps = record.env_steps  # "resumed" goes back to a checkpoint

    def _check_line(self, number: int, line: bytes, record: Record) -> None:
        """Check a line that does not simply follow the last one."""
        resumed = isinstance(record, EventRecord) and record.name == "resumed"
        if record.seq <= self._seq:
            message = f"seq is {record.seq} after {self._seq}; it must increase: two writers, or duplicate lines"
            self._add(number, message)
        elif self._seq and record.seq > self._seq + 1 and not resumed:
            message = f"seq jumps from {self._seq} to {record.seq}; {record.seq - self._seq - 1} lines are missing"
            self._add(number, message, "warning")
        if self._run is None:
            self._run = record.run
            if not isinstance(record, HeaderRecord | EventRecord):
                kind = str(type(record).__struct_config__.tag)
                message = f"the first line is of kind {kind!r}; a record begins with its header, kind 'run'"
                self._add(number, message, "warning")
        elif record.run != self._run:
            self._add(number, f"run is {record.run!r} after {self._run!r}; a record is of one run")
            self._run = record.run
        for name, how in record.nonfinite.items():
            if how not in _SPELLED:
                self._add(number, f"nonfinite.{name} is {how!r}; it must be 'nan', 'inf' or '-inf'")
            elif value_at(record, name) is not None:
                self._add(number, f"nonfinite names {name}, but the number is there; it must be null")
        if self._strict:
            self._check_names(number, line, record)

    def _check_names(self, number: int, line: bytes, record: Record) -> None:
        raw = decode_any(line)
        fields = FIELDS[raw["kind"]]
        for name in raw:
            if name not in fields:
                self._add(number, f"field {name!r} is unknown{did_you_mean(name, fields)}", "warning")
        if isinstance(record, UpdateRecord | MinibatchRecord):
            for name in record.m:
                if name not in self._typos:
                    # A use may add metrics: only a name close to a known one is probably a typo.
                    self._typos[name] = None if name in METRICS else did_you_mean(name, METRICS, cutoff=0.85)
                if suggestion := self._typos[name]:
                    self._add(number, f"number {name!r} is unknown{suggestion}", "warning")

    def _check_other(self, number: int, line: bytes) -> None:
        """Check a line that is not a record of the current version: an older one, or a mistake."""
        report = self._report
        if not line.strip():
            self._add(number, "the line is empty; every line is one JSON object", "warning")
            return
        try:
            raw: Any = decode_any(line)
        except RecursionError:
            self._add(number, "nested too deep to be read; a record has at most a few levels")
            return
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._add(number, explain_not_json(line, str(error)))
            return
        if not isinstance(raw, dict):
            self._add(number, f"a JSON {json_type(raw)}; every line is one JSON object")
            return
        flat: dict[str, Any] = raw  # pyright: ignore[reportUnknownVariableType]  JSON's keys are strings
        self._check_repeats(number, line)
        foreign = foreign_format()
        version = foreign.version_of(flat)
        if version is None:
            self._add(number, explain_no_record(line, flat))
            return
        mistakes = foreign.errors(flat, version)
        for message in mistakes:
            self._add(number, f"{version}: {message}")
        if not mistakes:
            report.records += 1
            report.versions[version] = report.versions.get(version, 0) + 1
        if line[-1:] != b"\n":
            self._add(number, f"torn: {len(line)} bytes without a line end; the writer was killed here")
        if self._strict:
            for message in foreign.line_warnings(flat, version):
                self._add(number, f"{version}: {message}", "warning")

    def _add(self, number: int, message: str, weight: Weight = "error") -> None:
        report = self._report
        if weight == "error":
            report.errors += 1
        else:
            report.warnings += 1
        if len(report.mistakes) < MOST_MISTAKES:
            report.mistakes.append(LineError(report.file, number, message, weight))
