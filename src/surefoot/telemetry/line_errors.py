"""Explanations why a line is not a record, and the record format of other systems."""

from __future__ import annotations

import codecs
import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Protocol, cast, get_args

import msgspec

from surefoot.telemetry.schema import VERSION, Record, UpdateRecord, decode

KINDS: dict[str, type[Any]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Record)}
FIELDS = {
    name: frozenset(f.encode_name for f in msgspec.structs.fields(kind)) | {"kind"} for name, kind in KINDS.items()
}
decode_any = msgspec.json.Decoder().decode
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_BARE = re.compile(rb"(?<![\"\w])(-?(?:NaN|Infinity|nan|inf))\b")

# A module that is a `RecordFormat`. Imported by name at first use, so that this room does not depend on `compat`.
FOREIGN_FORMAT = "surefoot.compat.townlet.records"


class RecordFormat(Protocol):
    """Recognise, check and convert lines of another record format: JSON objects without a field `v`."""

    VERSIONS: tuple[str, ...]

    def version_of(self, line: dict[str, Any], /) -> str | None:
        """Return the version of a line; None if it is not of this format."""
        ...

    def errors(self, line: dict[str, Any], version: str, /) -> list[str]:
        """Return the reasons why a line is invalid."""
        ...

    def line_warnings(self, line: dict[str, Any], version: str, /) -> list[str]: ...

    def migrate(self, line: dict[str, Any], version: str, /, *, number: int, before: float = 0.0) -> UpdateRecord:
        """Return a valid line as an `UpdateRecord`; `number` is its line, `before` the time of the line above."""
        ...


def foreign_format() -> RecordFormat:
    """Return the format that lines without a field `v` are read with."""
    return cast(RecordFormat, import_module(FOREIGN_FORMAT))


def explain_not_json(line: bytes, error: str) -> str:
    """Return why a line is not JSON; `error` is the decoder's message."""
    if line.startswith(codecs.BOM_UTF8):
        return "the file begins with a byte order mark (BOM); save it as UTF-8 without one"
    if line[-1:] != b"\n":
        return f"torn: {len(line)} bytes without a line end, and not complete JSON; the writer was killed here"
    if bare := _BARE.search(line):
        remedy = "1.x needs a finite number" if b"telemetry_version" in line else "write null and name it in nonfinite"
        return f"{bare[1].decode()} at byte {bare.start(1)} is not JSON; {remedy}"
    printable = sum(32 <= byte < 127 or byte in (9, 10, 13) for byte in line[:2000])
    if b"\x00" in line or printable < 0.7 * len(line[:2000]):
        return f"not text ({len(line)} bytes); is the file compressed, or not a record?"
    return f"not JSON: {error}"


def explain_no_record(line: bytes, raw: dict[str, Any]) -> str:
    """Return why an object is not a record of any version, and what a record needs."""
    if "telemetry_version" in raw:
        known = ", ".join(foreign_format().VERSIONS)
        return f"telemetry_version {_short(raw['telemetry_version'])} is unknown; known versions are {known}"
    v = raw.get("v")
    if v is None:
        return f'no version; a record has "v": "{VERSION}", or "telemetry_version": 1.1 in older ones'
    if not isinstance(v, str) or not re.fullmatch(r"\d+\.\d+\.\d+", v):
        return f'v is {_short(v)}; it must be a string such as "{VERSION}"'
    if not v.startswith("2."):
        return f"version {v} is unknown; known versions are 1.0, 1.1, 1.2 and 2.x"
    kind = raw.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        suggestion = did_you_mean(kind, KINDS) if isinstance(kind, str) else ""
        return f"kind is {_short(kind)}{suggestion}; kinds are {', '.join(KINDS)}"
    try:
        decode(line)
    except UNREADABLE as error:
        return _explain_invalid(str(error), raw, KINDS[kind])
    return "unreadable"


def _explain_invalid(error: str, raw: dict[str, Any], kind: type[Any]) -> str:
    """Return msgspec's message with the value and the choices that it leaves out."""
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", error):
        name = missing[1]
        close = difflib.get_close_matches(name, [k for k in raw if k not in FIELDS[raw["kind"]]], n=1, cutoff=0.7)
        return f"field {name!r} is missing" + (f"; is {close[0]!r} meant?" if close else "")
    place = re.search(r" - at `\$\.(\w+)(.*)`$", error)
    if not place:
        return error
    name, value = place[1], raw.get(place[1])
    reason = error[: place.start()].replace("`", "")
    choices = next((get_args(f.type) for f in msgspec.structs.fields(kind) if f.encode_name == name), ())
    words = [str(choice) for choice in choices if isinstance(choice, str)]
    ending = f"; it must be one of {', '.join(words)}" if words else ""
    return f"{name}{place[2]} is {_short(value)}: {reason[:1].lower()}{reason[1:]}{ending}"


def repeated_names(line: bytes) -> list[str]:
    """Return the names that an object of this JSON line has twice; decoders take the last without a word."""
    repeated: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        counts = Counter(name for name, _ in pairs)
        repeated.extend(name for name, count in counts.items() if count > 1)

    json.loads(line, object_pairs_hook=look)
    return repeated


def value_at(record: Record, dotted: str) -> object:
    """Return the value at a dotted name; None if there is none. Names inside `m` may contain dots themselves."""
    value: Any = {"return": getattr(record, "return_", None)} | msgspec.to_builtins(record)
    while dotted:
        if isinstance(value, dict) and dotted in value:
            return cast(dict[str, Any], value)[dotted]
        head, _, dotted = dotted.partition(".")
        if isinstance(value, list) and head.isdigit() and int(head) < len(cast(list[Any], value)):
            value = cast(list[Any], value)[int(head)]
        elif isinstance(value, dict):
            value = cast(dict[str, Any], value).get(head)
        else:
            return None
    return value


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """Return "; did you mean …?" with the closest known name, or an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""


def _short(x: Any) -> str:
    text = json.dumps(x, default=str)
    return text if len(text) <= 40 else text[:37] + "…"


def json_type(x: Any) -> str:
    """Return the JSON name of a value's type."""
    if x is None:
        return "null"
    return {bool: "true or false", int: "number", float: "number", str: "string", list: "list"}.get(type(x), "value")
