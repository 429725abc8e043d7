"""A record checked line by line: what is wrong, in which line, and what would be right."""

from __future__ import annotations

import difflib
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from surefoot.errors import TelemetryError
from surefoot.telemetry import schema
from surefoot.telemetry.files import rotation
from surefoot.telemetry.foreign import foreign_format
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

_KINDS: dict[str, type[Any]] = {str(kind.__struct_config__.tag): kind for kind in get_args(schema.Record)}
_FIELDS = {
    name: frozenset(f.encode_name for f in msgspec.structs.fields(kind)) | {"kind"} for name, kind in _KINDS.items()
}
_decode = msgspec.json.Decoder(schema.Record).decode
_decode_any = msgspec.json.Decoder().decode
_BARE = re.compile(rb"(?<![\"\w])(-?(?:NaN|Infinity|nan|inf))\b")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
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
                    record = None if older and b'"v"' not in line else _decode(line)
                except _UNREADABLE:
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
            elif _at(record, name) is not None:
                self._say(number, f"nonfinite names {name}, but the number is there; it must be null")
        if self._strict:
            self._unknown(number, line, record)

    def _unknown(self, number: int, line: bytes, record: Record) -> None:
        raw = _decode_any(line)
        fields = _FIELDS[raw["kind"]]
        for name in raw:
            if name not in fields:
                self._say(number, f"field {name!r} is unknown{_close(name, fields)}", "warning")
        if isinstance(record, UpdateRecord | MinibatchRecord):
            for name in record.m:
                if name not in self._typos:
                    self._typos[name] = None if name in METRICS else _close(name, METRICS, cutoff=0.85)
                if said := self._typos[name]:
                    self._say(number, f"number {name!r} is unknown{said}", "warning")

    def _other(self, number: int, line: bytes) -> None:
        """A line that is no record of today's version: an older one's, or a mistake."""
        verdict = self._verdict
        if not line.strip():
            self._say(number, "the line is empty; every line is one JSON object", "warning")
            return
        try:
            raw: Any = _decode_any(line)
        except RecursionError:
            self._say(number, "nested too deep to be read; a record has at most a few levels")
            return
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._say(number, _not_json(line, str(error)))
            return
        if not isinstance(raw, dict):
            self._say(number, f"a JSON {_json_type(raw)}; every line is one JSON object")
            return
        flat: dict[str, Any] = raw  # pyright: ignore[reportUnknownVariableType]  JSON's keys are strings
        foreign = foreign_format()
        version = foreign.version_of(flat)
        if version is None:
            self._say(number, _wrong(line, flat))
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


def _not_json(line: bytes, error: str) -> str:
    if line[-1:] != b"\n":
        return f"torn: {len(line)} bytes without a line end, and no whole JSON; the writer was killed here"
    if bare := _BARE.search(line):
        what = bare[1].decode()
        right = "1.x demands a finite number" if b"telemetry_version" in line else "write null and name it in nonfinite"
        return f"{what} at byte {bare.start(1)} is not JSON; {right}"
    if b"\x00" in line or _share_of_text(line) < 0.7:
        return f"not text, let alone JSON ({len(line)} bytes); is it compressed, or another file?"
    return f"not JSON: {error}"


def _share_of_text(line: bytes) -> float:
    return sum(32 <= byte < 127 or byte in (9, 10, 13) for byte in line[:2000]) / max(len(line[:2000]), 1)


def _wrong(line: bytes, raw: dict[str, Any]) -> str:
    """Why an object is a record of no version, with what would make it one."""
    if "telemetry_version" in raw:
        known = ", ".join(foreign_format().VERSIONS)
        return f"telemetry_version {_short(raw['telemetry_version'])} is unknown; there were {known}"
    v = raw.get("v")
    if v is None:
        return f'no version; today\'s records say "v": "{VERSION}", older ones "telemetry_version": 1.1'
    if not isinstance(v, str) or not re.fullmatch(r"\d+\.\d+\.\d+", v):
        return f'v is {_short(v)}; it is a string such as "{VERSION}"'
    if not v.startswith("2."):
        return f"version {v} is unknown; this reads 1.0, 1.1, 1.2 and 2.x"
    kind = raw.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        close = _close(kind, _KINDS) if isinstance(kind, str) else ""
        return f"kind is {_short(kind)}{close}; kinds are {', '.join(_KINDS)}"
    try:
        _decode(line)
    except _UNREADABLE as error:
        return _explained(str(error), raw, _KINDS[kind])
    return "unreadable"


def _explained(error: str, raw: dict[str, Any], kind: type[Any]) -> str:
    """msgspec's sentence, with the value and the choices it leaves out."""
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", error):
        name = missing[1]
        close = difflib.get_close_matches(name, [k for k in raw if k not in _FIELDS[raw["kind"]]], n=1, cutoff=0.7)
        return f"field {name!r} is missing" + (f"; is {close[0]!r} meant to be it?" if close else "")
    found = re.search(r" - at `\$\.(\w+)(.*)`$", error)
    if not found:
        return error
    name, value = found[1], raw.get(found[1])
    said = error[: found.start()].replace("`", "")
    choices = next((get_args(f.type) for f in msgspec.structs.fields(kind) if f.encode_name == name), ())
    words = [str(choice) for choice in choices if isinstance(choice, str)]
    ending = f"; one of {', '.join(words)}" if words else ""
    return f"{name}{found[2]} is {_short(value)}: {said[:1].lower()}{said[1:]}{ending}"


def _at(record: Record, dotted: str) -> object:
    """What stands at a dotted name; None if nothing does. Names inside `m` may have dots of their own."""
    here: Any = {"return": getattr(record, "return_", None)} | msgspec.to_builtins(record)
    while dotted:
        if isinstance(here, list):
            head, _, dotted = dotted.partition(".")
            items: list[Any] = here
            if not head.isdigit() or int(head) >= len(items):
                return None
            here = items[int(head)]
        elif isinstance(here, dict):
            names: dict[str, Any] = here
            if dotted in names:
                return names[dotted]
            head, _, dotted = dotted.partition(".")
            here = names.get(head)
        else:
            return None
    return here


def _close(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""


def _short(x: Any) -> str:
    text = json.dumps(x, default=str)
    return text if len(text) <= 40 else text[:37] + "…"


def _json_type(x: Any) -> str:
    if x is None:
        return "null"
    return {bool: "true or false", int: "number", float: "number", str: "string", list: "list"}.get(type(x), "value")
