"""Every state a crash can leave, every call that can fail, and retention against a model of it."""

import errno
import itertools
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from surefoot.errors import CheckpointCorrupt, CheckpointError, CheckpointMissing
from surefoot.learn.checkpoint.atomic_files import RealFs
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.checkpoint.retention import mark_best, pin, prune, unpin

OLD = {"weights": {"w": np.zeros(3)}, "optimizer": {"m": np.zeros(3)}, "rng": {"k": np.zeros(3), "n": 0}}
NEW = {"weights": {"w": np.ones(3)}, "optimizer": {"m": np.ones(3)}, "rng": {"k": np.ones(3), "n": 1}}


class NoSync(RealFs):
    """For tests that crash nothing; fsync is most of the time of a save."""

    def sync(self, path):
        pass

    def sync_dir(self, path):
        pass


def which(parts):
    """0 for OLD, 1 for NEW, anything else for a mixture."""
    numbers = {*parts["weights"]["w"], *parts["optimizer"]["m"], *parts["rng"]["k"], parts["rng"]["n"]}
    return int(numbers.pop()) if len(numbers) == 1 else "mixed"


# --- Crash states. A disk is a dict: path -> bytes, "dir" or ("link", target). ---


class Recorder(RealFs):
    """The real thing, and a list of what was asked of it."""

    def __init__(self, root):
        self.root = root
        self.calls = []

    def _note(self, verb, path, *more):
        self.calls.append((verb, str(path.relative_to(self.root)), *more))

    def mkdir(self, path):
        self._note("mkdir", path)
        super().mkdir(path)

    def write(self, path, data):
        self._note("write", path, data)
        super().write(path, data)

    def sync(self, path):
        self._note("sync", path)

    def sync_dir(self, path):
        self._note("sync_dir", path)

    def rename(self, source, target):
        self._note("rename", source, str(target.relative_to(self.root)))
        super().rename(source, target)

    def symlink(self, target, path):
        self._note("symlink", path, target)
        super().symlink(target, path)

    def unlink(self, path):
        self._note("unlink", path)
        super().unlink(path)

    def remove_tree(self, path):
        self._note("remove_tree", path)
        super().remove_tree(path)


def read_disk(root):
    disk = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        disk[name] = ("link", os.readlink(path)) if path.is_symlink() else "dir" if path.is_dir() else path.read_bytes()
    return disk


def write_disk(root, disk):
    for name, what in sorted(disk.items()):
        path = root / name
        if what == "dir":
            path.mkdir()
        elif isinstance(what, bytes):
            path.write_bytes(what)
        else:
            path.symlink_to(what[1])


def below(disk, name):
    return [path for path in disk if path == name or path.startswith(name + "/")]


def apply(disk, call, fate):
    """What this call leaves on the disk if `fate` befalls it. A call whose ground is gone does nothing."""
    verb, name, *more = call
    parent = os.path.dirname(name)
    if fate == "lost" or (parent and disk.get(parent) != "dir"):
        return
    if verb == "mkdir":
        disk[name] = "dir"
    elif verb == "write":
        data = more[0]
        disk[name] = {"kept": data, "empty": b"", "torn": data[: len(data) // 2], "zeros": bytes(len(data))}[fate]
    elif verb == "symlink":
        disk[name] = ("link", more[0])
    elif verb == "rename" and name in disk and len(below(disk, more[0])) <= 1:
        for path in below(disk, name):
            disk[more[0] + path[len(name) :]] = disk.pop(path)
    elif verb in ("unlink", "remove_tree"):
        gone = below(disk, name)
        for path in gone[1::2] if fate == "torn" else gone:
            del disk[path]


def fates(calls, i):
    """What a power cut may do to call i of those made so far. Only what was synced is certain."""
    verb, name, *_ = calls[i]
    if verb.startswith("sync"):
        return ["lost"]
    later = calls[i + 1 :]
    possible = ["kept"]
    if ("sync_dir", os.path.dirname(name) or ".") not in [call[:2] for call in later]:
        possible.append("lost")
        possible += ["torn"] if verb == "remove_tree" else []
    if verb == "write" and ("sync", name) not in [call[:2] for call in later]:
        possible += ["empty", "torn", "zeros"]
    return possible


def crash_states(before, calls):
    """Each distinct disk that a power cut after the last of `calls` may leave."""
    seen = {}
    for chosen in itertools.product(*(fates(calls, i) for i in range(len(calls)))):
        disk = dict(before)
        for call, fate in zip(calls, chosen, strict=True):
            apply(disk, call, fate)
        seen[frozenset(disk.items())] = disk
    return list(seen.values())


def loads_as(disk):
    with tempfile.TemporaryDirectory() as place:
        write_disk(Path(place), disk)
        try:
            return which(load_checkpoint(Path(place)).parts)
        except CheckpointMissing:
            return "missing"
        except CheckpointCorrupt:
            return "corrupt"


def record_save(root, step):
    recorder = Recorder(root)
    save_checkpoint(root, step, NEW, fs=recorder)
    return recorder.calls


def verdicts(before, calls):
    """How the disk loads after a cut behind every prefix of the calls, and behind all of them."""
    known = {}

    def judged(disks):
        for disk in disks:
            key = frozenset(disk.items())
            known.setdefault(key, None)
            known[key] = known[key] if known[key] is not None else loads_as(disk)
            yield known[key]

    during = [verdict for n in range(len(calls)) for verdict in judged(crash_states(before, calls[:n]))]
    return during, list(judged(crash_states(before, calls)))


@pytest.mark.parametrize("step", [2, 1], ids=["next step", "same step again"])
def test_a_power_cut_at_any_moment_leaves_the_old_or_the_new(tmp_path, step):
    save_checkpoint(tmp_path, 1, OLD)
    before = read_disk(tmp_path)
    during, after = verdicts(before, record_save(tmp_path, step))
    assert len(during) > 200
    assert set(during) == {0, 1}
    assert set(after) == {1}, "a save that returned must last"


def test_a_power_cut_during_the_first_save_leaves_nothing_or_all(tmp_path):
    during, after = verdicts({}, record_save(tmp_path, 1))
    assert set(during) == {"missing", 1}
    assert set(after) == {1}


@pytest.mark.parametrize(
    ("step", "spared"),
    [
        # A link that lasted longer than what it points at is passed over, and the next sync covers both.
        (2, ["sync_dir . after rename to 000002"]),
        # The link names the same step as before.
        (1, ["sync_dir . after rename to latest"]),
    ],
    ids=["next step", "same step again"],
)
def test_the_search_sees_each_forgotten_sync(tmp_path, step, spared):
    save_checkpoint(tmp_path, 1, OLD)
    before = read_disk(tmp_path)
    calls = record_save(tmp_path, step)
    unseen = []
    for i, (verb, name, *_) in enumerate(calls):
        without = calls[:i] + calls[i + 1 :]
        if verb.startswith("sync") and {loads_as(disk) for disk in crash_states(before, without)} == {1}:
            during, _ = verdicts(before, without)
            if set(during) <= {0, 1}:
                unseen.append(f"{verb} {name} after {calls[i - 1][0]} to {calls[i - 1][-1]}")
    assert unseen == spared


# --- The k-th call fails. ---


class Faulty(RealFs):
    """Call number k fails, and if `for_good` every one after it. A failing write leaves half of the file."""

    def __init__(self, k, code, for_good):
        self.left = k
        self.code = code
        self.for_good = for_good
        self.failed = False

    def _check(self):
        self.left -= 1
        if self.left == 0 or (self.left < 0 and self.for_good):
            self.failed = True
            raise OSError(self.code, os.strerror(self.code))

    def write(self, path, data):
        try:
            self._check()
        except OSError:
            path.write_bytes(data[: len(data) // 2])
            raise
        super().write(path, data)


def _checked(verb):
    def call(self, *args):
        self._check()
        return getattr(RealFs, verb)(self, *args)

    return call


for _verb in ("mkdir", "sync", "sync_dir", "rename", "symlink", "unlink", "remove_tree"):
    setattr(Faulty, _verb, _checked(_verb))


def failure(root, step, fs):
    try:
        save_checkpoint(root, step, NEW, fs=fs)
    except CheckpointError as error:
        return error
    return None


@pytest.mark.parametrize("step", [2, 1], ids=["next step", "same step again"])
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EROFS], ids=errno.errorcode.get)
def test_whichever_call_fails_the_old_checkpoint_is_whole_and_the_error_says_why(tmp_path, code, for_good, step):
    for k in itertools.count(1):
        root = tmp_path / str(k)
        save_checkpoint(root, 1, OLD, fs=NoSync())
        disk = Faulty(k, code, for_good)
        error = failure(root, step, disk)
        loaded = load_checkpoint(root)
        assert loaded.skipped == []
        assert which(loaded.parts) in ((0, 1) if error else (1,))
        assert step == 1 or which(load_checkpoint(root / "000001").parts) == 0
        assert for_good or not list(root.glob(".tmp-*"))
        if error:
            assert os.strerror(code) in str(error)
            assert "\n" not in str(error)
            assert isinstance(error.__cause__, OSError)
        if not disk.failed:
            break
    assert k > 15


# --- Retention. ---


class Retention(RuleBasedStateMachine):
    """A root and a model of it: which steps there are, which of them are whole, and what is marked."""

    steps = st.integers(0, 9)

    def __init__(self):
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.whole = {}
        self.latest = None
        self.best = None
        self.pins = set()

    def teardown(self):
        shutil.rmtree(self.root)

    def order(self):
        down = sorted(self.whole, reverse=True)
        return [s for s in down if s <= self.latest] + [s for s in down if s > self.latest]

    @rule(step=steps)
    def save(self, step):
        save_checkpoint(self.root, step, {"x": {"step": step}}, fs=NoSync())
        self.whole[step] = True
        self.latest = step

    @precondition(lambda self: self.whole)
    @rule(data=st.data())
    def damage(self, data):
        step = data.draw(st.sampled_from(sorted(self.whole)))
        (self.root / f"{step:06d}" / "state.json").write_text("{}")
        self.whole[step] = False

    @precondition(lambda self: self.whole)
    @rule(data=st.data())
    def mark(self, data):
        self.best = data.draw(st.sampled_from(sorted(self.whole)))
        mark_best(self.root, self.best, fs=NoSync())

    @precondition(lambda self: self.whole)
    @rule(data=st.data())
    def pin(self, data):
        step = data.draw(st.sampled_from(sorted(self.whole)))
        pin(self.root, step, fs=NoSync())
        self.pins.add(step)

    @rule(step=steps)
    def unpin(self, step):
        unpin(self.root, step, fs=NoSync())
        self.pins.discard(step)

    @rule(step=steps)
    def a_killed_save(self, step):
        left = self.root / f".tmp-4194305-feed-{step:06d}"
        left.mkdir(exist_ok=True)
        (left / "state.json").write_text("{")

    @rule(keep=st.integers(1, 4))
    def prune(self, keep):
        before = self.order()
        prune(self.root, keep, fs=NoSync())
        stay = set(before[:keep]) | ({self.best} | self.pins) & set(before)
        if not any(self.whole[s] for s in stay):
            stay |= set([s for s in before if self.whole[s]][:1])
        self.whole = {s: good for s, good in self.whole.items() if s in stay}
        assert not list(self.root.glob(".tmp-*"))

    @invariant()
    def the_directories_are_the_model_s(self):
        assert {int(name) for name in os.listdir(self.root) if name.isdecimal()} == set(self.whole)

    @invariant()
    def the_first_whole_one_loads(self):
        whole = [s for s in self.order() if self.whole[s]]
        if whole:
            loaded = load_checkpoint(self.root)
            assert loaded.parts == {"x": {"step": whole[0]}}
            assert len(loaded.skipped) == self.order().index(whole[0])
        else:
            with pytest.raises(CheckpointCorrupt if self.whole else CheckpointMissing):
                load_checkpoint(self.root)


TestRetention = Retention.TestCase
TestRetention.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


# --- Round trips. ---

DTYPES = st.sampled_from(["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", ">f4", ">i8"])
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
KEYS = st.text(st.characters(), max_size=3) | st.sampled_from(["a", "b", "a.b", "$array", "$", "a.b#2", "__metadata__"])
LEAVES = st.none() | st.booleans() | st.integers() | st.integers(-(2**130), 2**130) | st.floats() | KEYS | ARRAYS
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)
PARTS = st.dictionaries(
    st.sampled_from(["weights", "optimizer", "rng", "$part", "rng.a"]), st.dictionaries(KEYS, VALUES, max_size=4)
)


def same(a, b):
    if isinstance(a, np.ndarray):
        native = a.astype(a.dtype.newbyteorder("="))
        return (native.dtype, a.shape, native.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a.hex() == b.hex() if isinstance(a, float) else a == b


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(parts=PARTS, step=st.integers(0, 10**9), score=st.floats())
def test_whatever_a_tree_holds_comes_back(parts, step, score):
    with tempfile.TemporaryDirectory() as place:
        save_checkpoint(Path(place), step, parts, fs=NoSync(), meta={"score": score})
        loaded = load_checkpoint(Path(place))
    assert loaded.step == step
    assert same(parts, dict(loaded.parts))
    assert same({"score": score}, loaded.meta)
