"""Why a line is not a record, with what would make it one."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from surefoot.telemetry import schema
from surefoot.telemetry.foreign import foreign_format
from surefoot.telemetry.schema import VERSION, Record

KINDS: dict[str, type[Any]] = {str(kind.__struct_config__.tag): kind for kind in get_args(schema.Record)}
FIELDS = {
    name: frozenset(f.encode_name for f in msgspec.structs.fields(kind)) | {"kind"} for name, kind in KINDS.items()
}
decode = msgspec.json.Decoder(schema.Record).decode
decode_any = msgspec.json.Decoder().decode
_BARE = re.compile(rb"(?<![\"\w])(-?(?:NaN|Infinity|nan|inf))\b")
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def explain_not_json(line: bytes, error: str) -> str:
    """Return why a line is not JSON; `error` is what the decoder said."""
    if line[-1:] != b"\n":
        return f"torn: {len(line)} bytes without a line end, and no whole JSON; the writer was killed here"
    if bare := _BARE.search(line):
        what = bare[1].decode()
        right = "1.x demands a finite number" if b"telemetry_version" in line else "write null and name it in nonfinite"
        return f"{what} at byte {bare.start(1)} is not JSON; {right}"
    printable = sum(32 <= byte < 127 or byte in (9, 10, 13) for byte in line[:2000])
    if b"\x00" in line or printable < 0.7 * len(line[:2000]):
        return f"not text, let alone JSON ({len(line)} bytes); is it compressed, or another file?"
    return f"not JSON: {error}"


def explain_no_record(line: bytes, raw: dict[str, Any]) -> str:
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
    if not isinstance(kind, str) or kind not in KINDS:
        close = did_you_mean(kind, KINDS) if isinstance(kind, str) else ""
        return f"kind is {_short(kind)}{close}; kinds are {', '.join(KINDS)}"
    try:
        decode(line)
    except UNREADABLE as error:
        return _explained(str(error), raw, KINDS[kind])
    return "unreadable"


def _explained(error: str, raw: dict[str, Any], kind: type[Any]) -> str:
    """msgspec's sentence, with the value and the choices it leaves out."""
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", error):
        name = missing[1]
        close = difflib.get_close_matches(name, [k for k in raw if k not in FIELDS[raw["kind"]]], n=1, cutoff=0.7)
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


def value_at(record: Record, dotted: str) -> object:
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


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """Return "; did you mean …?" with the known name that is closest, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""


def _short(x: Any) -> str:
    text = json.dumps(x, default=str)
    return text if len(text) <= 40 else text[:37] + "…"


def json_type(x: Any) -> str:
    """Return what JSON calls the type of a value."""
    if x is None:
        return "null"
    return {bool: "true or false", int: "number", float: "number", str: "string", list: "list"}.get(type(x), "value")
