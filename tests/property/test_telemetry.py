"""Whatever numbers a run makes and wherever its file is cut, the record says so and goes on."""

from __future__ import annotations

import json
import math
import tempfile
from itertools import count
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.telemetry.files.merge_updates import merge
from surefoot.telemetry.reader import read_all
from surefoot.telemetry.schema import EventRecord, UpdateRecord
from surefoot.telemetry.writer import Recorder, truncate_after

NAMES = st.text(min_size=1, max_size=12)
NUMBERS = st.dictionaries(NAMES, st.floats() | st.integers(-(2**53), 2**53), max_size=8)
FINITE = st.floats(-1e12, 1e12)


def no_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


def write(folder: Path, rows: list[dict[str, float]]) -> Path:
    with Recorder(folder, "r", updates_per_second=1e12, sync_seconds=1e9, clock=count(1).__next__) as recorder:
        recorder.header(env="toy", seed=0, config={})
        for number, m in enumerate(rows, 1):
            recorder.update(env_steps=number * 8, updates=number, m=m)
    return folder / "telemetry.ndjson"


@given(NUMBERS)
@settings(max_examples=100)
def test_every_number_comes_back_or_is_named(m: dict[str, float]):
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder), [m])
        for line in file.read_bytes().splitlines():
            json.loads(line, parse_constant=no_constant)
        (update,) = [r for r in read_all(folder).records if isinstance(r, UpdateRecord)]
    assert update.m.keys() == m.keys()
    for name, x in m.items():
        if math.isfinite(x):
            assert update.m[name] == x
        else:
            assert update.m[name] is None
            assert update.nonfinite[f"m.{name}"] == str(x)
    assert len(update.nonfinite) == sum(not math.isfinite(x) for x in m.values())


@given(st.floats(0, 1), st.integers(1, 6))
@settings(max_examples=60)
def test_a_record_cut_at_any_byte_is_read_and_gone_on_with(share: float, updates: int):
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder), [{"kl": 0.5}] * updates)
        whole = file.read_bytes()
        keep = round(share * len(whole))
        file.write_bytes(whole[:keep])
        lines = whole[:keep].count(b"\n")
        torn = keep > 0 and not whole[:keep].endswith(b"\n")

        reading = read_all(folder)
        assert len(reading.records) == lines
        assert len(reading.problems) == torn

        with Recorder(folder, "r") as recorder:
            recorder.event("on")
        reading = read_all(folder)
        assert reading.problems == []
        assert [r.seq for r in reading.records] == list(range(1, lines + torn + 3))
        assert any(isinstance(r, EventRecord) and r.name == "torn_tail" for r in reading.records) == torn


@given(st.integers(1, 30), st.integers(0, 30), st.sampled_from([400, 1500, 10**9]))
@settings(max_examples=40)
def test_after_a_cut_no_update_is_later_than_the_checkpoint(updates: int, checkpoint: int, rotate_bytes: int):
    with tempfile.TemporaryDirectory() as folder:
        with Recorder(folder, "r", updates_per_second=1e12, rotate_bytes=rotate_bytes, sync_seconds=1e9) as recorder:
            for number in range(1, updates + 1):
                recorder.update(env_steps=number * 8, updates=number, m={"kl": 0.1})
        truncate_after(folder, checkpoint)
        truncate_after(folder, checkpoint)
        reading = read_all(folder)
    kept = [r.updates for r in reading.records if isinstance(r, UpdateRecord)]
    assert kept == list(range(1, min(updates, checkpoint) + 1))
    assert reading.problems == []
    sequence = [r.seq for r in reading.records]
    assert sequence == sorted(set(sequence))


@given(st.lists(st.lists(FINITE, min_size=2, max_size=2), min_size=1, max_size=8))
@settings(max_examples=100)
def test_a_shared_line_lies_between_its_updates(rows: list[list[float]]):
    updates = [
        UpdateRecord(v="2.0.0", run="r", seq=0, t=float(i), env_steps=i, updates=i, m={"a": a, "b": b})
        for i, (a, b) in enumerate(rows, 1)
    ]
    one = merge(updates)
    for column, name in enumerate("ab"):
        values = [row[column] for row in rows]
        mean = one.m[name]
        assert mean is not None
        assert math.isclose(mean, math.fsum(values) / len(values), rel_tol=1e-9, abs_tol=1e-3)
        assert one.m_min.get(name, mean) == min(values)
        assert one.m_max.get(name, mean) == max(values)
    assert one.covers == len(rows)
