"""kill -9 at a random moment, fifty times: what was synchronised is there, readers read, and the run goes on."""

from __future__ import annotations

import os
import random
import signal
import struct
import time
from pathlib import Path

from surefoot.telemetry.follow import Follow
from surefoot.telemetry.reader import read_all
from surefoot.telemetry.schema import EventRecord
from surefoot.telemetry.validate import validate
from surefoot.telemetry.writer import Recorder

KILLS = 50


def write_for_ever(folder: Path, told: int) -> None:
    """A child's life: lines, rotations, and after each sync the number of the last line that is safe."""
    recorder = Recorder(folder, "doomed", updates_per_second=1e9, rotate_bytes=40_000)
    recorder.header(env="x", seed=0, config={})
    number = recorder.updates
    while True:
        for _ in range(20):
            number += 1
            recorder.update(env_steps=number * 8, updates=number, m={"loss": number / 7, "approx_kl": 0.01})
        recorder.sync()
        os.write(told, struct.pack("<q", number))


def test_fifty_kills_lose_nothing_that_was_synchronised(tmp_path: Path):
    rng = random.Random(5)
    safe = tears = 0
    follow = Follow(tmp_path)
    followed: list[int] = []
    for _ in range(KILLS):
        mine, told = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                write_for_ever(tmp_path, told)
            finally:
                os._exit(1)
        os.close(told)
        safe = struct.unpack("<q", os.read(mine, 8))[0]
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := os.read(mine, 8):
            safe = struct.unpack("<q", more)[0]
        os.close(mine)
        live = tmp_path / "telemetry.ndjson"
        if rng.random() < 0.5 and live.stat().st_size:  # a power cut may tear what a kill cannot
            with live.open("ab") as file:
                file.write(b'{"kind":"update","v":"2.0')
            tears += 1
        reading = read_all(tmp_path)
        assert max(record.updates for record in reading.records) >= safe
        assert len(reading.problems) <= 1
        assert all(mistake.line >= 1 for verdict in validate(tmp_path) for mistake in verdict.mistakes)
        followed += [item.seq for item in follow.poll() if hasattr(item, "seq")]
    Recorder(tmp_path, "doomed").close("finished")
    follow.close()
    reading = read_all(tmp_path)
    assert reading.problems == []
    assert [record.seq for record in reading.records] == list(range(1, len(reading.records) + 1))
    assert sum(isinstance(r, EventRecord) and r.name == "torn_tail" for r in reading.records) == tears > 10
    assert followed == sorted(set(followed))
    assert followed[-1] >= reading.records[-1].seq - 2
