"""Apache Parquet files of number columns: plain encoding, uncompressed, no nulls; every reader supports that.

Written here so that the export needs no further package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

# Type codes of parquet.thrift, then of Thrift's compact protocol.
_INT64, _DOUBLE = 2, 5
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_MAGIC = b"PAR1"
# Rows per row group: 8 MB per column, which bounds the memory of a reader.
ROWS = 1 << 20


def write_parquet(path: Path | str, columns: Mapping[str, np.ndarray]) -> Path:
    """Write columns of equal length: integers as INT64, others as DOUBLE, NaN for missing numbers."""
    names = list(columns)
    arrays = [x.astype("<i8" if np.issubdtype(x.dtype, np.integer) else "<f8") for x in columns.values()]
    rows = len(arrays[0]) if arrays else 0
    with Path(path).open("wb") as file:
        file.write(_MAGIC)
        groups = [_row_group(file, names, [a[start : start + ROWS] for a in arrays]) for start in range(0, rows, ROWS)]
        root = _struct((4, _binary(b"schema"), _BINARY), (5, _varint(len(names)), _I32))
        leaves = [
            _struct((1, _varint(_kind(a)), _I32), (3, _varint(0), _I32), (4, _binary(name.encode()), _BINARY))
            for name, a in zip(names, arrays, strict=True)
        ]
        footer = _struct(
            (1, _varint(1), _I32),
            (2, _list(_STRUCT, [root, *leaves]), _LIST),
            (3, _varint(rows), _I64),
            (4, _list(_STRUCT, groups), _LIST),
            (6, _binary(b"surefoot"), _BINARY),
        )
        file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)
    return Path(path)


def _kind(column: np.ndarray) -> int:
    return _INT64 if column.dtype.kind == "i" else _DOUBLE


def _row_group(file: BinaryIO, names: Sequence[str], arrays: Sequence[np.ndarray]) -> bytes:
    chunks: list[bytes] = []
    total, rows = 0, len(arrays[0])
    for name, array in zip(names, arrays, strict=True):
        offset, body = file.tell(), array.tobytes()
        # Encodings: 0 is PLAIN for the values, 3 is RLE for the levels; a required column has no levels.
        data = _struct((1, _varint(rows), _I32), (2, _varint(0), _I32), (3, _varint(3), _I32), (4, _varint(3), _I32))
        size = _varint(len(body))
        head = _struct((1, _varint(0), _I32), (2, size, _I32), (3, size, _I32), (5, data, _STRUCT))
        file.write(head + body)
        written = len(head) + len(body)
        total += written
        meta = _struct(
            (1, _varint(_kind(array)), _I32),
            (2, _list(_I32, [_varint(0), _varint(3)]), _LIST),
            (3, _list(_BINARY, [_binary(name.encode())]), _LIST),
            (4, _varint(0), _I32),
            (5, _varint(rows), _I64),
            (6, _varint(written), _I64),
            (7, _varint(written), _I64),
            (9, _varint(offset), _I64),
        )
        chunks.append(_struct((2, _varint(offset), _I64), (3, meta, _STRUCT)))
    return _struct((1, _list(_STRUCT, chunks), _LIST), (2, _varint(total), _I64), (3, _varint(rows), _I64))


def _struct(*fields: tuple[int, bytes, int]) -> bytes:
    """Encode a struct in Thrift's compact protocol: per field its number (as difference), type and bytes."""
    out, last = b"", 0
    for number, body, kind in fields:
        out += bytes([(number - last) << 4 | kind]) + body
        last = number
    return out + b"\0"


def _list(kind: int, items: Sequence[bytes]) -> bytes:
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + _unsigned(len(items))
    return head + b"".join(items)


def _binary(text: bytes) -> bytes:
    return _unsigned(len(text)) + text


def _varint(x: int) -> bytes:
    """Encode a non-negative integer in zigzag."""
    return _unsigned(x << 1)


def _unsigned(x: int) -> bytes:
    out = bytearray()
    while x > 0x7F:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    out.append(x)
    return bytes(out)
