import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.errors import RunNotFound, TelemetryError
from surefoot.telemetry.reader import load_curves, read_all, read_records
from surefoot.telemetry.schema import Episodes, EventRecord
from surefoot.telemetry.writer import Recorder, truncate_after

Open = Callable[..., Recorder]


def event(seq: int, v: str = "2.0.0") -> str:
    return f'{{"kind":"event","v":"{v}","run":"r","seq":{seq},"t":{seq},"env_steps":0,"updates":0,"name":"e{seq}"}}\n'


def test_bad_lines_are_told_and_passed_over(tmp_path: Path):
    file = tmp_path / "telemetry.ndjson"
    file.write_text(event(1) + "not json\n" + '{"v":"2.0.0","kind":"event"}\n' + "[1, 2]\n" + event(2) + event(3)[:20])
    reading = read_all(tmp_path)
    assert [r.seq for r in reading.records] == [1, 2]
    assert [p.line for p in reading.problems] == [2, 3, 4, 6]
    assert "torn: 20 bytes" in reading.problems[-1].message
    assert str(reading.problems[0]).startswith("telemetry.ndjson:2: not a record")


def test_bytes_that_are_no_text_are_told(tmp_path: Path):
    (tmp_path / "telemetry.ndjson").write_bytes(b"\xff\xfe\x00\n" + event(1).replace("e1", "\xe9").encode("latin-1"))
    reading = read_all(tmp_path)
    assert (reading.records, [p.line for p in reading.problems]) == ([], [1, 2])


def test_an_unknown_version_is_named(tmp_path: Path):
    (tmp_path / "telemetry.ndjson").write_text(
        event(1) + event(2, "3.1.0") + '{"telemetry_version":1.1}\n' + event(3, "2.9.0")
    )
    reading = read_all(tmp_path)
    assert "'3.1.0' is unknown" in reading.problems[0].message
    assert "not a 1.1 record: epoch, updates" in reading.problems[1].message
    assert [r.seq for r in reading.records] == [1, 3]


def test_an_unknown_kind_is_told_and_passed_over(tmp_path: Path):
    (tmp_path / "telemetry.ndjson").write_text(event(1).replace('"event"', '"dream"') + event(2))
    reading = read_all(tmp_path)
    assert "dream" in reading.problems[0].message
    assert [r.seq for r in reading.records] == [2]


def test_a_broken_part_does_not_hide_the_next(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder(rotate_bytes=300)
    for _ in range(6):
        recorder.event("tick")
    recorder.close()
    first = min(tmp_path.glob("*.gz"))
    first.write_bytes(first.read_bytes()[:-20])
    reading = read_all(tmp_path)
    assert reading.problems[0].part == "telemetry.0001.ndjson.gz"
    assert "cannot be read further" in reading.problems[0].message
    assert reading.records[-1].seq == 6


def test_lines_that_a_crash_left_in_two_files_count_once(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder(rotate_bytes=300)
    for _ in range(3):
        recorder.event("tick")
    recorder.close()
    live = tmp_path / "telemetry.ndjson"
    live.write_text("".join(event(seq) for seq in (1, 2, 3, 4)))
    assert [r.seq for r in read_records(tmp_path)] == [1, 2, 3, 4]


def test_a_file_can_be_read_by_its_own_name(tmp_path: Path):
    file = tmp_path / "walk.ndjson"
    file.write_text(event(5))
    assert [r.seq for r in read_records(file)] == [5]


def test_a_run_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(RunNotFound, match="nowhere"):
        read_records(tmp_path / "nowhere")
    with pytest.raises(TelemetryError, match=r"has no telemetry\.ndjson"):
        read_records(tmp_path)


def test_curves_are_columns(tmp_path: Path, open_recorder: Open, clock: Any):
    with open_recorder() as recorder:
        recorder.header(env="CartPole-v1", seed=1, config={})
        clock.now += 2
        recorder.update(env_steps=64, updates=1, m={"lr": 0.5, "loss": math.nan}, seconds={"env": 0.25})
        clock.now += 2
        recorder.update(env_steps=128, updates=2, m={"lr": 0.25, "std": 3.0}, episodes=Episodes.of([1.0, 3.0], [5, 5]))
        recorder.eval(returns=[7.0, 9.0], lengths=[1, 1])
    curves = load_curves(tmp_path)
    assert curves.updates.env_steps.tolist() == [64, 128]
    assert curves.updates.updates.tolist() == [1, 2]
    assert curves.updates.elapsed.tolist() == [2.0, 4.0]
    assert curves.updates["lr"].tolist() == [0.5, 0.25]
    np.testing.assert_array_equal(curves.updates["std"], [np.nan, 3.0])
    np.testing.assert_array_equal(curves.updates["nonfinite.loss"], [1.0, np.nan])
    np.testing.assert_array_equal(curves.updates["episodes.return_mean"], [np.nan, 2.0])
    np.testing.assert_array_equal(curves.updates["seconds.env"], [0.25, np.nan])
    assert np.isnan(curves.updates["never heard of"]).all()
    assert curves.evals["return_mean"].tolist() == [8.0]
    assert curves.evals.env_steps.tolist() == [128]
    assert curves.header is not None
    assert curves.end is not None
    assert (curves.header.env, curves.end.reason, curves.sessions) == ("CartPole-v1", "finished", 1)


def test_the_time_between_sessions_does_not_count(tmp_path: Path, open_recorder: Open, clock: Any):
    for session in range(2):
        recorder = open_recorder()
        recorder.header(env="CartPole-v1", seed=1, config={})
        clock.now += 10
        recorder.update(env_steps=64, updates=session + 1, m={})
        if session == 0:
            recorder.close("interrupted")
        clock.now += 100_000
    curves = load_curves(tmp_path)
    assert curves.updates.elapsed.tolist() == [10.0, 20.0]
    assert (curves.sessions, curves.end) == (2, None)


def test_a_header_repeated_by_rotation_is_no_new_session(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder(rotate_bytes=1)
    recorder.header(env="CartPole-v1", seed=1, config={})
    clock.now += 3
    recorder.update(env_steps=1, updates=1, m={})
    recorder.close("finished")
    curves = load_curves(tmp_path)
    assert curves.sessions == 1
    assert curves.updates.elapsed.tolist() == [3.0]
    assert curves.end is not None


def test_a_resumed_run_has_not_ended(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder()
    recorder.header(env="CartPole-v1", seed=1, config={})
    recorder.close("interrupted")
    truncate_after(tmp_path, 0)
    assert load_curves(tmp_path).end is None


def test_a_record_without_updates_has_empty_curves(tmp_path: Path):
    (tmp_path / "telemetry.ndjson").write_text(event(1))
    curves = load_curves(tmp_path)
    assert (len(curves.updates), len(curves.evals), curves.updates["lr"].shape) == (0, 0, (0,))
    assert [e.name for e in curves.events if isinstance(e, EventRecord)] == ["e1"]
