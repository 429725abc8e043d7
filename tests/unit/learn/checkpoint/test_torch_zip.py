"""Files of torch.save: tensors come out right, and nothing in a hostile one is run."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch

from surefoot.errors import CheckpointCorrupt
from surefoot.learn.checkpoint.torch_zip import members, read_tensors


def saved(value, **options) -> bytes:
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


def with_program(program: bytes, storages: dict[str, bytes] | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", program)
        for key, raw in (storages or {}).items():
            archive.writestr(f"archive/data/{key}", raw)
    return out.getvalue()


TENSORS = OrderedDict(
    plain=torch.arange(6, dtype=torch.float32).reshape(2, 3),
    turned=torch.arange(6, dtype=torch.float64).reshape(2, 3).t(),
    part=torch.arange(10)[3:7],
    scalar=torch.tensor(2.5),
    empty=torch.zeros(0, 4),
    flag=torch.tensor([True, False]),
    parameter=torch.nn.Parameter(torch.ones(3)),
)


@pytest.mark.parametrize("protocol", [2, 4])
def test_tensors_come_out_as_they_went_in(protocol):
    found = read_tensors(saved(TENSORS, pickle_protocol=protocol), "x")
    assert list(found) == list(TENSORS)
    for name, tensor in TENSORS.items():
        np.testing.assert_array_equal(found[name], tensor.detach().numpy())


def test_a_state_dict_of_a_module_is_read_with_its_versions_left_aside():
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))
    found = read_tensors(saved(module.state_dict()), "x")
    assert {name: x.shape for name, x in found.items()} == {n: tuple(x.shape) for n, x in module.state_dict().items()}


class Canary:
    """Unpickled by the usual reader it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


class Evil:
    def __init__(self, how, path):
        self.how, self.path = how, path

    def __reduce__(self):
        return self.how, (f"import os; os.mkdir({str(self.path)!r})",)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_that_would_run_something_is_refused_and_does_not(protocol, tmp_path):
    for value in (Canary(tmp_path / "ran"), {"w": Canary(tmp_path / "ran")}, Evil(exec, tmp_path / "ran")):
        data = with_program(pickle.dumps(value, protocol))
        with pytest.raises(CheckpointCorrupt):
            read_tensors(data, "x")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.",
        b"\x80\x02ccollections\nOrderedDict\n)\x81.",  # NEWOBJ
        b"\x80\x02(X\x01\x00\x00\x00aios\nsystem\n.",  # INST
        b"\x80\x02]X\x01\x00\x00\x00aa.",  # lists
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}\x86R.",
        b"\x80\x02ccollections\nOrderedDict\n)R}b.X",
        b"\x80\x02}q\x00h\x05.",  # a memo that is not there
        b"\x80\x02" + b"(" * 50_000,
        b"\x80\x02\x8a\xff\x00.",
        b"\x80\x09}.",
        b"",
        b"}",
        b"\x80\x02}}.",
        b"\x80\x02}(K\x01K\x02u.",  # keys that are no names
        b"\x80\x02}X\x01\x00\x00\x00aK\x01s.",  # a value that is no tensor
    ],
)
def test_every_other_step_ends_the_reading(program):
    if program.endswith(b"b.X"):
        assert read_tensors(with_program(program), "x") == {}  # what follows the end is not looked at
        return
    with pytest.raises(CheckpointCorrupt):
        read_tensors(with_program(program), "x")


def tensor_program(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0, count: int = 4) -> bytes:
    """A dict of one tensor, written by hand."""

    def number(n: int) -> bytes:
        return b"\x8a\x09" + n.to_bytes(9, "little", signed=True)

    def row(parts: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(map(number, parts)) + b"t"

    storage = (
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + number(count) + b"tQ"
    )
    made = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + row(shape) + row(strides) + b"\x89}tR"
    return b"\x80\x02}X\x01\x00\x00\x00w" + made + b"s."


def test_a_tensor_written_by_hand_is_read():
    raw = np.arange(4, dtype=np.float32).tobytes()
    found = read_tensors(with_program(tensor_program((2, 2), (1, 2)), {"0": raw}), "x")
    np.testing.assert_array_equal(found["w"], [[0, 2], [1, 3]])


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "count"),
    [
        ((3, 2), (2, 1), 0, 4),  # beyond the end
        ((2, 2), (2, 1), 1, 4),
        ((2, 2), (2, 1), -1, 4),
        ((2, 2), (-2, 1), 0, 4),
        ((2, 2), (2,), 0, 4),
        ((2**40,), (0,), 0, 4),  # much of little
        ((1,) * 9, (1,) * 9, 0, 4),
        ((2, 2), (2, 1), 0, 5),  # a storage that lies about its size
        ((2, 2), (2, 1), 0, 2**50),
        ((2**62, 2**62), (1, 1), 0, 4),
    ],
)
def test_a_tensor_that_reaches_beyond_its_storage_is_refused(shape, strides, offset, count):
    raw = np.arange(4, dtype=np.float32).tobytes()
    with pytest.raises(CheckpointCorrupt):
        read_tensors(with_program(tensor_program(shape, strides, offset, count), {"0": raw}), "x")


def test_a_storage_that_is_not_there_is_refused():
    with pytest.raises(CheckpointCorrupt):
        read_tensors(with_program(tensor_program((2, 2), (2, 1))), "x")


def test_no_mutant_of_a_real_file_does_anything_but_load_or_be_refused(tmp_path, monkeypatch):
    def must_not(*args: object, **kwargs: object) -> None:
        raise AssertionError("something was run")

    for module, name in ((os, "system"), (os, "popen"), (pickle, "loads"), (pickle, "load")):
        monkeypatch.setattr(module, name, must_not)
    whole = saved({"w": torch.ones(2, 2), "b": torch.zeros(2)})
    (program,) = [raw for name, raw in members(whole, "x").items() if name.endswith("data.pkl")]
    storages = {"0": bytes(16), "1": bytes(8)}
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(1500):
        mutant = bytearray(program)
        for _ in range(int(rng.integers(1, 4))):
            mutant[int(rng.integers(len(mutant)))] = int(rng.integers(256))
        try:
            read_tensors(with_program(bytes(mutant), storages), "x")
        except CheckpointCorrupt:
            refused += 1
    assert refused > 700


def test_a_zip_that_claims_too_much_is_refused_before_it_is_read():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(3_000_000))
    with pytest.raises(CheckpointCorrupt, match="claims to hold more"):
        members(out.getvalue(), "x", most=1_000_000)


@pytest.mark.parametrize("cut", [0, 1, 50, 200])
def test_a_file_that_was_cut_is_refused(cut):
    whole = saved({"w": torch.ones(2)})
    with pytest.raises(CheckpointCorrupt):
        read_tensors(whole[: len(whole) - 1 - cut] if cut else b"", "x")
