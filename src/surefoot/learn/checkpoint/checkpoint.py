"""Checkpoints: everything a run needs to go on to the last bit, in files that run no code and cannot lie unnoticed.

    root/000120/weights.safetensors     arrays of the part "weights", under their own names
                optimizer.safetensors   arrays of the part "optimizer"
                state.safetensors       arrays of every other part
                state.json              the tree itself; an array is a reference: {"$array": "rng.torch"}
                manifest.json           format_version, step, meta, size and sha256 of each file, and its own seal
    root/latest                         a link to the newest

The checksums find damage, not malice: who can write the files can write the manifest. What keeps a hostile one harmless
is that sizes are checked before anything is read, and that no reader here executes what it reads.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as arrays_from_bytes
from safetensors.numpy import save as arrays_to_bytes

from surefoot.errors import CheckpointCorrupt, CheckpointError, CheckpointIncompatible, CheckpointMissing
from surefoot.learn.checkpoint.atomic_files import (
    REAL_FS,
    REPLACED,
    Fs,
    make_directory,
    read_link,
    set_link,
    write_directory,
)

FORMAT_VERSION = 1

Tree = dict[str, Any]
"""A nested dict. Leaves: numpy arrays, torch tensors, None, bool, int of any size, float, str, and lists or tuples."""

migrations: dict[int, Callable[[dict[str, Tree]], dict[str, Tree]]] = {}
"""Pure functions from the parts of format N to those of format N + 1, by N."""

MANIFEST, STATE, LATEST = "manifest.json", "state.json", "latest"
_OWN_FILE = {"weights": "weights.safetensors", "optimizer": "optimizer.safetensors"}
_OTHER_ARRAYS = "state.safetensors"
_LIMITS = {MANIFEST: 1 << 20, STATE: 64 << 20, _OTHER_ARRAYS: 64 << 30} | dict.fromkeys(_OWN_FILE.values(), 64 << 30)
_HEADER_LIMIT = 16 << 20

_STEP_NAME = re.compile(r"([0-9]{6,18})(" + re.escape(REPLACED) + r")?")
_DTYPES = ("bool", *(f"{u}int{n}" for n in (8, 16, 32, 64) for u in ("", "u")), "float16", "float32", "float64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What was loaded. Arrays are numpy, writable; a bfloat16 tensor, which numpy cannot hold, is a torch tensor."""

    path: Path
    step: int
    parts: dict[str, Tree]
    meta: dict[str, Any]
    skipped: list[str] = field(default_factory=list[str])
    """A sentence for each newer checkpoint that was passed over because it is damaged."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a checkpoint says about itself."""

    format_version: int
    step: int
    files: dict[str, tuple[int, str]]
    """Size and sha256 by file name."""
    meta: dict[str, Any]


def save_checkpoint(
    root: Path,
    step: int,
    parts: Mapping[str, Tree],
    *,
    fs: Fs = REAL_FS,
    meta: Mapping[str, Any] | None = None,
    ready: Callable[[], None] = lambda: None,
) -> Path:
    """Writes `root/<step>` and points `latest` at it. Once this returns, neither a kill nor a power cut undoes it.

    If it raises, every earlier checkpoint is as it was. A checkpoint of the same step is replaced. `ready` is called when
    the files are on the disk but do not count yet: it may wait for what must be there first, or raise.
    """
    if step < 0:
        raise CheckpointError(f"step is {step}; a checkpoint's step is counted from 0")
    target = Path(root) / f"{step:06d}"
    files = _render(step, parts, meta or {})
    try:
        make_directory(fs, target.parent)
        write_directory(fs, target, files, ready)
        set_link(fs, target.parent / LATEST, target.name)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CheckpointError(f"{target} could not be saved: {reason}; earlier checkpoints are untouched") from error
    return target


def load_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint directory, or from a root the one saved last that is whole. Checksums come before parsing."""
    path = Path(path)
    linked = read_link(path)
    if linked is not None and step_of(linked) is not None:
        path = path.parent / linked
    if not path.is_dir():
        raise CheckpointMissing(f"no checkpoint at {path}; give a checkpoint directory or the directory above it")
    if step_of(path.name) is not None or any((path / name).exists() for name in _LIMITS):
        return _load(path)
    return _load_newest(path)


def to_bytes(parts: Mapping[str, Tree]) -> list[bytes]:
    """The files a checkpoint of `parts` would have, in memory: for processes that hand parts to each other."""
    return [part for name, data in _render(0, parts, {}) if name != MANIFEST for part in (name.encode("ascii"), data)]


def from_bytes(files: list[bytes]) -> dict[str, Tree]:
    """The parts that `to_bytes` was given."""
    return _parse({name.decode("ascii"): data for name, data in zip(files[::2], files[1::2], strict=True)})


def step_of(name: str) -> int | None:
    """120 for "000120", and for the "000120.replaced" that a crash left; None for a name no checkpoint has."""
    match = _STEP_NAME.fullmatch(name)
    return int(match[1]) if match and f"{int(match[1]):06d}" == match[1] else None


def newest_first(root: Path) -> list[Path]:
    """The checkpoints in the order in which to try them.

    `latest` comes first, then the steps before it. Steps beyond it come last: they belong to a past from which the run
    was taken back to an earlier step.
    """
    with os.scandir(root) as entries:
        found = [(step, Path(e.path)) for e in entries if (step := step_of(e.name)) is not None and e.is_dir()]
    named = step_of(read_link(root / LATEST) or "")
    latest = math.inf if named is None else named
    return [path for _, path in sorted(found, key=lambda f: (f[0] > latest, -f[0], f[1].name))]


def read_verified(path: Path) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest and the bytes of every file, proven to be the ones that were written, not yet looked into."""
    try:
        manifest = _parse_manifest(path, _read(path, MANIFEST, None))
        present, expected = set(os.listdir(path)) - {MANIFEST}, set(manifest.files)
        if present != expected:
            odd = ", ".join(sorted(present ^ expected))
            raise CheckpointCorrupt(f"{path}: its files are not those of its manifest (missing or extra: {odd})")
        contents = {name: _read(path, name, size) for name, (size, _) in manifest.files.items()}
    except FileNotFoundError as error:
        raise CheckpointCorrupt(f"{path}: {Path(error.filename).name} is missing") from error
    except OSError as error:
        # EIO is the disk saying that the bytes are gone; anything else (rights, descriptors) may pass.
        kind = CheckpointCorrupt if error.errno == errno.EIO else CheckpointError
        raise kind(f"{path} could not be read: {error.strerror}") from error
    for name, (_, sha256) in manifest.files.items():
        if hashlib.sha256(contents[name]).hexdigest() != sha256:
            raise CheckpointCorrupt(f"{path}: the bytes of {name} do not match its checksum")
    return manifest, contents


def _load_newest(root: Path) -> Checkpoint:
    skipped: list[str] = []
    for path in newest_first(root):
        try:
            return _load(path, skipped)
        except CheckpointCorrupt as error:
            skipped.append(f"skipped a damaged checkpoint: {error}")
    if skipped:
        raise CheckpointCorrupt(f"no checkpoint under {root} is whole; " + "; ".join(skipped))
    raise CheckpointMissing(f"no checkpoint under {root}; its checkpoints would have names such as 000120")


def _load(path: Path, skipped: list[str] | None = None) -> Checkpoint:
    manifest, contents = read_verified(path)
    if step_of(path.name) not in (None, manifest.step):
        raise CheckpointCorrupt(f"{path}: its manifest is that of step {manifest.step}")
    try:
        parts = _parse(contents)
        meta: dict[str, Any] = _unpack(manifest.meta, {})
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, SafetensorError) as error:
        raise CheckpointCorrupt(f"{path}: not the content of a checkpoint ({error})") from error
    for version in range(manifest.format_version, FORMAT_VERSION):
        parts = migrations[version](parts)
    return Checkpoint(path=path, step=manifest.step, parts=parts, meta=meta, skipped=skipped or [])


def _render(step: int, parts: Mapping[str, Tree], meta: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """The files in the order in which they are written. What cannot be saved raises here, before the first of them."""
    groups: dict[str, dict[str, Any]] = {name: {} for name in (*_OWN_FILE.values(), _OTHER_ARRAYS)}
    state = {
        part: _pack(tree, "" if part in _OWN_FILE else part, groups[_OWN_FILE.get(part, _OTHER_ARRAYS)])
        for part, tree in parts.items()
    }
    stray: dict[str, Any] = {}
    body = {"format_version": FORMAT_VERSION, "step": int(step), "meta": _pack(dict(meta), "meta", stray)}
    if stray:
        raise CheckpointError(f"{next(iter(stray))} is an array; meta takes JSON values, arrays go into a part")
    return _render_files(groups, state, body)


def _render_files(groups: dict[str, dict[str, Any]], state: Tree, body: Tree) -> Iterator[tuple[str, bytes]]:
    files: Tree = {}

    def noted(name: str, data: bytes) -> tuple[str, bytes]:
        _check_limits(name, len(data), data[:8])
        files[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        return name, data

    for name, arrays in groups.items():
        if arrays:
            yield noted(name, arrays_to_bytes(arrays))
    yield noted(STATE, json.dumps(state, allow_nan=False).encode("ascii"))
    yield noted(MANIFEST, _seal(body | {"files": files}))


def _seal(body: Tree) -> bytes:
    """The one spelling of a manifest, with the checksum of the rest in it. The same in every format, for ever."""
    seal = hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode("ascii")).hexdigest()
    return (json.dumps(body | {"seal": seal}, sort_keys=True, indent=2, allow_nan=False) + "\n").encode("ascii")


def _parse_manifest(path: Path, raw: bytes) -> Manifest:
    try:
        body = _from_json(raw)
        del body["seal"]
        whole = _seal(body) == raw
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise CheckpointCorrupt(f"{path}: {MANIFEST} is not a manifest ({error})") from error
    if not whole:
        raise CheckpointCorrupt(f"{path}: the bytes of {MANIFEST} do not match its seal")
    try:
        version = _count(body["format_version"])
        _check_version(path, version)
        files = {str(name): (_count(said["bytes"]), str(said["sha256"])) for name, said in body["files"].items()}
        if STATE not in files or not set(files) < set(_LIMITS):
            raise ValueError(f"it names the files {', '.join(files)}")
        return Manifest(version, _count(body["step"]), files, body["meta"])
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise CheckpointCorrupt(f"{path}: {MANIFEST} does not say what it must ({error})") from error


def _check_version(path: Path, version: int) -> None:
    if version > FORMAT_VERSION:
        raise CheckpointIncompatible(
            f"{path} has format {version}, this version of surefoot reads up to {FORMAT_VERSION}; a newer one will do"
        )
    if not all(v in migrations for v in range(version, FORMAT_VERSION)):
        raise CheckpointIncompatible(f"{path} has format {version}, from which nothing here migrates")


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} where a count belongs")
    return value


def _read(path: Path, name: str, expected: int | None) -> bytes:
    """One file in memory, after its kind, its size and its own header's claim were found possible."""
    file = path / name
    status = os.lstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointCorrupt(f"{path}: {name} is not a plain file")
    size = status.st_size
    if expected is not None and size != expected:
        raise CheckpointCorrupt(f"{path}: {name} has {size} bytes, its manifest says {expected}")
    with open(file, "rb") as handle:
        try:
            _check_limits(name, size, handle.read(8))
        except CheckpointError as error:
            raise CheckpointCorrupt(f"{path}: {error}") from error
        handle.seek(0)
        data = handle.read(size)
    if len(data) != size:
        raise CheckpointCorrupt(f"{path}: {name} ended after {len(data)} of {size} bytes")
    return data


def _check_limits(name: str, size: int, head: bytes) -> None:
    if size > _LIMITS[name]:
        raise CheckpointError(f"{name} has {size} bytes; no more than {_LIMITS[name]} would be read back")
    if name.endswith(".safetensors"):
        header = int.from_bytes(head, "little")
        if header > min(size - 8, _HEADER_LIMIT):
            raise CheckpointError(
                f"{name} declares a header of {header} bytes, more than its {size} bytes can hold or {_HEADER_LIMIT} allow"
            )


def _parse(contents: dict[str, bytes]) -> dict[str, Tree]:
    groups = {name: arrays_from_bytes(data) for name, data in contents.items() if name != STATE}
    state = _from_json(contents[STATE])
    parts = {p: _unpack(t, groups.get(_OWN_FILE.get(p, _OTHER_ARRAYS), {})) for p, t in state.items()}
    left = [name for arrays in groups.values() for name in arrays]
    if left:
        raise ValueError(f"no part refers to the array {left[0]!r}")
    return parts


def _from_json(raw: bytes) -> Tree:
    def refuse(constant: str) -> Any:
        raise ValueError(f"bare {constant} in JSON")

    return json.loads(raw.decode("ascii"), parse_constant=refuse)


def _pack(value: Any, label: str, arrays: dict[str, Any]) -> Any:
    """JSON for `value`; arrays go into `arrays` under their dotted path, and stay behind as references.

    The nesting is kept by the JSON, so that dots in keys cannot confuse it; two paths that read the same are numbered.
    """
    if value is None or isinstance(value, bool | str):
        return value
    tag, array = _as_array(value, label)
    if array is not None:
        number, plain = 1, label.encode("utf-8", "replace").decode()
        name = plain
        while name in arrays or name == "__metadata__":  # A name safetensors keeps for itself.
            number += 1
            name = f"{plain}#{number}"
        arrays[name] = array
        return {tag: name}
    if isinstance(value, int):
        # Beyond 64 bits other JSON readers round, and beyond 4,300 digits Python's own refuses.
        return int(value) if abs(value) < 1 << 63 else {"$int": hex(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, list | tuple):
        items = [_pack_item(str(i), item, label, arrays)[1] for i, item in enumerate(cast("list[Any]", value))]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, Mapping):
        return dict(_pack_item(key, item, label, arrays) for key, item in cast("Tree", value).items())
    raise CheckpointError(f"{label} is a {type(value).__name__}; a checkpoint takes arrays, tensors and JSON values")


def _pack_item(key: Any, value: Any, label: str, arrays: dict[str, Any]) -> tuple[str, Any]:
    if not isinstance(key, str):
        raise CheckpointError(f"{label} has the key {key!r}; keys must be strings, such as {str(key)!r}")
    return "$" + key if key.startswith("$") else key, _pack(value, f"{label}.{key}" if label else key, arrays)


def _as_array(value: Any, label: str) -> tuple[str, Any]:
    torch = sys.modules.get("torch")  # Where nobody has loaded torch, nothing can be a tensor.
    tag = "$array"
    if torch is not None and isinstance(value, torch.Tensor):
        try:
            tensor = value.detach().cpu().contiguous()
            if tensor.dtype == torch.bfloat16:
                tag, tensor = "$bfloat16", tensor.view(torch.int16)
            value = tensor.numpy()
        except (TypeError, RuntimeError) as error:
            raise CheckpointError(f"{label} is a tensor that numpy cannot hold: {error}") from error
    if not isinstance(value, np.ndarray | np.generic):
        return tag, None
    array: np.ndarray[Any, np.dtype[Any]] = np.asarray(cast("Any", value))
    if array.dtype.name not in _DTYPES:
        raise CheckpointError(f"{label} has dtype {array.dtype}; a checkpoint takes {', '.join(_DTYPES)} and bfloat16")
    # Not np.ascontiguousarray: it turns a scalar's [] into [1].
    return tag, np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _unpack(value: Any, arrays: dict[str, Any]) -> Any:
    """The inverse of `_pack`. Takes the arrays it meets out of `arrays`."""
    if isinstance(value, list):
        return [_unpack(item, arrays) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    tree = cast("Tree", value)
    if any(key.startswith("$") and not key.startswith("$$") for key in tree):
        ((tag, inner),) = tree.items()
        return _untag(tag, inner, arrays)
    return {key.removeprefix("$"): _unpack(item, arrays) for key, item in tree.items()}


def _untag(tag: str, inner: Any, arrays: dict[str, Any]) -> Any:
    match tag:
        case "$array":
            return arrays.pop(inner)
        case "$bfloat16":
            import torch

            return torch.as_tensor(arrays.pop(inner)).view(torch.bfloat16)
        case "$int":
            return int(inner, 16)
        case "$float":
            return float(inner)
        case "$tuple":
            return tuple(_unpack(item, arrays) for item in inner)
        case _:
            raise ValueError(f"unknown tag {tag}")
