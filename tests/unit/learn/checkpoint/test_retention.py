"""The last few, the best, the pinned and one that loads stay; the rest goes."""

import errno
import os

import pytest

from surefoot.errors import CheckpointCorrupt, CheckpointError, CheckpointMissing, ConfigError
from surefoot.learn.checkpoint.atomic_files import RealFs
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.checkpoint.retention import best, go_back, mark_best, pin, pinned, prune, sweep, unpin

DEAD = 4_194_305  # One more than the largest process id Linux gives.


def save(root, *steps):
    for step in steps:
        save_checkpoint(root, step, {"x": {"step": step}})


def damage(root, step):
    (root / f"{step:06d}" / "state.json").write_text("{}")


def steps(root):
    return sorted(int(name) for name in os.listdir(root) if name.isdecimal())


def test_the_last_ones_stay(tmp_path):
    save(tmp_path, 1, 2, 3, 10)
    gone = prune(tmp_path, keep_last=2)
    assert steps(tmp_path) == [3, 10]
    assert sorted(path.name for path in gone) == ["000001", "000002"]


def test_the_best_and_the_pinned_stay(tmp_path):
    save(tmp_path, 1, 2, 3, 4, 5)
    mark_best(tmp_path, 2)
    pin(tmp_path, 1)
    pin(tmp_path, 3)
    unpin(tmp_path, 3)
    prune(tmp_path, keep_last=1)
    assert steps(tmp_path) == [1, 2, 5]
    assert (best(tmp_path), pinned(tmp_path)) == (2, {1})
    assert load_checkpoint(tmp_path / "best").step == 2


def test_the_former_best_goes_when_another_is_marked(tmp_path):
    save(tmp_path, 1, 2, 3)
    mark_best(tmp_path, 1)
    mark_best(tmp_path, 2)
    prune(tmp_path, keep_last=1)
    assert steps(tmp_path) == [2, 3]


def test_the_only_whole_one_stays_however_old(tmp_path):
    save(tmp_path, 1, 2, 3, 4)
    damage(tmp_path, 3)
    damage(tmp_path, 4)
    prune(tmp_path, keep_last=2)
    assert steps(tmp_path) == [2, 3, 4]
    assert load_checkpoint(tmp_path).step == 2


def test_after_going_back_the_abandoned_steps_go_first(tmp_path):
    save(tmp_path, 100, 200, 300, 110)
    prune(tmp_path, keep_last=2)
    assert steps(tmp_path) == [100, 110]


def test_an_old_version_goes_only_if_the_new_one_is_whole(tmp_path):
    save(tmp_path, 5)
    (tmp_path / "000005").rename(tmp_path / "000005.replaced")
    prune(tmp_path, keep_last=1)
    assert (tmp_path / "000005.replaced").exists(), "it is the only one"

    (tmp_path / "000005.replaced").rename(tmp_path / "aside")
    save(tmp_path, 5)
    (tmp_path / "aside").rename(tmp_path / "000005.replaced")
    damage(tmp_path, 5)
    prune(tmp_path, keep_last=1)
    assert load_checkpoint(tmp_path).path.name == "000005.replaced"

    (tmp_path / "000005.replaced").rename(tmp_path / "aside")
    save(tmp_path, 5)
    (tmp_path / "aside").rename(tmp_path / "000005.replaced")
    prune(tmp_path, keep_last=1)
    assert sorted(os.listdir(tmp_path)) == ["000005", "latest"]


def test_an_old_version_does_not_count_as_one_of_the_last(tmp_path):
    save(tmp_path, 4, 5)
    (tmp_path / "000005").rename(tmp_path / "aside")
    save(tmp_path, 5)
    (tmp_path / "aside").rename(tmp_path / "000005.replaced")
    prune(tmp_path, keep_last=2)
    assert sorted(os.listdir(tmp_path)) == ["000004", "000005", "latest"]


def test_what_the_dead_left_is_swept_and_what_the_living_write_is_not(tmp_path):
    for name in (f".tmp-{DEAD}-abcd-000001", f".tmp-{os.getpid()}-another-life-000001", f".tmp-{os.getppid()}-a-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights.safetensors").write_bytes(b"half")
    (tmp_path / f".tmp-{DEAD}-abcd-latest").symlink_to("000001")
    (tmp_path / ".tmp-nonsense").write_bytes(b"")
    assert len(sweep(tmp_path)) == 4
    assert os.listdir(tmp_path) == [f".tmp-{os.getppid()}-a-1"]


def test_a_step_that_is_not_there_can_be_neither_best_nor_pinned(tmp_path):
    save(tmp_path, 1)
    for mark in (mark_best, pin):
        with pytest.raises(CheckpointMissing, match="no checkpoint of step 2"):
            mark(tmp_path, 2)


@pytest.mark.parametrize("text", ["{", "7", '"12"', "[1.5]", '["1"]', "[true]"])
def test_a_damaged_list_of_pins_stops_pruning(tmp_path, text):
    save(tmp_path, 1, 2, 3)
    (tmp_path / "pinned.json").write_text(text)
    with pytest.raises(CheckpointCorrupt, match=r"pinned\.json"):
        prune(tmp_path, keep_last=1)
    assert steps(tmp_path) == [1, 2, 3]


def test_to_keep_none_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="keep_last is 0"):
        prune(tmp_path, keep_last=0)


class ReadOnly(RealFs):
    def rename(self, source, target):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_on_a_read_only_disk_nothing_goes_and_marks_say_why(tmp_path):
    save(tmp_path, 1, 2)
    assert prune(tmp_path, keep_last=1, fs=ReadOnly()) == []
    assert steps(tmp_path) == [1, 2]
    for mark in (mark_best, pin):
        with pytest.raises(CheckpointError, match="Read-only file system"):
            mark(tmp_path, 1, fs=ReadOnly())
    assert sorted(os.listdir(tmp_path)) == ["000001", "000002", "latest"]


class Interrupted(RealFs):
    def remove_tree(self, path):
        (path / "state.json").unlink()
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_half_a_removal_leaves_nothing_under_a_checkpoint_s_name(tmp_path):
    save(tmp_path, 1, 2)
    prune(tmp_path, keep_last=1, fs=Interrupted())
    assert steps(tmp_path) == [2]


def test_going_back_makes_an_earlier_step_the_one_that_loads(tmp_path):
    save(tmp_path, 1, 2, 3)
    go_back(tmp_path, 2)
    assert load_checkpoint(tmp_path).step == 2
    with pytest.raises(CheckpointMissing, match="step 7"):
        go_back(tmp_path, 7)
