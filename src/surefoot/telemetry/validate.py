"""A record checked line by line: what is wrong, in which line, and what would be right."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from surefoot.errors import TelemetryError
from surefoot.telemetry.files import rotation
from surefoot.telemetry.foreign import foreign_format
from surefoot.telemetry.line_errors import (
    FIELDS,
    UNREADABLE,
    decode,
    decode_any,
    did_you_mean,
    explain_no_record,
    explain_not_json,
    json_type,
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
)

Weight = Literal["error", "warning"]

KEPT = 1000
"""Mistakes of a file that are kept; all are counted."""
_SPELLED = frozenset(("nan", "inf", "-inf"))


@dataclass(frozen=True, slots=True)
class LineError:
    """Something wrong with a line."""

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
    """What a whole record is."""

    file: str
    lines: int = 0
    records: int = 0
    """Lines that are records."""
    versions: dict[str, int] = field(default_factory=dict[str, int])
    errors: int = 0
    warnings: int = 0
    mistakes: list[LineError] = field(default_factory=list[LineError])
    """The first `KEPT` of them."""


def validate(path: Path | str, *, strict: bool = False) -> list[FileReport]:
    """A verdict for each part of a run directory's record, or for a single file.

    Every mistake is told, none raised; only a file that is not there is an error. `strict` also looks for fields that
    nobody knows.
    """
    live = rotation.live_file(Path(path))
    files = [*rotation.rotated_parts(live), live] if Path(path).is_dir() else [live]
    files = [file for file in files if file.exists()]
    if not files:
        raise TelemetryError(f"there is no record at {path}; give an .ndjson or .jsonl file, or a run directory")
    checker = _Checker(strict)
    return [checker.run(str(file), _lines(file)) for file in files]


def validate_lines(name: str, lines: Iterable[bytes], *, strict: bool = False) -> FileReport:
    """The verdict on lines from anywhere; each but perhaps the last ends in a newline."""
    return _Checker(strict).run(name, lines)


def _lines(file: Path) -> Iterator[bytes]:
    with rotation.open_part(file) as opened:
        yield from opened


class _Checker:
    """Remembers what the next line is held against; over the parts of one record, in order."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._seq = 0
        self._run: str | None = None
        self._steps = self._updates = 0
        self._header = self._ended = False
        self._typos: dict[str, str | None] = {}
        self._verdict = FileReport("")

    def run(self, name: str, lines: Iterable[bytes]) -> FileReport:
        self._verdict = verdict = FileReport(name)
        number, today, older = 0, 0, False
        try:
            for number, line in enumerate(lines, 1):
                try:
                    record = None if older and b'"v"' not in line else decode(line)
                except UNREADABLE:
                    record = None
                if record is None or record.v[:2] != "2.":
                    self._other(number, line)
                    older = True
                    continue
                if line[-1] != 10:
                    self._say(number, f"torn: {len(line)} bytes without a line end; the writer was killed here")
                today += 1
                if record.seq != self._seq + 1 or record.run != self._run or record.nonfinite or self._strict:
                    self._look(number, line, record)
                self._seq = record.seq
                self._follow(number, record)
        except (OSError, EOFError, zlib.error) as error:
            number += 1
            self._say(number, f"the file cannot be read further: {error}; the lines above are all there is")
        verdict.lines = number
        if today:
            verdict.versions["2"] = today
        verdict.records += today
        if not verdict.records and not verdict.errors:
            self._say(max(number, 1), f"there is no record in it; the first line is a header of version {VERSION}")
        elif today and not self._ended and not verdict.errors:
            self._say(number, "no end record: the run goes on, or was killed", "warning")
        return verdict

    def _follow(self, number: int, record: Record) -> None:
        """What must only ever grow."""
        if record.updates < self._updates and not isinstance(record, EventRecord):
            self._say(number, f"updates is {record.updates} after {self._updates}; it never goes back", "warning")
        self._updates = record.updates
        kind = type(record)
        if kind is UpdateRecord:
            if record.env_steps < self._steps:
                said = f"env_steps is {record.env_steps} after {self._steps}; an update is never behind the one before"
                self._say(number, said, "warning")
            self._steps = record.env_steps
        elif kind is HeaderRecord:
            self._header, self._ended = True, False
        elif kind is EndRecord:
            self._ended = True
        elif kind is EventRecord:
            self._steps = record.env_steps  # "resumed" goes back to a checkpoint

    def _look(self, number: int, line: bytes, record: Record) -> None:
        """The checks that a line which simply follows the last does not need."""
        if record.seq <= self._seq:
            said = f"seq is {record.seq} after {self._seq}; it grows with every line: two writers, or lines twice"
            self._say(number, said)
        elif (
            self._seq
            and record.seq > self._seq + 1
            and not (isinstance(record, EventRecord) and record.name == "resumed")
        ):
            said = f"seq jumps from {self._seq} to {record.seq}; {record.seq - self._seq - 1} lines are missing"
            self._say(number, said, "warning")
        if self._run is None:
            self._run = record.run
            if not isinstance(record, HeaderRecord | EventRecord):
                said = f"the first line is of kind {line_kind(record)!r}; a record begins with its header, kind 'run'"
                self._say(number, said, "warning")
        elif record.run != self._run:
            self._say(number, f"run is {record.run!r} after {self._run!r}; a record is of one run")
            self._run = record.run
        for name, how in record.nonfinite.items():
            if how not in _SPELLED:
                self._say(number, f"nonfinite says {name} is {how!r}; 'nan', 'inf' and '-inf' are what a number can be")
            elif value_at(record, name) is not None:
                self._say(number, f"nonfinite names {name}, but the number is there; it must be null")
        if self._strict:
            self._unknown(number, line, record)

    def _unknown(self, number: int, line: bytes, record: Record) -> None:
        raw = decode_any(line)
        fields = FIELDS[raw["kind"]]
        for name in raw:
            if name not in fields:
                self._say(number, f"field {name!r} is unknown{did_you_mean(name, fields)}", "warning")
        if isinstance(record, UpdateRecord | MinibatchRecord):
            for name in record.m:
                if name not in self._typos:
                    self._typos[name] = None if name in METRICS else did_you_mean(name, METRICS, cutoff=0.85)
                if said := self._typos[name]:
                    self._say(number, f"number {name!r} is unknown{said}", "warning")

    def _other(self, number: int, line: bytes) -> None:
        """A line that is no record of today's version: an older one's, or a mistake."""
        verdict = self._verdict
        if not line.strip():
            self._say(number, "the line is empty; every line is one JSON object", "warning")
            return
        try:
            raw: Any = decode_any(line)
        except RecursionError:
            self._say(number, "nested too deep to be read; a record has at most a few levels")
            return
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._say(number, explain_not_json(line, str(error)))
            return
        if not isinstance(raw, dict):
            self._say(number, f"a JSON {json_type(raw)}; every line is one JSON object")
            return
        flat: dict[str, Any] = raw  # pyright: ignore[reportUnknownVariableType]  JSON's keys are strings
        foreign = foreign_format()
        version = foreign.version_of(flat)
        if version is None:
            self._say(number, explain_no_record(line, flat))
            return
        mistakes = foreign.errors(flat, version)
        for message in mistakes:
            self._say(number, f"{version}: {message}")
        if not mistakes:
            verdict.records += 1
            verdict.versions[version] = verdict.versions.get(version, 0) + 1
        if line[-1:] != b"\n":
            self._say(number, f"torn: {len(line)} bytes without a line end; the writer was killed here")
        if self._strict:
            for message in foreign.oddities(flat, version):
                self._say(number, f"{version}: {message}", "warning")

    def _say(self, number: int, message: str, weight: Weight = "error") -> None:
        verdict = self._verdict
        if weight == "error":
            verdict.errors += 1
        else:
            verdict.warnings += 1
        if len(verdict.mistakes) < KEPT:
            verdict.mistakes.append(LineError(verdict.file, number, message, weight))


def line_kind(record: Record) -> str:
    """The `kind` a record has in the file."""
    return str(type(record).__struct_config__.tag)
