import errno
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.errors import Diverged, TelemetryError
from surefoot.telemetry.files import line_file
from surefoot.telemetry.files.rotation import is_being_written
from surefoot.telemetry.reader import read_all
from surefoot.telemetry.schema import (
    EndRecord,
    EpisodeRecord,
    EvaluationRecord,
    EventRecord,
    FindingRecord,
    HeaderRecord,
    MinibatchRecord,
    Record,
    UpdateRecord,
)
from surefoot.telemetry.writer import Recorder, truncate_after

Open = Callable[..., Recorder]


def records(folder: Path) -> list[Record]:
    reading = read_all(folder)
    assert reading.problems == []
    return reading.records


def raw(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "telemetry.ndjson").read_text().splitlines()]


def test_a_run_is_written_line_by_line(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder()
    recorder.header(env="CartPole-v1", seed=7, config={"ppo": {"lr": 0.1}}, exact=True)
    recorder.update(env_steps=128, updates=1, m={"lr": 0.1, "samples": 128}, seconds={"learn": 0.5})
    recorder.close("finished")
    run, update, end = raw(tmp_path)
    assert [run["kind"], update["kind"], end["kind"]] == ["run", "update", "end"]
    assert (run["v"], run["run"], run["seed"], run["exact"]) == ("2.0.0", "walk-1", 7, True)
    assert (update["env_steps"], update["updates"], update["m"]) == (128, 1, {"lr": 0.1, "samples": 128})
    assert (end["reason"], end["env_steps"], [r["seq"] for r in (run, update, end)]) == ("finished", 128, [1, 2, 3])


def test_a_whole_number_stays_one_in_the_file(tmp_path: Path, open_recorder: Open):
    open_recorder().update(env_steps=1, updates=1, m={"samples": 128})
    assert b'"samples":128}' in (tmp_path / "telemetry.ndjson").read_bytes()


def test_numpy_numbers_are_taken(tmp_path: Path, open_recorder: Open):
    open_recorder().update(env_steps=1, updates=1, m={"a": np.float32(0.5), "b": np.float64(0.25)})
    assert raw(tmp_path)[0]["m"] == {"a": 0.5, "b": 0.25}


def test_nan_becomes_null_and_is_named(tmp_path: Path, open_recorder: Open):
    open_recorder().update(env_steps=1, updates=1, m={"loss": math.nan, "lr": 0.1}, epochs=[{"loss": math.inf}])
    (line,) = raw(tmp_path)
    assert line["m"] == {"loss": None, "lr": 0.1}
    assert line["nonfinite"] == {"m.loss": "nan", "epochs.0.loss": "inf"}


def test_seq_goes_on_after_a_restart(tmp_path: Path, open_recorder: Open):
    first = open_recorder()
    first.update(env_steps=64, updates=1, m={})
    first.close("interrupted")
    second = open_recorder()
    assert (second.env_steps, second.updates) == (64, 1)
    second.event("hello")
    assert [r.seq for r in records(tmp_path)] == [1, 2, 3]


def test_a_torn_tail_is_cut_off_and_reported(tmp_path: Path, open_recorder: Open):
    first = open_recorder()
    first.event("one")
    first.event("two")
    first.close()
    file = tmp_path / "telemetry.ndjson"
    os.truncate(file, file.stat().st_size - 5)
    torn = len(file.read_bytes().splitlines()[-1])
    open_recorder()
    one, report = records(tmp_path)
    assert isinstance(one, EventRecord)
    assert isinstance(report, EventRecord)
    assert (one.name, report.name, report.data, report.seq) == ("one", "torn_tail", {"bytes": torn}, 2)


def test_a_second_writer_is_refused(tmp_path: Path, open_recorder: Open):
    first = open_recorder()
    assert is_being_written(tmp_path)
    with pytest.raises(TelemetryError, match="one writer"):
        open_recorder()
    first.close()
    assert not is_being_written(tmp_path)
    open_recorder().event("now it may")


def test_a_foreign_file_is_not_written_to(tmp_path: Path, open_recorder: Open):
    file = tmp_path / "telemetry.ndjson"
    file.write_text('{"telemetry_version": 1.1, "epoch": 1.0}\n')
    with pytest.raises(TelemetryError, match="none is a record"):
        open_recorder()
    assert file.read_text() == '{"telemetry_version": 1.1, "epoch": 1.0}\n'


def test_a_record_of_another_major_version_is_not_written_to(tmp_path: Path, open_recorder: Open):
    (tmp_path / "telemetry.ndjson").write_text('{"kind":"run","v":"3.0.0","seq":4}\n')
    with pytest.raises(TelemetryError, match=r"3\.0\.0"):
        open_recorder()


def test_fast_updates_share_a_line(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder(updates_per_second=10)
    for number in range(1, 8):  # at 0, 0.04, 0.08, 0.12 …
        recorder.update(env_steps=number, updates=number, m={"kl": float(number)}, epochs=[{"kl": 1.0}])
        clock.now += 0.04
    recorder.sync()
    written = [r for r in records(tmp_path) if isinstance(r, UpdateRecord)]
    assert [(r.updates, r.covers) for r in written] == [(1, 1), (4, 3), (7, 3)]
    assert (written[1].m, written[1].m_min, written[1].m_max) == ({"kl": 3.0}, {"kl": 2.0}, {"kl": 4.0})
    assert [len(r.epochs) for r in written] == [1, 0, 0]


def test_slow_updates_have_a_line_each(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder(updates_per_second=10)
    for number in range(1, 4):
        recorder.update(env_steps=number, updates=number, m={"kl": 0.1})
        clock.now += 0.2
    assert [r.covers for r in records(tmp_path) if isinstance(r, UpdateRecord)] == [1, 1, 1]


@pytest.mark.parametrize(("line_seconds", "covers"), [(0.0001, 1), (0.0006, 3), (0.5, 5)])
def test_lines_that_cost_much_come_less_often(
    tmp_path: Path, open_recorder: Open, clock: Any, line_seconds: float, covers: int
):
    """They may take 0.002 of the time: 0.6 ms a line are 0.3 s from one to the next; a fifth of the rate is kept."""
    watch = count(step=line_seconds)  # looked at when a line is begun and when it is written
    recorder = open_recorder(updates_per_second=10, stopwatch=lambda: next(watch))
    for number in range(1, 61):
        clock.now += 0.101
        recorder.update(env_steps=number, updates=number, m={})
    assert {r.covers for r in records(tmp_path)[1:] if isinstance(r, UpdateRecord)} == {covers}


def test_what_waits_is_written_before_an_event(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder()
    recorder.update(env_steps=1, updates=1, m={})
    recorder.update(env_steps=2, updates=2, m={})
    recorder.event("checkpoint")
    assert [(type(r), r.updates) for r in records(tmp_path)] == [(UpdateRecord, 1), (UpdateRecord, 2), (EventRecord, 2)]


def defer(recorder: Recorder, number: int) -> None:
    """What a run does after each update."""

    def tell() -> None:
        recorder.episode(return_=1.0, length=9, env=0, env_steps=64 * number, terminated=True)
        recorder.update(env_steps=64 * number, updates=number, m={"loss": float(number)})

    recorder.defer(tell)


def test_deferred_updates_are_told_when_a_line_is_due(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder(updates_per_second=1.0)
    for number in (1, 2, 3):
        defer(recorder, number)
        clock.now += 0.4
    assert [(r.updates, r.env_steps) for r in records(tmp_path)] == [(0, 64), (1, 64)]
    defer(recorder, 4)
    *_, late, update = records(tmp_path)
    assert isinstance(late, EpisodeRecord)
    assert (late.env_steps, late.updates) == (256, 3)
    assert isinstance(update, UpdateRecord)
    assert (update.updates, update.env_steps, update.covers, update.m) == (4, 256, 3, {"loss": 3.0})
    assert (update.m_min, update.m_max) == ({"loss": 2.0}, {"loss": 4.0})


def test_a_deferred_update_is_told_before_anything_else_is_written(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder()
    defer(recorder, 1)
    defer(recorder, 2)
    recorder.event("pause")
    *_, update, event = records(tmp_path)
    assert isinstance(update, UpdateRecord)
    assert isinstance(event, EventRecord)
    assert (update.updates, event.updates, event.env_steps) == (2, 2, 128)


def test_a_clock_set_back_holds_no_line_up(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder()
    recorder.update(env_steps=1, updates=1, m={})
    clock.now -= 3600
    recorder.update(env_steps=2, updates=2, m={})
    assert len(records(tmp_path)) == 2


def test_too_many_episodes_are_counted_instead(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder(episodes_per_second=2)
    for steps in range(1, 6):
        recorder.episode(return_=1.0, length=1, env=0, env_steps=steps, terminated=True)
    recorder.update(env_steps=5, updates=1, m={})
    clock.now += 1
    recorder.episode(return_=1.0, length=1, env=0, env_steps=6, terminated=False, success=True)
    recorder.update(env_steps=6, updates=2, m={})
    kept = records(tmp_path)
    assert [type(r) for r in kept] == [EpisodeRecord, EpisodeRecord, UpdateRecord, EpisodeRecord, UpdateRecord]
    assert [r.episodes_dropped for r in kept if isinstance(r, UpdateRecord)] == [3, 0]
    assert isinstance(kept[3], EpisodeRecord)
    assert (kept[3].env_steps, kept[3].terminated, kept[3].success) == (6, False, True)


def test_an_evaluation_is_summed_up(tmp_path: Path, open_recorder: Open):
    open_recorder().eval(returns=[1.0, 3.0], lengths=[10, 20], successes=[True, False], deterministic=True)
    (record,) = records(tmp_path)
    assert isinstance(record, EvaluationRecord)
    assert (record.return_mean, record.return_std, record.return_min, record.return_max) == (2.0, 1.0, 1.0, 3.0)
    assert (record.length_mean, record.success_rate, record.returns, record.lengths) == (
        15.0,
        0.5,
        [1.0, 3.0],
        [10, 20],
    )


def test_an_evaluation_that_diverged_says_so(tmp_path: Path, open_recorder: Open):
    open_recorder().eval(returns=[1.0, math.inf], lengths=[10, 20])
    (record,) = records(tmp_path)
    assert isinstance(record, EvaluationRecord)
    assert record.returns == [1.0, None]
    assert record.nonfinite["returns.1"] == "inf"
    assert record.nonfinite["return.std"] == "nan"


def test_an_evaluation_of_nothing_is_refused(open_recorder: Open):
    with pytest.raises(TelemetryError, match="at least one episode"):
        open_recorder().eval(returns=[], lengths=[])


def test_a_big_record_is_rotated_and_each_part_begins_with_the_header(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder(rotate_bytes=1500)
    recorder.header(env="CartPole-v1", seed=1, config={})
    for number in range(1, 31):
        clock.now += 1
        recorder.update(env_steps=number, updates=number, m={"kl": 0.1})
    recorder.close("finished")
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names[:2] == ["telemetry.0001.ndjson.gz", "telemetry.0002.ndjson.gz"]
    everything = records(tmp_path)
    assert [r.updates for r in everything if isinstance(r, UpdateRecord)] == list(range(1, 31))
    assert [r.seq for r in everything] == list(range(1, len(everything) + 1))
    assert len([r for r in everything if isinstance(r, HeaderRecord)]) == len(names)
    assert raw(tmp_path)[0]["kind"] == "run"


@pytest.mark.parametrize("gulps", [1, 2, 3])
def test_a_full_disk_leaves_whole_lines(
    tmp_path: Path, open_recorder: Open, monkeypatch: pytest.MonkeyPatch, gulps: int
):
    recorder = open_recorder()
    recorder.event("before")
    write, calls = os.write, []

    def nearly_full(fd: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) <= gulps:
            return write(fd, data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(line_file.os, "write", nearly_full)
        with pytest.raises(TelemetryError, match="No space left"):
            recorder.event("lost")
    recorder.event("after")
    assert [(r.seq, r.name) for r in records(tmp_path) if isinstance(r, EventRecord)] == [(1, "before"), (2, "after")]


def test_a_closed_record_takes_nothing_more(open_recorder: Open):
    recorder = open_recorder()
    recorder.close("finished")
    recorder.close("error")
    with pytest.raises(TelemetryError, match="is closed"):
        recorder.event("too late")


@pytest.mark.parametrize(
    ("error", "reason"),
    [(KeyboardInterrupt(), "interrupted"), (Diverged("loss is nan"), "diverged"), (ValueError("boom"), "error")],
)
def test_leaving_by_an_error_says_which(tmp_path: Path, open_recorder: Open, error: BaseException, reason: str):
    with pytest.raises(type(error)), open_recorder():
        raise error
    (end,) = records(tmp_path)
    assert isinstance(end, EndRecord)
    assert end.reason == reason
    assert str(error) in end.message


def test_a_mirror_sees_every_record_as_written(tmp_path: Path, open_recorder: Open):
    class Memory:
        def __init__(self) -> None:
            self.seen: list[Record] = []
            self.closed = False

        def write(self, record: Record) -> None:
            self.seen.append(record)

        def close(self) -> None:
            self.closed = True

    memory = Memory()
    recorder = open_recorder(mirrors=[memory])
    recorder.update(env_steps=1, updates=1, m={"kl": 0.5})
    recorder.update(env_steps=2, updates=2, m={"kl": 0.5})
    recorder.close("finished")
    assert memory.seen == records(tmp_path)
    assert memory.closed


def test_the_disk_is_synchronised_every_few_seconds(open_recorder: Open, clock: Any, monkeypatch: pytest.MonkeyPatch):
    synced: list[float] = []
    monkeypatch.setattr(line_file, "_sync", lambda fd: synced.append(clock.now - 1_700_000_000))
    recorder = open_recorder(sync_seconds=5)
    for _ in range(12):
        clock.now += 1
        recorder.event("tick")
        finish_syncing(recorder)
    assert synced == [5.0, 10.0]


def finish_syncing(recorder: Any) -> None:
    recorder._file._disk.submit(lambda: None).result()  # comes after what is under way


def test_the_disk_is_not_waited_for(tmp_path: Path, open_recorder: Open, clock: Any, monkeypatch: pytest.MonkeyPatch):
    go, pushed = threading.Event(), list[int]()
    monkeypatch.setattr(line_file, "_sync", lambda fd: (go.wait(10), pushed.append(fd)))
    recorder = open_recorder(sync_seconds=5)
    clock.now += 6
    recorder.event("begins a sync")
    clock.now += 6
    recorder.event("goes on")
    assert (pushed, len(records(tmp_path))) == ([], 2)
    go.set()
    recorder.sync()
    assert len(pushed) == 2  # the one that was under way, and one for the line that came after it began
    recorder.sync()
    assert len(pushed) == 2  # nothing new


@pytest.mark.parametrize("ask", ["event", "begin_sync", "sync", "close"])
def test_what_the_disk_refuses_is_told(open_recorder: Open, clock: Any, monkeypatch: pytest.MonkeyPatch, ask: str):
    def refuse(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(line_file, "_sync", refuse)
        recorder = open_recorder(sync_seconds=5)
        clock.now += 6
        recorder.event("begins a sync")
        finish_syncing(recorder)
        clock.now += 6
        with pytest.raises(TelemetryError, match="could not be synchronised to the disk: Input/output error"):
            recorder.event("next") if ask == "event" else getattr(recorder, ask)()
    if ask != "close":
        recorder.sync()


def test_numbers_are_asked_for_when_the_line_is_due_and_epochs_where_it_has_one_update(
    tmp_path: Path, open_recorder: Open, clock: Any
):
    recorder, asked = open_recorder(), list[str]()

    def numbers(number: int) -> tuple[tuple[str, ...], tuple[float, ...]]:
        asked.append(f"m {number}")
        return ("loss",), (float(number),)

    def epochs(number: int) -> list[dict[str, float]]:
        asked.append(f"epochs {number}")
        return [{"loss": 1.0}]

    for n in range(1, 4):
        recorder.update(env_steps=n, updates=n, m=lambda n=n: numbers(n), epochs=lambda n=n: epochs(n))
    assert sorted(asked) == ["epochs 1", "m 1"]
    recorder.sync()
    assert asked[2:] == ["m 2", "m 3"]
    assert [(r.covers, len(r.epochs), r.m) for r in records(tmp_path) if isinstance(r, UpdateRecord)] == [
        (1, 1, {"loss": 1.0}),
        (2, 0, {"loss": 2.5}),
    ]


def test_a_killed_writer_leaves_whole_lines(tmp_path: Path):
    child = os.fork()
    if child == 0:
        try:
            recorder = Recorder(tmp_path, "doomed", updates_per_second=1e9)
            for number in range(10**6):
                recorder.update(env_steps=number, updates=number, m={"kl": 0.1, "loss": number / 7})
        finally:
            os._exit(1)
    file = tmp_path / "telemetry.ndjson"
    while not file.exists() or file.stat().st_size < 100_000:
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    written = records(tmp_path)
    assert [r.seq for r in written] == list(range(1, len(written) + 1))


def test_no_minibatch_is_written_unless_asked(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder()
    for i in range(5):
        recorder.minibatch(epoch=0, minibatch=i, m={"loss": 1.0})
    assert records(tmp_path) == []


def test_sampled_minibatches_say_how_many_are_missing(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder(minibatch_rate=0.25)
    for i in range(12):
        recorder.minibatch(epoch=i // 6, minibatch=i, m={"loss": math.nan if i == 3 else float(i)})
    kept = records(tmp_path)
    assert all(isinstance(r, MinibatchRecord) for r in kept)
    assert [(r.minibatch, r.dropped, r.sample_rate) for r in kept] == [(3, 3, 0.25), (7, 3, 0.25), (11, 3, 0.25)]
    assert kept[0].nonfinite == {"m.loss": "nan"}


def test_minibatches_of_an_update_that_is_made_again_are_cut(tmp_path: Path, open_recorder: Open, clock: Any):
    recorder = open_recorder(minibatch_rate=1.0)
    for number in (1, 2):
        recorder.minibatch(epoch=0, minibatch=0, m={})
        clock.now += 1
        recorder.update(env_steps=number * 8, updates=number, m={})
    recorder.close()
    truncate_after(tmp_path, 1)
    assert [(type(r).__name__, r.updates) for r in records(tmp_path)] == [
        ("MinibatchRecord", 0),
        ("UpdateRecord", 1),
        ("EventRecord", 1),
    ]


def test_a_finding_is_on_the_disk_at_once(tmp_path: Path, open_recorder: Open, monkeypatch: pytest.MonkeyPatch):
    synced: list[int] = []
    monkeypatch.setattr(line_file, "_sync", synced.append)
    recorder = open_recorder()
    recorder.update(env_steps=8, updates=1, m={})
    recorder.finding(
        rule="R09", severity="error", title="the critic explodes", evidence={"value_loss": math.inf}, patch={"lr": 1e-4}
    )
    recorder.sync()
    assert len(synced) == 1
    finding = records(tmp_path)[-1]
    assert isinstance(finding, FindingRecord)
    assert (finding.status, finding.primary, finding.evidence) == ("open", True, {"value_loss": None})
    assert finding.nonfinite == {"evidence.value_loss": "inf"}


def test_words_stand_beside_the_numbers(tmp_path: Path, open_recorder: Open):
    open_recorder().update(env_steps=8, updates=1, m={"loss": 1.0}, labels={"data_mode": "rollout"})
    (update,) = records(tmp_path)
    assert isinstance(update, UpdateRecord)
    assert update.labels == {"data_mode": "rollout"}
