"""Reads the tensors of a file that torch.save wrote, without executing anything in it.

Such a file is a zip: raw bytes of storages, and a pickle (data.pkl) that describes the tensors made of them. `torch.load`
can call any function that the pickle names; `learn/checkpoint/pickle_reader.py` calls none.
"""

from __future__ import annotations

import io
import struct
import zipfile
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from surefoot.errors import CheckpointCorrupt
from surefoot.learn.checkpoint.pickle_reader import Name, read_pickle

# Bytes of all members of an archive together: larger than any policy, and small enough to be read into memory.
LARGEST = 1 << 30
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
    """Return the files of a zip by name. Raise `CheckpointCorrupt` if they are too many, too large or misdeclared."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if len(infos) > 10_000 or len({info.filename for info in infos}) != len(infos):
                raise CheckpointCorrupt(f"{what} has {len(infos)} members, or one twice; it is not a saved model")
            if sum(info.file_size for info in infos) > most:
                raise CheckpointCorrupt(f"{what} claims to hold more than {most:,} bytes; it is not read")
            files: dict[str, bytes] = {}
            for info in infos:
                with archive.open(info) as handle:
                    # One byte more than declared, so that a zip bomb shows before it is unpacked.
                    files[info.filename] = handle.read(info.file_size + 1)
                if len(files[info.filename]) != info.file_size:
                    raise CheckpointCorrupt(f"{what}: {info.filename} does not have its declared size")
            return files
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, RuntimeError, struct.error) as why:
        raise CheckpointCorrupt(f"{what} is not a complete zip: {why}") from why


def read_tensors(data: bytes, what: str) -> dict[str, np.ndarray]:
    """Return {name: array} from the bytes of a torch.save of a dict of tensors (a state_dict)."""
    files = members(data, what)
    programs = [name for name in files if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(programs) != 1:
        raise CheckpointCorrupt(f"{what} has {len(programs)} data.pkl; a file of torch.save has one")
    prefix = programs[0].removesuffix("data.pkl")
    if files.get(f"{prefix}byteorder", b"little").strip() != b"little":
        raise CheckpointCorrupt(f"{what} was written on a big-endian machine, which is not supported")
    storages = {name.removeprefix(f"{prefix}data/"): raw for name, raw in files.items()}
    content = read_pickle(files[programs[0]], _TensorHandler(storages), what)
    if not isinstance(content, dict):
        raise CheckpointCorrupt(f"{what} holds {type(content).__name__}; it must be a dict of tensors")
    tensors = cast("dict[Any, Any]", content)
    for name, value in tensors.items():
        if not isinstance(name, str) or not isinstance(value, np.ndarray):
            raise CheckpointCorrupt(f"{what}: {name!r} is not a tensor; only a dict of tensors is read")
    return dict(tensors)


class _TensorHandler:
    """The globals and calls of a dict of tensors."""

    def __init__(self, storages: dict[str, bytes]) -> None:
        self.storages = storages

    def name(self, module: str, name: str) -> Name:
        if (module, name) not in _NAMES and not (module == "torch" and name in _STORAGES):
            raise CheckpointCorrupt(f"it names {module}.{name}, which no dict of tensors needs; nothing of it was run")
        return Name(module, name)

    def set_state(self, target: Any, state: Any) -> None:
        # The versions of a state_dict's modules, which do not concern its tensors.
        if not isinstance(target, dict):
            raise CheckpointCorrupt("its pickle sets the state of an object that is not a dict")

    def persistent(self, reference: Any) -> _Storage:
        word, kind, key, _, count = reference
        if word != "storage" or not isinstance(kind, Name) or kind.name not in _STORAGES:
            raise CheckpointCorrupt("it refers to an object that is not a storage")
        if not isinstance(key, str) or type(count) is not int or count < 0:
            raise CheckpointCorrupt("a storage of it has no name or no size")
        return _Storage(_STORAGES[kind.name], key, count)

    def call(self, function: Any, arguments: Any) -> Any:
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
        # as_strided does not check bounds: a wrong shape would read other memory of this process.
        last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        if 0 not in shape and last >= storage.count:
            raise CheckpointCorrupt(f"a tensor of shape {shape!r} does not fit into its storage of {storage.count}")
        flat = np.frombuffer(raw, storage.dtype)
        view = np.lib.stride_tricks.as_strided(
            flat[offset:], shape, [stride * size for stride in strides], writeable=False
        )
        # With a stride of 0 a few bytes can become a huge copy.
        if view.size > max(16, 4 * storage.count):
            raise CheckpointCorrupt(f"a tensor of shape {shape!r} would be made of {storage.count} numbers")
        return view.copy()
