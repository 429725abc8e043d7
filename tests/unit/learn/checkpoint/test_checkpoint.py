"""What goes into a checkpoint comes out of it, and what did not go in is not accepted."""

import errno
import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save

from surefoot.errors import (
    CheckpointCorrupt,
    CheckpointError,
    CheckpointIncompatible,
    CheckpointMissing,
    TelemetryError,
)
from surefoot.learn.checkpoint import checkpoint
from surefoot.learn.checkpoint.atomic_files import RealFs
from surefoot.learn.checkpoint.checkpoint import from_bytes, load_checkpoint, save_checkpoint, to_bytes

GOLDEN = Path(__file__).parents[3] / "golden" / "checkpoints"
PARTS = {
    "weights": {"torso.0.weight": np.arange(6, dtype=np.float32).reshape(2, 3)},
    "optimizer": {"m": np.ones(3)},
    "rng": {"numpy": {"state": 2**127 + 5}, "torch": np.arange(8, dtype=np.uint8)},
}


def there_and_back(root: Path, tree: dict) -> dict:
    save_checkpoint(root, 0, {"part": tree})
    return load_checkpoint(root).parts["part"]


def reseal(path: Path, **changes: object) -> None:
    """A manifest that is honest about the files as they are, but for `changes`: what a forger would write."""
    body = json.loads((path / "manifest.json").read_text())
    body["files"] = {
        f.name: {"bytes": f.stat().st_size, "sha256": hashlib.sha256(f.read_bytes()).hexdigest()}
        for f in path.iterdir()
        if f.name != "manifest.json"
    }
    body |= changes
    del body["seal"]
    body["seal"] = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    (path / "manifest.json").write_text(json.dumps(body, sort_keys=True, indent=2) + "\n")


def test_a_checkpoint_is_these_files(tmp_path):
    path = save_checkpoint(tmp_path / "checkpoints", 120, PARTS, meta={"exact": True})
    assert path == tmp_path / "checkpoints" / "000120"
    assert sorted(os.listdir(path)) == [
        "manifest.json",
        "optimizer.safetensors",
        "state.json",
        "state.safetensors",
        "weights.safetensors",
    ]
    assert os.readlink(tmp_path / "checkpoints" / "latest") == "000120"
    manifest = json.loads((path / "manifest.json").read_text())
    raw = (path / "weights.safetensors").read_bytes()
    assert manifest["files"]["weights.safetensors"] == {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    assert (manifest["format_version"], manifest["step"], manifest["meta"]) == (1, 120, {"exact": True})


def test_weights_are_readable_by_any_safetensors_reader_under_their_own_names(tmp_path):
    path = save_checkpoint(tmp_path, 0, PARTS)
    assert load_file(path / "weights.safetensors")["torso.0.weight"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_without_arrays_there_are_no_array_files(tmp_path):
    path = save_checkpoint(tmp_path, 0, {"cursor": {"step": 3}})
    assert sorted(os.listdir(path)) == ["manifest.json", "state.json"]


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "uint16", "int64", "float16", "float32", "float64"]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
def test_an_array_keeps_its_dtype_shape_and_bytes(tmp_path, dtype, shape):
    array = np.random.default_rng(0).integers(0, 100, size=shape).astype(dtype)
    back = there_and_back(tmp_path, {"x": array})["x"]
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_a_loaded_array_can_be_written_to(tmp_path):
    back = there_and_back(tmp_path, {"x": np.zeros(2)})["x"]
    back[0] = 1.0
    assert back.tolist() == [1.0, 0.0]


def test_a_numpy_generator_goes_on_where_it_was(tmp_path):
    generator = np.random.default_rng(3)
    generator.random(5)
    back = there_and_back(tmp_path, {"state": generator.bit_generator.state})
    fresh = np.random.default_rng(0)
    fresh.bit_generator.state = back["state"]
    assert fresh.random(4).tolist() == generator.random(4).tolist()


def test_python_s_generator_goes_on_where_it_was(tmp_path):
    generator = random.Random(3)
    back = there_and_back(tmp_path, {"state": generator.getstate()})
    fresh = random.Random(0)
    fresh.setstate(back["state"])
    assert fresh.random() == generator.random()


@pytest.mark.parametrize(
    ("leaf", "words"),
    [
        (np.array([object()]), "dtype object"),
        (np.array(["text"]), "dtype <U4"),
        (np.zeros(1, dtype=np.complex128), "dtype complex128"),
        ({1, 2}, "is a set"),
        (b"raw", "is a bytes"),
        ({0: 1}, "key 0; keys must be strings, such as '0'"),
        (torch.eye(2).to_sparse(), "tensor that numpy cannot hold"),
    ],
)
def test_what_cannot_be_saved_is_refused_by_name_before_the_disk_is_touched(tmp_path, leaf, words):
    with pytest.raises(CheckpointError, match=r"rng\.odd") as caught:
        save_checkpoint(tmp_path / "root", 0, {"rng": {"odd": leaf}})
    assert words in str(caught.value)
    assert not (tmp_path / "root").exists()


def test_meta_with_an_array_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="meta takes JSON values"):
        save_checkpoint(tmp_path, 0, {}, meta={"mean": np.zeros(3)})


def test_a_negative_step_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="step is -1"):
        save_checkpoint(tmp_path, -1, {})


def test_a_state_too_large_to_be_read_back_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setitem(checkpoint._LIMITS, "state.json", 100)
    with pytest.raises(CheckpointError, match="at most 100 would be read back"):
        save_checkpoint(tmp_path, 0, {"x": {"y": "z" * 200}})
    assert os.listdir(tmp_path) == []


def test_the_newest_is_loaded_from_the_root_and_from_its_link(tmp_path):
    for step in (9, 10, 1_000_000):
        save_checkpoint(tmp_path, step, {"x": {"step": step}})
    for place in (tmp_path, tmp_path / "latest"):
        loaded = load_checkpoint(place)
        assert (loaded.step, loaded.parts, loaded.path.name) == (1_000_000, {"x": {"step": 1_000_000}}, "1000000")


class NoLinks(RealFs):
    def symlink(self, target, path):
        raise OSError(errno.EPERM, "Operation not permitted")


def test_where_links_are_impossible_latest_is_a_text_file(tmp_path):
    save_checkpoint(tmp_path, 4, PARTS, fs=NoLinks())
    assert (tmp_path / "latest").read_text() == "000004"
    assert load_checkpoint(tmp_path / "latest").step == 4


def test_a_run_taken_back_to_an_earlier_step_goes_on_from_there(tmp_path):
    for step in (100, 200, 110):
        save_checkpoint(tmp_path, step, {})
    assert load_checkpoint(tmp_path).step == 110


def test_saving_a_step_again_replaces_it(tmp_path):
    for number in (1, 2, 3):
        save_checkpoint(tmp_path, 5, {"x": {"n": number}})
    assert load_checkpoint(tmp_path).parts == {"x": {"n": 3}}
    assert sorted(os.listdir(tmp_path)) == ["000005", "latest"]


def test_what_must_be_there_first_is_waited_for_before_a_checkpoint_counts(tmp_path):
    save_checkpoint(tmp_path, 1, {"part": {"x": 1}})
    seen = []
    save_checkpoint(tmp_path, 2, {"part": {"x": 2}}, ready=lambda: seen.append(load_checkpoint(tmp_path).step))
    assert seen == [1]
    assert load_checkpoint(tmp_path).step == 2

    def refuse() -> None:
        raise TelemetryError("the record is not on the disk")

    with pytest.raises(TelemetryError):
        save_checkpoint(tmp_path, 3, {"part": {"x": 3}}, ready=refuse)
    assert load_checkpoint(tmp_path).step == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["000001", "000002", "latest"]


def test_a_crash_in_the_middle_of_a_replacement_leaves_the_old_one_loadable(tmp_path):
    save_checkpoint(tmp_path, 5, {"x": {"n": 1}})
    (tmp_path / "000005").rename(tmp_path / "000005.replaced")
    assert load_checkpoint(tmp_path).parts == {"x": {"n": 1}}
    save_checkpoint(tmp_path, 5, {"x": {"n": 2}})
    assert load_checkpoint(tmp_path).parts == {"x": {"n": 2}}
    assert sorted(os.listdir(tmp_path)) == ["000005", "latest"]


def test_nothing_there_is_missing_and_not_corrupt(tmp_path):
    with pytest.raises(CheckpointMissing, match="no checkpoint under"):
        load_checkpoint(tmp_path)
    with pytest.raises(CheckpointMissing, match="no checkpoint at"):
        load_checkpoint(tmp_path / "000001")


def test_a_copy_under_another_name_loads_but_not_under_another_step_s(tmp_path):
    path = save_checkpoint(tmp_path, 3, PARTS)
    path.rename(tmp_path / "mine")
    assert load_checkpoint(tmp_path / "mine").step == 3
    (tmp_path / "mine").rename(tmp_path / "000004")
    with pytest.raises(CheckpointCorrupt, match="that of step 3"):
        load_checkpoint(tmp_path / "000004")


def swap(path):
    (path / "weights.safetensors").rename(path / "x")
    (path / "optimizer.safetensors").rename(path / "weights.safetensors")
    (path / "x").rename(path / "optimizer.safetensors")


def link(path):
    (path / "state.json").rename(path.parent / "elsewhere")
    (path / "state.json").symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda p: (p / "weights.safetensors").unlink(), "missing or extra: weights.safetensors"),
        (lambda p: (p / "manifest.json").unlink(), "manifest.json is missing"),
        (lambda p: (p / "extra.bin").write_bytes(b""), "missing or extra: extra.bin"),
        (lambda p: (p / "extra").mkdir(), "missing or extra: extra"),
        (swap, "its manifest has"),
        (link, "not a regular file"),
        (lambda p: (p / "manifest.json").write_text("{}"), "not a manifest"),
        (lambda p: (p / "manifest.json").write_text("[]"), "not a manifest"),
        (lambda p: (p / "manifest.json").write_bytes(b"\x80"), "not a manifest"),
    ],
)
def test_missing_extra_swapped_and_linked_files_are_reported(tmp_path, harm, words):
    path = save_checkpoint(tmp_path, 1, PARTS)
    harm(path)
    with pytest.raises(CheckpointCorrupt) as caught:
        load_checkpoint(path)
    assert words in str(caught.value)


def test_files_of_another_checkpoint_are_reported(tmp_path):
    one = save_checkpoint(tmp_path, 1, {"x": {"n": 1}})
    two = save_checkpoint(tmp_path, 2, {"x": {"n": 2}})
    (one / "state.json").write_bytes((two / "state.json").read_bytes())
    with pytest.raises(CheckpointCorrupt, match=r"state\.json do not match its checksum"):
        load_checkpoint(one)


def test_a_damaged_newest_is_passed_over_and_said_so(tmp_path):
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, step, PARTS)
    with open(tmp_path / "000003" / "weights.safetensors", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")
    loaded = load_checkpoint(tmp_path)
    assert loaded.step == 2
    assert len(loaded.skipped) == 1
    assert "000003: the bytes of weights.safetensors do not match" in loaded.skipped[0]


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
def test_a_disk_that_lost_the_bytes_is_damage_but_a_refused_reading_is_not(tmp_path, monkeypatch, code):
    for step in (1, 2):
        save_checkpoint(tmp_path, step, PARTS)
    plain = checkpoint._read

    def failing(path, name, expected):
        if path.name == "000002":
            raise OSError(code, os.strerror(code))
        return plain(path, name, expected)

    monkeypatch.setattr(checkpoint, "_read", failing)
    if code == errno.EIO:
        assert load_checkpoint(tmp_path).step == 1
    else:
        with pytest.raises(CheckpointError, match="000002 could not be read: Permission denied"):
            load_checkpoint(tmp_path)


def test_if_none_is_whole_that_is_an_error_which_names_each(tmp_path):
    for step in (1, 2):
        (save_checkpoint(tmp_path, step, PARTS) / "state.json").write_text("")
    with pytest.raises(CheckpointCorrupt, match="no checkpoint under") as caught:
        load_checkpoint(tmp_path)
    assert "000001" in str(caught.value)
    assert "000002" in str(caught.value)


def test_a_newer_format_is_refused_and_not_passed_over(tmp_path):
    save_checkpoint(tmp_path, 1, PARTS)
    reseal(save_checkpoint(tmp_path, 2, PARTS), format_version=2)
    with pytest.raises(CheckpointIncompatible, match="format 2, this version of surefoot reads up to 1"):
        load_checkpoint(tmp_path)


def test_an_older_format_is_migrated_step_by_step_or_refused(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, 1, {"x": {"n": 1}})
    monkeypatch.setattr(checkpoint, "FORMAT_VERSION", 3)
    monkeypatch.setitem(checkpoint.migrations, 1, lambda parts: {"x": {"n": parts["x"]["n"] + 10}})
    with pytest.raises(CheckpointIncompatible, match="format 1, from which no migration is known"):
        load_checkpoint(tmp_path)
    monkeypatch.setitem(checkpoint.migrations, 2, lambda parts: {"x": {"n": parts["x"]["n"] * 2}})
    assert load_checkpoint(tmp_path).parts == {"x": {"n": 22}}


def test_the_golden_checkpoint_of_format_1_loads_for_ever():
    loaded = load_checkpoint(GOLDEN / "v1")
    assert (loaded.step, loaded.meta) == (7, {"exact": False, "reason": "golden", "score": float("inf")})
    assert list(loaded.parts) == ["weights", "optimizer", "rng", "empty"]
    weight = loaded.parts["weights"]["torso.0.weight"]
    assert weight.dtype == np.float32
    assert np.array_equal(weight, np.array([[1.0, -2.5], [0.1, 3e-5]], dtype=np.float32))
    assert loaded.parts["weights"]["half"].dtype == torch.bfloat16
    assert loaded.parts["weights"]["half"].tolist() == [1.5, -2.0]
    assert loaded.parts["optimizer"] == {"step": 12, "betas": (0.9, 0.999), "m": {"torso.0.weight": np.array(0.25)}}
    assert loaded.parts["rng"]["numpy"] == {"bit_generator": "PCG64", "state": 2**127 + 5, "has_uint32": False}
    assert loaded.parts["rng"]["torch"].tolist() == [0, 127, 255]
    assert loaded.parts["rng"]["torch"].dtype == np.uint8
    assert loaded.parts["rng"]["$key"] == [None, "γ"]
    assert loaded.parts["empty"] == {}


def header(length: int, body: bytes = b"") -> bytes:
    return length.to_bytes(8, "little") + body


def lie(shape: list[int], offsets: list[int], dtype: str = "F32") -> bytes:
    body = json.dumps({"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}).encode()
    return header(len(body), body)


@pytest.mark.parametrize(
    "forged",
    [
        b"",
        b"\x01",
        header(1 << 40),
        header((1 << 64) - 1, b"{}"),
        header(3, b"{}"),
        lie([1 << 38], [0, 1 << 40]),
        lie([1 << 62, 1 << 62], [0, 16]) + bytes(16),
        lie([4], [0, 8]) + bytes(16),
        lie([-1], [0, 16]) + bytes(16),
        lie([4], [16, 0]) + bytes(16),
        lie([4], [0, 16], "O") + bytes(16),
        lie([4], [0, 16]) + bytes(17),
        header(2, b"{}") + bytes(8),
    ],
)
def test_a_forged_array_file_with_an_honest_manifest_is_refused_in_little_memory(tmp_path, forged):
    path = save_checkpoint(tmp_path, 1, PARTS)
    (path / "weights.safetensors").write_bytes(forged)
    reseal(path)
    tracemalloc.start()
    with pytest.raises(CheckpointCorrupt):
        load_checkpoint(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("name", ["weights.safetensors", "state.json", "manifest.json"])
def test_a_file_of_one_tebibyte_is_refused_unread(tmp_path, name):
    path = save_checkpoint(tmp_path, 1, PARTS)
    files = json.loads((path / "manifest.json").read_text())["files"]
    if name in files:
        files[name]["bytes"] = 1 << 40
        reseal(path, files=files)
    os.truncate(path / name, 1 << 40)
    tracemalloc.start()
    with pytest.raises(CheckpointCorrupt, match="1099511627776 bytes"):
        load_checkpoint(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "state.safetensors"])
def test_arrays_may_have_64_gibibytes_and_not_one_byte_more(tmp_path, name):
    path = save_checkpoint(tmp_path, 1, PARTS)
    files = json.loads((path / "manifest.json").read_text())["files"]
    files[name]["bytes"] = (64 << 30) + 1
    reseal(path, files=files)
    os.truncate(path / name, (64 << 30) + 1)
    with pytest.raises(CheckpointCorrupt, match="68719476737 bytes"):
        load_checkpoint(path)


def test_parts_that_one_process_hands_to_another_are_the_same_there():
    given = {"collector": {"n": 3, "seen": np.arange(4.0)}, "learner": {"name": "x"}}
    found = from_bytes(to_bytes(given))
    assert found["collector"]["n"] == 3
    assert np.array_equal(found["collector"]["seen"], np.arange(4.0))
    assert found["learner"] == {"name": "x"}


ANY_FILE = {"bytes": 0, "sha256": ""}
ALL_FILES = ["weights.safetensors", "optimizer.safetensors", "state.safetensors", "state.json", "manifest.json"]


def test_a_header_that_fits_its_file_but_no_memory_is_refused_unread(tmp_path):
    path = save_checkpoint(tmp_path, 1, PARTS)
    (path / "weights.safetensors").write_bytes(header(1 << 29))
    os.truncate(path / "weights.safetensors", 1 << 30)
    files = json.loads((path / "manifest.json").read_text())["files"]
    files["weights.safetensors"]["bytes"] = 1 << 30
    (path / "weights.safetensors").rename(tmp_path / "large")
    reseal(path, files=files)
    (tmp_path / "large").rename(path / "weights.safetensors")
    with pytest.raises(CheckpointCorrupt, match="declares a header of 536870912 bytes"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"files": {"state.json": ANY_FILE, "../../outside": ANY_FILE}},
        {"files": {"state.json": ANY_FILE, "/etc/hostname": ANY_FILE}},
        {"files": dict.fromkeys(ALL_FILES, ANY_FILE)},
        {"files": {}},
        {"files": []},
        {"files": {"state.json": {"bytes": -1, "sha256": ""}}},
        {"files": {"state.json": {"bytes": True, "sha256": ""}}},
        {"files": {"state.json": 3}},
        {"step": "1"},
        {"step": -1},
        {"format_version": "1"},
        {"format_version": True},
        {"format_version": None},
        {"meta": {"$array": "x"}},
    ],
)
def test_a_sealed_manifest_that_says_nonsense_is_refused(tmp_path, changes):
    path = save_checkpoint(tmp_path, 1, {"x": {"n": 1}})
    reseal(path, **changes)
    with pytest.raises(CheckpointCorrupt, match=r"manifest\.json has a bad or missing field|'x'"):
        load_checkpoint(path)


def test_a_manifest_that_was_edited_by_hand_is_reported(tmp_path):
    path = save_checkpoint(tmp_path, 1, PARTS, meta={"exact": False})
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text.replace('"exact": false', '"exact": true'))
    with pytest.raises(CheckpointCorrupt, match=r"manifest\.json do not match its seal"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    "state",
    [
        '{"x": {"$array": "nowhere"}}',
        '{"x": {"$array": []}}',
        '{"x": {"$evil": 1}}',
        '{"x": {"$int": "0x1", "more": 2}}',
        '{"x": {"$int": 7}}',
        '{"x": {"$tuple": 7}}',
        '{"x": NaN}',
        '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"x": ' + "9" * 5000 + "}",
        "[]",
        "",
        "{",
        '{"x": "\u00e9"}',
    ],
    ids=lambda text: text[:24],
)
def test_a_sealed_state_that_is_none_of_ours_is_refused(tmp_path, state):
    path = save_checkpoint(tmp_path, 1, {"x": {"n": 1}})
    (path / "state.json").write_text(state)
    reseal(path)
    with pytest.raises(CheckpointCorrupt):
        load_checkpoint(path)


def test_an_array_that_nothing_refers_to_is_refused(tmp_path):
    path = save_checkpoint(tmp_path, 1, PARTS)
    (path / "weights.safetensors").write_bytes(save({"torso.0.weight": np.zeros(1), "stowaway": np.zeros(1)}))
    reseal(path)
    with pytest.raises(CheckpointCorrupt, match="no part refers to the array 'stowaway'"):
        load_checkpoint(path)


class Canary:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("forged", [False, True])
@pytest.mark.parametrize("slot", ALL_FILES)
def test_a_pickle_in_any_place_is_refused_and_does_not_run(tmp_path, slot, forged):
    canary = tmp_path / "canary"
    data = pickle.dumps(Canary(canary))
    pickle.loads(data)
    assert canary.exists(), "the canary must be able to sing"
    canary.unlink()

    path = save_checkpoint(tmp_path / "root", 1, PARTS)
    if forged and slot != "manifest.json":
        (path / slot).write_bytes(data)
        reseal(path)
    (path / slot).write_bytes(data)
    with pytest.raises(CheckpointCorrupt):
        load_checkpoint(path)
    assert not canary.exists()


def test_checkpoints_load_without_torch():
    code = "import sys, surefoot.learn.checkpoint.retention; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
