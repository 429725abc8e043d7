import gzip
import os
from pathlib import Path

from surefoot.telemetry.files import rotation


def line(seq: int) -> bytes:
    return b'{"kind":"event","v":"2.0.0","run":"r","seq":%d,"t":1,"env_steps":%d,"updates":0,"name":"x"}\n' % (seq, seq)


def test_parts_come_in_the_order_of_their_numbers(tmp_path: Path):
    names = ["telemetry.9999.ndjson.gz", "telemetry.0002.ndjson.gz", "telemetry.10000.ndjson.gz"]
    for name in [*names, "telemetry.ndjson", "telemetry.0003.ndjson.gz.draft", "other.0001.ndjson.gz"]:
        (tmp_path / name).touch()
    found = [p.name for p in rotation.rotated_parts(tmp_path / "telemetry.ndjson")]
    assert found == ["telemetry.0002.ndjson.gz", "telemetry.9999.ndjson.gz", "telemetry.10000.ndjson.gz"]


def test_rotation_moves_the_bytes_and_keeps_the_file(tmp_path: Path):
    live = tmp_path / "telemetry.ndjson"
    live.write_bytes(line(1) + line(2))
    fd = rotation.open_locked(live)
    part = rotation.rotate(fd, live)
    assert part.name == "telemetry.0001.ndjson.gz"
    assert gzip.decompress(part.read_bytes()) == line(1) + line(2)
    os.write(fd, line(3))
    os.close(fd)
    assert live.read_bytes() == line(3)


def test_a_rotation_cut_short_is_finished_on_opening(tmp_path: Path):
    live = tmp_path / "telemetry.ndjson"
    live.write_bytes(line(1) + line(2))
    fd = rotation.open_locked(live)
    rotation.rotate(fd, live)
    os.write(fd, line(1) + line(2))  # as if the emptying had not happened
    last, torn = rotation.settle(fd, live)
    os.close(fd)
    assert last is not None
    assert (last.seq, last.env_steps, torn, live.read_bytes()) == (2, 2, 0, b"")


def test_the_last_good_line_is_found_behind_bad_ones(tmp_path: Path):
    live = tmp_path / "telemetry.ndjson"
    live.write_bytes(line(1) * 3000 + line(7) + b"rubbish\n" * 20_000)
    last = rotation.last_position(live)
    assert last is not None
    assert last.seq == 7


def test_a_torn_line_longer_than_a_block_is_cut_whole(tmp_path: Path):
    live = tmp_path / "telemetry.ndjson"
    live.write_bytes(line(1) + b"x" * 200_000)
    fd = rotation.open_locked(live)
    last, torn = rotation.settle(fd, live)
    os.close(fd)
    assert last is not None
    assert (last.seq, torn, live.read_bytes()) == (1, 200_000, line(1))


def test_a_record_that_was_never_whole_starts_afresh(tmp_path: Path):
    live = tmp_path / "telemetry.ndjson"
    live.write_bytes(b'{"kind":"run","v":')
    fd = rotation.open_locked(live)
    assert rotation.settle(fd, live) == (None, 18)
    os.close(fd)
    assert live.read_bytes() == b""


def test_nobody_writes_a_record_that_is_not_there(tmp_path: Path):
    assert not rotation.is_being_written(tmp_path)
