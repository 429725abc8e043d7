"""Reads the tensors of a file that torch.save wrote, without running anything that is in it.

Such a file is a zip: raw bytes of storages, and a program for a stack machine (data.pkl) that says which tensors are made of
them. The usual reader of that program can call any function it names; ours (learn/checkpoint/pickle_reader.py) calls none.
"""

from __future__ import annotations

import io
import struct
import zipfile
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from surefoot.errors import CheckpointCorrupt
from surefoot.learn.checkpoint.pickle_reader import Name, walk

LARGEST = 1 << 30
"""Bytes of a storage, or of a member of an archive, that are read at most."""
_STORAGES = {
    "FloatStorage": np.float32,
    "DoubleStorage": np.float64,
    "HalfStorage": np.float16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ShortStorage": np.int16,
    "CharStorage": np.int8,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}
_NAMES = {
    ("collections", "OrderedDict"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
}


@dataclass(frozen=True, slots=True)
class _Storage:
    dtype: Any
    key: str
    count: int


def members(data: bytes, what: str, *, most: int = LARGEST) -> dict[str, bytes]:
    """The files of a zip, if they are few, plain and of the size they claim to be."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if len(infos) > 10_000 or len({info.filename for info in infos}) != len(infos):
                raise CheckpointCorrupt(f"{what} has {len(infos)} members, or one twice; that is no saved model")
            if sum(info.file_size for info in infos) > most:
                raise CheckpointCorrupt(f"{what} claims to hold more than {most:,} bytes; it is not read")
            found: dict[str, bytes] = {}
            for info in infos:
                with archive.open(info) as handle:
                    found[info.filename] = handle.read(info.file_size + 1)
                if len(found[info.filename]) != info.file_size:
                    raise CheckpointCorrupt(f"{what}: {info.filename} is not of the size it claims to be")
            return found
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, RuntimeError, struct.error) as why:
        raise CheckpointCorrupt(f"{what} is not a whole zip: {why}") from why


def read_tensors(data: bytes, what: str) -> dict[str, np.ndarray]:
    """{name: array} from the bytes of a torch.save of a dict of tensors (a state_dict)."""
    files = members(data, what)
    programs = [name for name in files if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(programs) != 1:
        raise CheckpointCorrupt(f"{what} has {len(programs)} data.pkl; a file of torch.save has one")
    prefix = programs[0].removesuffix("data.pkl")
    if files.get(f"{prefix}byteorder", b"little").strip() != b"little":
        raise CheckpointCorrupt(f"{what} was written on a big-endian machine, which is not read here")
    storages = {name.removeprefix(f"{prefix}data/"): raw for name, raw in files.items()}
    found = walk(files[programs[0]], _Tensors(storages), what)
    if not isinstance(found, dict):
        raise CheckpointCorrupt(f"{what} holds {type(found).__name__}; it must be a dict of tensors")
    tensors = cast("dict[Any, Any]", found)
    for name, value in tensors.items():
        if not isinstance(name, str) or not isinstance(value, np.ndarray):
            raise CheckpointCorrupt(f"{what}: {name!r} is no tensor; only a dict of tensors is read")
    return dict(tensors)


class _Tensors:
    """The words of a dict of tensors."""

    def __init__(self, storages: dict[str, bytes]) -> None:
        self.storages = storages

    def name(self, module: str, name: str) -> Name:
        if (module, name) not in _NAMES and not (module == "torch" and name in _STORAGES):
            raise CheckpointCorrupt(f"it names {module}.{name}, which no dict of tensors needs; nothing of it was run")
        return Name(module, name)

    def stated(self, thing: Any, state: Any) -> None:
        # A state_dict's versions, which say nothing about its tensors.
        if not isinstance(thing, dict):
            raise CheckpointCorrupt("its description sets the state of something that is no dict")

    def referred(self, said: Any) -> _Storage:
        word, kind, key, _, count = said
        if word != "storage" or not isinstance(kind, Name) or kind.name not in _STORAGES:
            raise CheckpointCorrupt("it refers to something that is no storage")
        if not isinstance(key, str) or type(count) is not int or count < 0:
            raise CheckpointCorrupt("a storage of it has no name or no size")
        return _Storage(_STORAGES[kind.name], key, count)

    def made(self, function: Any, arguments: Any) -> Any:
        match function:
            case Name(name="OrderedDict") if arguments == ():
                return {}
            case Name(name="_rebuild_tensor_v2"):
                return self._tensor(*arguments[:4])
            case Name(name="_rebuild_parameter") if isinstance(arguments[0], np.ndarray):
                return arguments[0]
            case _:
                raise CheckpointCorrupt(f"it would call {function!r}; nothing of it was run")

    def _tensor(self, storage: Any, offset: Any, shape: Any, strides: Any) -> np.ndarray:
        if not isinstance(storage, _Storage):
            raise CheckpointCorrupt("a tensor of it has no storage")
        raw = self.storages[storage.key]
        size = np.dtype(storage.dtype).itemsize
        if len(raw) != storage.count * size:
            raise CheckpointCorrupt(f"storage {storage.key} has {len(raw)} bytes for {storage.count} numbers of {size}")
        counts = [*shape, *strides, offset]
        if len(shape) != len(strides) or len(shape) > 8 or any(type(n) is not int or n < 0 for n in counts):
            raise CheckpointCorrupt(f"a tensor of it has shape {shape!r} and strides {strides!r}")
        last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        if 0 not in shape and last >= storage.count:
            raise CheckpointCorrupt(f"a tensor of shape {shape!r} does not fit into its storage of {storage.count}")
        flat = np.frombuffer(raw, storage.dtype)
        bytes_apart = [stride * size for stride in strides]
        view = np.lib.stride_tricks.as_strided(flat[offset:], shape, bytes_apart, writeable=False)
        # A stride of 0 makes much of little: what is copied must not be larger than what was read, by far.
        if view.size > max(16, 4 * storage.count):
            raise CheckpointCorrupt(f"a tensor of shape {shape!r} would be made of {storage.count} numbers")
        return view.copy()
