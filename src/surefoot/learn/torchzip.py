"""Reads the tensors of a file that torch.save wrote, without running anything that is in it.

Such a file is a zip: raw bytes of storages, and a program for a stack machine (data.pkl) that says which tensors are made of
them. The usual reader of that program can call any function it names. The one here knows the few steps that a dict of
tensors needs; a name is a word to it, never a thing, and any other step ends the reading.
"""

from __future__ import annotations

import io
import struct
import zipfile
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from surefoot.errors import CheckpointCorrupt

LARGEST = 1 << 30
"""Bytes of a storage, or of a member of an archive, that are read at most."""
_LARGEST_PROGRAM = 4 << 20
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
class _Name:
    module: str
    name: str


@dataclass(frozen=True, slots=True)
class _Storage:
    dtype: Any
    key: str
    count: int


class _Mark:
    pass


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
    program = files[programs[0]]
    if len(program) > _LARGEST_PROGRAM:
        raise CheckpointCorrupt(
            f"{what}: its description has {len(program):,} bytes; at most {_LARGEST_PROGRAM:,} are read"
        )
    storages = {name.removeprefix(f"{prefix}data/"): raw for name, raw in files.items()}
    try:
        found = _Machine(program, storages).run()
    except CheckpointCorrupt as why:
        raise CheckpointCorrupt(f"{what}: {why}") from why
    except (IndexError, KeyError, TypeError, ValueError, struct.error, UnicodeDecodeError, AttributeError) as why:
        raise CheckpointCorrupt(f"{what}: its description makes no sense ({type(why).__name__}: {why})") from why
    if not isinstance(found, dict):
        raise CheckpointCorrupt(f"{what} holds {type(found).__name__}; it must be a dict of tensors")
    tensors = cast("dict[Any, Any]", found)
    for name, value in tensors.items():
        if not isinstance(name, str) or not isinstance(value, np.ndarray):
            raise CheckpointCorrupt(f"{what}: {name!r} is no tensor; only a dict of tensors is read")
    return dict(tensors)


class _Machine:
    """A stack machine of some thirty steps."""

    def __init__(self, program: bytes, storages: dict[str, bytes]) -> None:
        self.program, self.at, self.storages = program, 0, storages
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """What is on top in the end."""
        while True:
            step = self._take(1)
            if step == b".":
                (result,) = self.stack
                return result
            self._do(step)

    def _do(self, step: bytes) -> None:
        stack = self.stack
        match step:
            case b"\x80":
                if self._take(1)[0] > 5:
                    raise CheckpointCorrupt("its description is of an unknown version")
            case b"\x95":
                self._take(8)
            case b"(":
                stack.append(_Mark())
            case b"}":
                stack.append({})
            case b")":
                stack.append(())
            case b"N":
                stack.append(None)
            case b"\x88" | b"\x89":
                stack.append(step == b"\x88")
            case b"K" | b"M" | b"J":
                size, form = {b"K": (1, "<B"), b"M": (2, "<H"), b"J": (4, "<i")}[step]
                stack.append(struct.unpack(form, self._take(size))[0])
            case b"\x8a":
                stack.append(int.from_bytes(self._take(self._take(1)[0]), "little", signed=True))
            case b"X" | b"\x8c":
                size = struct.unpack("<I", self._take(4))[0] if step == b"X" else self._take(1)[0]
                stack.append(self._take(size).decode("utf-8"))
            case b"q" | b"r":
                self.memo[self._index(step == b"q")] = stack[-1]
            case b"\x94":
                self.memo[len(self.memo)] = stack[-1]
            case b"h" | b"j":
                stack.append(self.memo[self._index(step == b"h")])
            case b"t":
                stack.append(tuple(self._since_mark()))
            case b"\x85" | b"\x86" | b"\x87":
                count = step[0] - 0x84
                parts = [stack.pop() for _ in range(count)]
                stack.append(tuple(reversed(parts)))
            case b"s":
                value, key = stack.pop(), stack.pop()
                self._put(stack[-1], [key, value])
            case b"u":
                pairs = self._since_mark()
                self._put(stack[-1], pairs)
            case b"c":
                stack.append(self._name(self._line(), self._line()))
            case b"\x93":
                name, module = stack.pop(), stack.pop()
                stack.append(self._name(module, name))
            case b"Q":
                stack.append(self._storage(stack.pop()))
            case b"R":
                arguments, function = stack.pop(), stack.pop()
                stack.append(self._made(function, arguments))
            case b"b":
                stack.pop()  # a state_dict's versions, which say nothing about its tensors
                if not isinstance(stack[-1], dict):
                    raise CheckpointCorrupt("its description sets the state of something that is no dict")
            case _:
                raise CheckpointCorrupt(f"its description has the step {step!r}, which no dict of tensors needs")

    def _take(self, size: int) -> bytes:
        found = self.program[self.at : self.at + size]
        if len(found) != size:
            raise CheckpointCorrupt("its description ends in the middle")
        self.at += size
        return found

    def _line(self) -> str:
        end = self.program.find(b"\n", self.at, self.at + 200)
        if end < 0:
            raise CheckpointCorrupt("its description has a name without an end")
        return self._take(end + 1 - self.at)[:-1].decode("ascii")

    def _index(self, short: bool) -> int:
        return self._take(1)[0] if short else struct.unpack("<I", self._take(4))[0]

    def _since_mark(self) -> list[Any]:
        for place in range(len(self.stack) - 1, -1, -1):
            if isinstance(self.stack[place], _Mark):
                found = self.stack[place + 1 :]
                del self.stack[place:]
                return found
        raise CheckpointCorrupt("its description ends a list that never began")

    def _put(self, into: Any, pairs: list[Any]) -> None:
        if not isinstance(into, dict) or len(pairs) % 2:
            raise CheckpointCorrupt("its description puts pairs into something that is no dict")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not isinstance(key, str):
                raise CheckpointCorrupt(f"its description has the key {key!r}; keys are names")
            into[key] = value

    def _name(self, module: Any, name: Any) -> _Name:
        """Only as a word; names that are not known are refused where they stand."""
        if (module, name) not in _NAMES and not (module == "torch" and name in _STORAGES):
            raise CheckpointCorrupt(f"it names {module}.{name}, which no dict of tensors needs; nothing of it was run")
        return _Name(module, name)

    def _storage(self, said: Any) -> _Storage:
        word, kind, key, _, count = said
        if word != "storage" or not isinstance(kind, _Name) or kind.name not in _STORAGES:
            raise CheckpointCorrupt("it refers to something that is no storage")
        if not isinstance(key, str) or type(count) is not int or count < 0:
            raise CheckpointCorrupt("a storage of it has no name or no size")
        return _Storage(_STORAGES[kind.name], key, count)

    def _made(self, function: Any, arguments: Any) -> Any:
        match function:
            case _Name(name="OrderedDict") if arguments == ():
                return {}
            case _Name(name="_rebuild_tensor_v2"):
                return self._tensor(*arguments[:4])
            case _Name(name="_rebuild_parameter") if isinstance(arguments[0], np.ndarray):
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
