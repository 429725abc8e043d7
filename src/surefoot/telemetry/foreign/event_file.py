"""Scalars and texts of TensorBoard event files, without TensorBoard: TFRecord frames around protocol buffers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from surefoot.errors import TelemetryError

# Frames larger than this are images or damaged lengths; they hold no scalar.
LARGEST = 64 << 20

Scalar = tuple[int, str, float | str]
"""(step, tag, number or text)"""


def read_events(path: Path) -> Iterator[Scalar]:
    """Yield the scalars and texts of an event file in its order. A torn end is left out. Raise `TelemetryError` otherwise."""
    with path.open("rb") as file:
        first = True
        while len(head := file.read(12)) == 12:
            (length,) = struct.unpack_from("<Q", head)
            if length > LARGEST:
                raise TelemetryError(f"{path} is not a TensorBoard event file: a frame of {length:,} bytes")
            body = file.read(length + 4)
            if len(body) < length + 4:
                return
            try:
                yield from _event(body[:length])
            except (IndexError, struct.error, UnicodeDecodeError) as why:
                if first:
                    raise TelemetryError(f"{path} is not a TensorBoard event file: {why}") from why
                return
            first = False


def _event(data: bytes) -> Iterator[Scalar]:
    """Event: 2 = step, 5 = summary. Summary: 1 = value. Value: 1 = tag, 2 = simple_value, 8 = tensor."""
    fields = list(fields_of(data))
    step = next((x for number, x in fields if number == 2 and isinstance(x, int)), 0)
    for number, summary in fields:
        if number != 5 or not isinstance(summary, bytes):
            continue
        for inner, value in fields_of(summary):
            if inner != 1 or not isinstance(value, bytes):
                continue
            parts = dict(fields_of(value))
            tag = parts.get(1)
            if not isinstance(tag, bytes):
                continue
            if isinstance(number_ := parts.get(2), float):
                yield step, tag.decode(), number_
            elif isinstance(tensor := parts.get(8), bytes) and (content := _tensor(tensor)) is not None:
                yield step, tag.decode(), content


def _tensor(data: bytes) -> float | str | None:
    """TensorProto: 4 = content, 5 = float_val, 8 = string_val."""
    for number, x in fields_of(data):
        if number == 5:
            return x if isinstance(x, float) else struct.unpack("<f", x[:4])[0] if isinstance(x, bytes) else None
        if number == 4 and isinstance(x, bytes) and len(x) == 4:
            return struct.unpack("<f", x)[0]
        if number == 8 and isinstance(x, bytes):
            return x.decode()
    return None


def fields_of(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Yield (field number, value) of a protocol buffer: varint, 64 bit, bytes or 32 bit."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                value, at = _varint(data, at)
                yield key >> 3, value
            case 1:
                yield key >> 3, struct.unpack_from("<d", data, at)[0]
                at += 8
            case 2:
                length, at = _varint(data, at)
                if at + length > len(data):
                    raise IndexError("a field goes beyond its message")
                yield key >> 3, data[at : at + length]
                at += length
            case 5:
                yield key >> 3, struct.unpack_from("<f", data, at)[0]
                at += 4
            case kind:
                raise IndexError(f"unknown wire type {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
