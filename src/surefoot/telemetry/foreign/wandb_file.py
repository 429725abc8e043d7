"""The history and config of a W&B run file (run-ID.wandb), without W&B: LevelDB's log format around protocol buffers."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surefoot.errors import TelemetryError
from surefoot.telemetry.foreign.event_file import fields_of

BLOCK = 32768
# The identifier, a magic number and a version.
HEADER = 7
IDENTIFIER = b":W&B"
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def read_wandb(path: Path, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one row per step of the history; the run's config goes into `settings`."""
    data = path.read_bytes()
    if not data.startswith(IDENTIFIER):
        raise TelemetryError(f"{path} is not a W&B run file: it does not begin with {IDENTIFIER.decode()}")
    for message in _messages(data):
        try:
            for number, body in fields_of(message):
                if number == 2 and isinstance(body, bytes):
                    yield _items(body)
                elif number == 5 and isinstance(body, bytes):
                    settings.update(_items(body))
                elif number == 17 and isinstance(body, bytes):
                    # The run itself; its field 4 is the config that it began with.
                    for inner, config in fields_of(body):
                        settings.update(_items(config) if inner == 4 and isinstance(config, bytes) else {})
        except (IndexError, struct.error, UnicodeDecodeError):
            return  # a torn end


def _messages(data: bytes) -> Iterator[bytes]:
    at, parts = HEADER, list[bytes]()
    while at + 7 <= len(data):
        left = BLOCK - at % BLOCK
        if left < 7:
            at += left  # the rest of a block is padding
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        part, at = data[at + 7 : at + 7 + length], at + 7 + length
        if len(part) < length or kind not in (FULL, FIRST, MIDDLE, LAST):
            return
        parts = [part] if kind in (FULL, FIRST) else [*parts, part]
        if kind in (FULL, LAST):
            yield b"".join(parts)


def _items(message: bytes) -> dict[str, Any]:
    """Items of a history (field 1) or a config (field 1): 1 = key, 2 = nested keys, 16 = value as JSON."""
    row: dict[str, Any] = {}
    for number, item in fields_of(message):
        if number != 1 or not isinstance(item, bytes):
            continue
        parts: dict[int, list[bytes]] = {}
        for inner, x in fields_of(item):
            if isinstance(x, bytes):
                parts.setdefault(inner, []).append(x)
        key = b"/".join(parts.get(1) or parts.get(2, [])).decode()
        if key and 16 in parts:
            value = json.loads(parts[16][0])
            # Config values are wrapped in {"value": …} in some releases.
            row[key] = value["value"] if isinstance(value, dict) and set(value) == {"value"} else value
    return row
