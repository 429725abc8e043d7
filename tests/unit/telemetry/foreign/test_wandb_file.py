"""W&B's run file: frames of LevelDB's log, messages with items."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import TelemetryError
from surefoot.telemetry.foreign.wandb_file import BLOCK, HEADER, read_wandb


def field(number: int, data: bytes) -> bytes:
    def varint(x: int) -> bytes:
        return bytes([x]) if x < 128 else bytes([x & 127 | 128]) + varint(x >> 7)

    return varint(number << 3 | 2) + varint(len(data)) + data


def items(values: dict[str, Any]) -> bytes:
    return b"".join(field(1, field(1, k.encode()) + field(16, json.dumps(v).encode())) for k, v in values.items())


def wandb_file(path: Path, messages: list[bytes]) -> Path:
    """As W&B's datastore writes it: a message that does not fit into a block goes on in the next one."""
    data = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for message in messages:
        first = True
        while True:
            left = BLOCK - len(data) % BLOCK
            if left < 7:
                data += bytes(left)
                left = BLOCK
            part, message = message[: left - 7], message[left - 7 :]
            kind = (1 if first else 4) if not message else (2 if first else 3)
            data += struct.pack("<IHB", 0, len(part), kind) + part
            first = False
            if not message:
                break
    path.write_bytes(data)
    return path


def test_history_and_config_are_read_across_blocks(tmp_path: Path):
    rows = [{"global_step": 10 * k, "losses/approx_kl": 0.01 * k, "filler": "x" * 5000} for k in range(30)]
    path = wandb_file(tmp_path / "run-a.wandb", [field(5, items({"gamma": 0.5})), *(field(2, items(r)) for r in rows)])
    settings: dict[str, Any] = {}
    assert list(read_wandb(path, settings)) == rows
    assert settings == {"gamma": 0.5}
    assert path.stat().st_size > 4 * BLOCK > HEADER


def test_another_file_is_refused(tmp_path: Path):
    (path := tmp_path / "run-b.wandb").write_bytes(b"hello")
    with pytest.raises(TelemetryError, match="not a W&B run file"):
        list(read_wandb(path, {}))
