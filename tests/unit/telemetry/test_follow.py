import gzip
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import TelemetryError
from surefoot.telemetry.follow import Follow
from surefoot.telemetry.reader import LineProblem, scan
from surefoot.telemetry.writer import Recorder, truncate_after

Open = Callable[..., Recorder]
OLD = (Path(__file__).parents[2] / "samples" / "telemetry" / "v1.1" / "full.ndjson").read_bytes()


def event(seq: int) -> bytes:
    head = f'{{"kind":"event","v":"2.0.0","run":"r","seq":{seq},"t":{seq},"env_steps":0,"updates":0,'
    return f'{head}"name":"e{seq}"}}\n'.encode()


def seqs(items: Iterable[Any]) -> list[int]:
    items = list(items)
    assert not any(isinstance(item, LineProblem) for item in items), items
    return [item.seq for item in items]


def append(file: Path, data: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(data)


def test_a_file_that_comes_later_is_awaited(tmp_path: Path):
    folder = tmp_path / "run"
    with Follow(folder) as follow:
        assert not list(follow.poll())
        folder.mkdir()
        assert not list(follow.poll())
        (folder / "telemetry.ndjson").write_bytes(event(1))
        assert seqs(follow.poll()) == [1]
        assert not list(follow.poll())


def test_half_a_line_waits_for_its_other_half(tmp_path: Path):
    file = tmp_path / "x.ndjson"
    line = event(2)
    file.write_bytes(event(1) + line[:30])
    with Follow(file) as follow:
        assert seqs(follow.poll()) == [1]
        append(file, line[30:60])
        assert not list(follow.poll())
        append(file, line[60:] + event(3))
        assert seqs(follow.poll()) == [2, 3]


def test_nothing_is_lost_or_told_twice_when_the_writer_rotates(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder(rotate_bytes=500)
    told: list[int] = []
    with Follow(tmp_path) as follow:
        for number in range(60):
            recorder.event("tick")
            if number % 7 == 0:
                told += seqs(follow.poll())
        told += seqs(follow.poll())
    assert len(list(tmp_path.glob("*.gz"))) > 5
    assert told == list(range(1, 61))


def test_parts_that_are_there_at_the_start_come_first(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder(rotate_bytes=500)
    for _ in range(20):
        recorder.event("tick")
    with Follow(tmp_path) as follow:
        assert seqs(follow.poll()) == list(range(1, 21))


def test_a_resumed_run_is_followed_through_its_cut(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder()
    for number in (1, 2, 3, 4):
        clock.now += 1
        recorder.update(env_steps=number, updates=number, m={})
    with Follow(tmp_path) as follow:
        assert seqs(follow.poll()) == [1, 2, 3, 4]
        recorder.close()
        truncate_after(tmp_path, 2)
        recorder = open_recorder()
        for number in (3, 4, 5, 6, 7):  # longer than before the cut, so the size alone would not tell
            clock.now += 1
            recorder.update(env_steps=number, updates=number, m={})
        assert seqs(follow.poll()) == [5, 6, 7, 8, 9, 10]


def test_a_file_that_is_renamed_away_is_read_to_its_end(tmp_path: Path):
    file = tmp_path / "ppo.jsonl"
    lines = OLD.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]))
    with Follow(file) as follow:
        assert len(list(follow.poll())) == 2
        append(file, lines[2])
        os.rename(file, tmp_path / "ppo.jsonl.1")
        assert len(list(follow.poll())) == 1
        file.write_bytes(lines[3] + lines[4])
        assert len(list(follow.poll())) == 2


def test_an_old_log_that_is_emptied_begins_anew(tmp_path: Path):
    file = tmp_path / "ppo.jsonl"
    lines = OLD.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]))
    with Follow(file) as follow:
        assert len(list(follow.poll())) == 3
        file.write_bytes(lines[5])
        assert [item.env_steps for item in follow.poll() if not isinstance(item, LineProblem)] == [960]


def test_a_bad_line_is_told_with_its_number_and_passed_over(tmp_path: Path):
    file = tmp_path / "x.ndjson"
    file.write_bytes(event(1) + b"hello\n\n" + event(2))
    with Follow(file) as follow:
        first, problem, second = follow.poll()
    assert isinstance(problem, LineProblem)
    assert (problem.line, seqs([first, second])) == (2, [1, 2])


def test_a_line_longer_than_a_chunk_is_one_line(tmp_path: Path):
    file = tmp_path / "x.ndjson"
    long = event(1).replace(b'"e1"', b'"' + b"e" * (5 << 20) + b'"')
    file.write_bytes(long + event(2))
    with Follow(file) as follow:
        assert seqs(follow.poll()) == [1, 2]


def test_a_single_compressed_file_is_read_once(tmp_path: Path):
    file = tmp_path / "old.ndjson.gz"
    file.write_bytes(gzip.compress(event(1) + event(2)))
    with Follow(file) as follow:
        assert seqs(follow.poll()) == [1, 2]
        assert not list(follow.poll())
    file.write_bytes(gzip.compress(b"".join(map(event, range(1, 400))))[:-30])
    with Follow(file) as follow:
        *_, problem = follow.poll()
    assert isinstance(problem, LineProblem)
    assert "cannot be read further" in problem.message


def test_a_file_of_a_later_version_is_refused_in_one_sentence(tmp_path: Path):
    file = tmp_path / "telemetry.ndjson"
    file.write_bytes(event(1).replace(b"2.0.0", b"3.0.0"))
    with (
        Follow(file) as follow,
        pytest.raises(TelemetryError, match=r"version 3\.0\.0; this version .* reads 2\.x and 1\.x"),
    ):
        list(follow.poll())
    with pytest.raises(TelemetryError, match=r"version 3\.0\.0"):
        scan(file)


def test_a_reader_that_stops_within_a_chunk_gets_the_rest_of_it_later(tmp_path: Path):
    file = tmp_path / "telemetry.ndjson"
    file.write_bytes(event(1) + event(2))
    with Follow(file) as follow:
        assert seqs([next(follow.poll())]) == [1]
        assert seqs(follow.poll()) == [2]
