from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import TelemetryError
from surefoot.telemetry.reader import read_all
from surefoot.telemetry.schema import EpisodeRecord, EventRecord, Record
from surefoot.telemetry.writer import Recorder, truncate_after

Open = Callable[..., Recorder]


def write_run(open_recorder: Open, clock: Any, updates: int, **options: Any) -> None:
    """A header, then for each update an episode on the way to it, the update, and after every second a checkpoint."""
    recorder = open_recorder(**options)
    recorder.header(env="CartPole-v1", seed=1, config={})
    for number in range(1, updates + 1):
        clock.now += 1
        recorder.episode(return_=1.0, length=5, env=0, env_steps=number * 10 - 5, terminated=True)
        recorder.update(env_steps=number * 10, updates=number, m={"kl": 0.1})
        if number % 2 == 0:
            recorder.event("checkpoint")
    recorder.close("interrupted")


def names(folder: Path) -> list[tuple[str, int]]:
    def name(record: Record) -> str:
        return record.name if isinstance(record, EventRecord) else type(record).__name__

    reading = read_all(folder)
    assert reading.problems == []
    return [(name(r), r.updates) for r in reading.records]


def test_what_came_after_the_checkpoint_is_cut_away(tmp_path: Path, open_recorder: Open, clock: Any):
    write_run(open_recorder, clock, 3)
    assert truncate_after(tmp_path, 2) == 3  # the episode and the update after it, and the end
    assert names(tmp_path) == [
        ("HeaderRecord", 0),
        ("EpisodeRecord", 0),
        ("UpdateRecord", 1),
        ("EpisodeRecord", 1),
        ("UpdateRecord", 2),
        ("checkpoint", 2),
        ("resumed", 2),
    ]


def test_the_cut_is_reported_and_seq_never_comes_twice(tmp_path: Path, open_recorder: Open, clock: Any):
    write_run(open_recorder, clock, 3)
    before = [r.seq for r in read_all(tmp_path).records]
    truncate_after(tmp_path, 2)
    event = read_all(tmp_path).records[-1]
    assert isinstance(event, EventRecord)
    assert event.seq == before[-1] + 1 == 10
    assert event.data == {"cut_lines": 3, "torn_bytes": 0, "cut_seq": [7, 9]}
    recorder = open_recorder()
    assert (recorder.env_steps, recorder.updates) == (20, 2)
    recorder.event("on")
    assert read_all(tmp_path).records[-1].seq == 11


def test_a_checkpoint_at_the_end_cuts_nothing(tmp_path: Path, open_recorder: Open, clock: Any):
    write_run(open_recorder, clock, 2)
    assert truncate_after(tmp_path, 2) == 0
    assert names(tmp_path)[-2:] == [("EndRecord", 2), ("resumed", 2)]


def test_going_back_to_the_beginning_keeps_the_header(tmp_path: Path, open_recorder: Open, clock: Any):
    write_run(open_recorder, clock, 2)
    truncate_after(tmp_path, 0)
    assert names(tmp_path) == [("HeaderRecord", 0), ("resumed", 0)]


@pytest.mark.parametrize("checkpoint", [1, 25, 40])
def test_the_cut_reaches_into_rotated_parts(tmp_path: Path, open_recorder: Open, clock: Any, checkpoint: int):
    write_run(open_recorder, clock, 40, rotate_bytes=1500)
    assert len(list(tmp_path.glob("*.gz"))) > 3
    truncate_after(tmp_path, checkpoint)
    reading = read_all(tmp_path)
    assert reading.problems == []
    assert max(r.updates for r in reading.records) == checkpoint
    assert [r.env_steps for r in reading.records if isinstance(r, EpisodeRecord)] == [
        number * 10 - 5 for number in range(1, checkpoint + 1)
    ]
    assert (read_all(tmp_path).records[-1].seq) > 100  # 40 episodes, 40 updates, 20 checkpoints and the headers


def test_a_line_that_also_covers_later_updates_is_cut(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder()
    for number in (1, 2, 3):
        recorder.update(env_steps=number, updates=number, m={})
    recorder.close("interrupted")  # update 1 has its own line, 2 and 3 share one
    truncate_after(tmp_path, 2)
    assert names(tmp_path) == [("UpdateRecord", 1), ("resumed", 1)]


def test_an_episode_told_only_after_its_update_is_kept(tmp_path: Path, open_recorder: Open):
    recorder = open_recorder()
    recorder.update(env_steps=10, updates=1, m={})
    recorder.episode(return_=1.0, length=5, env=0, env_steps=10, terminated=True)
    recorder.episode(return_=1.0, length=5, env=0, env_steps=11, terminated=True)
    recorder.close()
    assert truncate_after(tmp_path, 1) == 1
    assert names(tmp_path) == [("UpdateRecord", 1), ("EpisodeRecord", 1), ("resumed", 1)]


def test_a_record_that_is_being_written_is_not_cut(tmp_path: Path, open_recorder: Open):
    open_recorder().event("mine")
    with pytest.raises(TelemetryError, match="one writer"):
        truncate_after(tmp_path, 0)


def test_without_a_record_there_is_nothing_to_cut(tmp_path: Path):
    assert truncate_after(tmp_path, 5) == 0
    assert list(tmp_path.iterdir()) == []
