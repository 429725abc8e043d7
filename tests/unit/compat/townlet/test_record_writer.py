import json
import math
from pathlib import Path
from typing import Any

import pytest

from surefoot.compat.townlet import records as old
from surefoot.compat.townlet.record_writer import FlatMirror, flat_lines, to_flat
from surefoot.errors import TelemetryError
from surefoot.telemetry.reader import read_all
from surefoot.telemetry.schema import UpdateRecord
from surefoot.telemetry.writer import Recorder

SAMPLES = Path(__file__).parents[3] / "samples" / "telemetry"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_run_becomes_an_object_an_epoch_that_is_valid_1_1(tmp_path: Path):
    out = lines(to_flat(SAMPLES / "v2.0" / "full.ndjson", tmp_path / "ppo.jsonl"))
    assert len(out) == 6 * 2
    assert [line["epoch"] for line in out[:4]] == [1.0, 2.0, 1.0, 2.0]
    assert [line["log_stream_offset"] for line in out] == [float(i) for i in range(12)]
    assert [line["cycle_id"] for line in out[::2]] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert [line["steps"] for line in out[::2]] == [64.0, 128.0, 192.0, 256.0, 320.0, 384.0]
    assert out[0]["loss_policy"] != out[1]["loss_policy"]
    assert out[0]["epoch_duration_sec"] == pytest.approx(0.15)
    for line in out:
        assert old.version_of(line) == "1.1"
        assert old.errors(line, "1.1") == []
        assert all(isinstance(x, float) for key, x in line.items() if key != "data_mode")


def test_a_1_1_log_comes_back_as_it_was(tmp_path: Path):
    source = SAMPLES / "v1.1" / "full.ndjson"
    assert lines(to_flat(source, tmp_path / "again.jsonl")) == lines(source)


def test_a_number_that_was_not_finite_is_zero_and_named():
    update = UpdateRecord(
        v="2.0.0", run="r", seq=1, t=1.0, env_steps=8, updates=1, m={"loss": None}, nonfinite={"m.loss": "nan"}
    )
    (line,) = flat_lines(update, offset=0)
    assert (line["loss_total"], line["nonfinite"]) == (0.0, "loss")
    assert old.errors(line, "1.1") == []


def test_a_live_run_is_mirrored_and_gone_on_with(tmp_path: Path):
    log = tmp_path / "logs" / "ppo.jsonl"
    for number in (1, 2):
        recorder = Recorder(tmp_path, "walk-1", mirrors=[FlatMirror(log)])
        recorder.update(env_steps=8 * number, updates=number, m={"loss": math.inf, "policy_loss": 0.25})
        recorder.close()
    assert [line["log_stream_offset"] for line in lines(log)] == [0.0, 1.0]
    assert [line["loss_policy"] for line in lines(log)] == [0.25, 0.25]
    assert read_all(log).problems == []


def test_a_broken_log_is_not_gone_on_with(tmp_path: Path):
    log = tmp_path / "ppo.jsonl"
    log.write_text("hello\n")
    with pytest.raises(TelemetryError, match=r"ppo\.jsonl:1: .*give a new file"):
        FlatMirror(log)
    assert log.read_text() == "hello\n"


def updates(count: int) -> list[UpdateRecord]:
    return [
        UpdateRecord(v="2.0.0", run="r", seq=i, t=1.0, env_steps=8 * i, updates=i, m={"policy_loss": float(i)})
        for i in range(1, count + 1)
    ]


def test_every_nth_epoch_is_written_and_the_offset_counts_all(tmp_path: Path):
    with FlatMirror(tmp_path / "ppo.jsonl", every=3) as log:
        for update in updates(7):
            log.write(update)
    written = lines(tmp_path / "ppo.jsonl")
    assert [line["log_stream_offset"] for line in written] == [0.0, 3.0, 6.0]
    assert [line["loss_policy"] for line in written] == [1.0, 4.0, 7.0]
    assert read_all(tmp_path / "ppo.jsonl").problems == []


def test_a_full_log_is_renamed_and_a_later_mirror_counts_on(tmp_path: Path):
    path = tmp_path / "ppo.jsonl"
    for part in (updates(3), updates(4)):
        with FlatMirror(path, max_lines=2) as log:
            for update in part:
                log.write(update)
    (tmp_path / "ppo.jsonl.old").write_text("not a part")
    files = [tmp_path / f"ppo.jsonl{end}" for end in (".1", ".2", ".3", "")]
    assert [[line["log_stream_offset"] for line in lines(file)] for file in files] == [[0, 1], [2, 3], [4, 5], [6]]
    path.unlink()
    with FlatMirror(path, max_lines=2) as log:
        log.write(updates(1)[0])
    assert lines(path)[0]["log_stream_offset"] == 6.0


@pytest.mark.parametrize("wrong", [{"every": 0}, {"max_lines": -1}])
def test_a_frequency_below_one_is_refused(tmp_path: Path, wrong: dict[str, int]):
    with pytest.raises(TelemetryError, match="at least 1 and 0"):
        FlatMirror(tmp_path / "ppo.jsonl", **wrong)
