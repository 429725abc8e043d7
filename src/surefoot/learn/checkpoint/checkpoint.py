"""Checkpoints: everything a run needs to resume bit-exactly, in files that contain no code and are checksummed.

    root/000120/weights.safetensors     arrays of the part "weights", under their own names
                optimizer.safetensors   arrays of the part "optimizer"
                state.safetensors       arrays of every other part
                state.json              the tree itself; an array is a reference: {"$array": "rng.torch"}
                manifest.json           format_version, step, meta, size and sha256 of each file, and its own seal
    root/latest                         a link to the newest

Checksums detect damage, not malice: an attacker who can write the files can write the manifest. A hostile checkpoint is
harmless because sizes are checked before anything is read and no reader executes its input.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from surefoot.learn.checkpoint.state_tree import Tree, pack_tree, parse_json, unpack_tree
from surefoot.learn.checkpoint.typed_state import CheckpointParts

# Raised by every change that earlier code cannot read; `migrations` has the step from each format to the next.
FORMAT_VERSION = 1
migrations: dict[int, Callable[[dict[str, Tree]], dict[str, Tree]]] = {}
"""{N: pure function from the parts of format N to those of format N + 1}."""

MANIFEST, STATE, LATEST = "manifest.json", "state.json", "latest"
_OWN_FILE = {"weights": "weights.safetensors", "optimizer": "optimizer.safetensors"}
_OTHER_ARRAYS = "state.safetensors"
# Sizes that are refused before reading: far above real files (a manifest has 1 KB), and what a header may claim.
_LIMITS = {MANIFEST: 1 << 20, STATE: 64 << 20, _OTHER_ARRAYS: 64 << 30} | dict.fromkeys(_OWN_FILE.values(), 64 << 30)
_HEADER_LIMIT = 16 << 20
_STEP_NAME = re.compile(r"([0-9]{6,18})(" + re.escape(REPLACED) + r")?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A loaded checkpoint. Arrays are numpy and writable; a bfloat16 tensor, which numpy cannot hold, is a torch tensor."""

    path: Path
    step: int
    parts: dict[str, Tree]
    meta: dict[str, Any]
    skipped: list[str]
    """One sentence per newer checkpoint that was skipped because it is damaged."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of manifest.json; `files` is {name: (size, sha256)}."""

    format_version: int
    step: int
    files: dict[str, tuple[int, str]]
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
    """Write `root/<step>`, point `latest` at it and return its path. A later kill or power cut does not undo it.

    If this raises, every earlier checkpoint is unchanged. A checkpoint of the same step is replaced.

    Args:
        root: Directory of the run's checkpoints; it is created if missing.
        step: Number of the checkpoint, from 0.
        parts: The state by part; "weights" and "optimizer" get their own files.
        fs: The file system; tests replace it.
        meta: JSON values to store in the manifest.
        ready: Called when the files are on disk but do not count yet. It may wait for other files, or raise.
    """
    if step < 0:
        raise CheckpointError(f"step is {step}; it must be 0 or more")
    target = Path(root) / f"{step:06d}"
    files = _render(step, parts, meta or {})
    try:
        make_directory(fs, target.parent)
        write_directory(fs, target, files, ready)
        set_link(fs, target.parent / LATEST, target.name)
    except OSError as error:
        reason = f"{error.strerror or error}; earlier checkpoints are untouched"
        raise CheckpointError(f"{target} could not be saved: {reason}") from error
    return target


def load_checkpoint(path: Path) -> Checkpoint:
    """Load a checkpoint directory, or the newest intact one under `path`. Checksums are compared before parsing."""
    path = Path(path)
    if step_of(linked := read_link(path) or "") is not None:  # may be a text file instead of a link
        path = path.parent / linked
    if not path.is_dir():
        raise CheckpointMissing(f"no checkpoint at {path}; pass a checkpoint directory or the directory above it")
    if step_of(path.name) is not None or any((path / name).exists() for name in _LIMITS):
        return _load(path, [])
    skipped: list[str] = []
    for checkpoint in newest_first(path):
        try:
            return _load(checkpoint, skipped)
        except CheckpointCorrupt as error:
            skipped.append(f"skipped a damaged checkpoint: {error}")
    if skipped:
        raise CheckpointCorrupt(f"no checkpoint under {path} is intact; " + "; ".join(skipped))
    raise CheckpointMissing(f"no checkpoint under {path}; checkpoints have names such as 000120")


def to_bytes(parts: Mapping[str, Tree]) -> list[bytes]:
    """Return the files that a checkpoint of `parts` would have, for passing parts between processes."""
    return [part for name, data in _render(0, parts, {}) if name != MANIFEST for part in (name.encode("ascii"), data)]


def from_bytes(files: list[bytes]) -> dict[str, Tree]:
    """Return the parts that `to_bytes` was given."""
    return _parse({name.decode("ascii"): data for name, data in zip(files[::2], files[1::2], strict=True)})


def step_of(name: str) -> int | None:
    """Return 120 for "000120" and for "000120.replaced", which a crash can leave; None for other names."""
    match = _STEP_NAME.fullmatch(name)
    return int(match[1]) if match and f"{int(match[1]):06d}" == match[1] else None


def newest_first(root: Path) -> list[Path]:
    """Return the checkpoints in the order in which to try them: `latest`, then earlier steps, then later steps."""
    with os.scandir(root) as entries:
        steps = [(step, Path(e.path)) for e in entries if (step := step_of(e.name)) is not None and e.is_dir()]
    named = step_of(read_link(root / LATEST) or "")
    # Later steps remain if the run was set back to an earlier step.
    latest = math.inf if named is None else named
    return [path for _, path in sorted(steps, key=lambda s: (s[0] > latest, -s[0], s[1].name))]


def read_verified(path: Path) -> tuple[Manifest, dict[str, bytes]]:
    """Return the manifest and the verified, unparsed bytes of every file."""
    try:
        manifest = _parse_manifest(path, _read(path, MANIFEST, None))
        present, expected = set(os.listdir(path)) - {MANIFEST}, set(manifest.files)
        if present != expected:
            odd = ", ".join(sorted(present ^ expected))
            raise CheckpointCorrupt(f"{path}: its files differ from its manifest (missing or extra: {odd})")
        contents = {name: _read(path, name, size) for name, (size, _) in manifest.files.items()}
    except FileNotFoundError as error:
        raise CheckpointCorrupt(f"{path}: {Path(error.filename).name} is missing") from error
    except OSError as error:
        # EIO means that the disk lost the bytes; other errors (permissions, descriptors) may be temporary.
        kind = CheckpointCorrupt if error.errno == errno.EIO else CheckpointError
        raise kind(f"{path} could not be read: {error.strerror}") from error
    for name, (_, sha256) in manifest.files.items():
        if hashlib.sha256(contents[name]).hexdigest() != sha256:
            raise CheckpointCorrupt(f"{path}: the bytes of {name} do not match its checksum")
    return manifest, contents


def _load(path: Path, skipped: list[str]) -> Checkpoint:
    manifest, contents = read_verified(path)
    if step_of(path.name) not in (None, manifest.step):
        raise CheckpointCorrupt(f"{path}: its manifest is that of step {manifest.step}")
    try:
        parts = _parse(contents)
        meta: dict[str, Any] = unpack_tree(manifest.meta, {})
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, SafetensorError) as error:
        raise CheckpointCorrupt(f"{path}: its content is damaged ({error})") from error
    for version in range(manifest.format_version, FORMAT_VERSION):
        parts = migrations[version](parts)
    return Checkpoint(path=path, step=manifest.step, parts=CheckpointParts(parts), meta=meta, skipped=skipped)


def _render(step: int, parts: Mapping[str, Tree], meta: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Return (name, bytes) of the files in writing order. Values that cannot be saved raise before the first one."""
    groups: dict[str, dict[str, Any]] = {name: {} for name in (*_OWN_FILE.values(), _OTHER_ARRAYS)}
    state = {
        part: pack_tree(tree, "" if part in _OWN_FILE else part, groups[_OWN_FILE.get(part, _OTHER_ARRAYS)])
        for part, tree in parts.items()
    }
    stray: dict[str, Any] = {}
    body = {"format_version": FORMAT_VERSION, "step": int(step), "meta": pack_tree(dict(meta), "meta", stray)}
    if stray:
        raise CheckpointError(f"{next(iter(stray))} is an array; meta takes JSON values, put arrays into a part")

    def files() -> Iterator[tuple[str, bytes]]:
        entries: Tree = {}
        # One file at a time: all of them together would double the memory of a large model.
        contents = ((name, arrays_to_bytes(arrays)) for name, arrays in groups.items() if arrays)
        for name, data in itertools.chain(contents, [(STATE, json.dumps(state, allow_nan=False).encode("ascii"))]):
            _check_limits(name, len(data), data[:8])
            entries[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            yield name, data
        manifest = _seal(body | {"files": entries})
        _check_limits(MANIFEST, len(manifest), b"")
        yield MANIFEST, manifest

    return files()


def _seal(body: Tree) -> bytes:
    """Return the bytes of a manifest, with the checksum of its body. This form is the same in every format version."""
    seal = hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode("ascii")).hexdigest()
    return (json.dumps(body | {"seal": seal}, sort_keys=True, indent=2, allow_nan=False) + "\n").encode("ascii")


def _parse_manifest(path: Path, raw: bytes) -> Manifest:
    try:
        body = parse_json(raw)
        del body["seal"]
        intact = _seal(body) == raw
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise CheckpointCorrupt(f"{path}: {MANIFEST} is not a manifest ({error})") from error
    if not intact:
        raise CheckpointCorrupt(f"{path}: the bytes of {MANIFEST} do not match its seal")
    try:
        version = _count(body["format_version"])
        # Before the other fields, which a newer format may have changed.
        if version > FORMAT_VERSION:
            raise CheckpointIncompatible(
                f"{path} has format {version}, this version of surefoot reads up to {FORMAT_VERSION}; update surefoot"
            )
        if not all(v in migrations for v in range(version, FORMAT_VERSION)):
            raise CheckpointIncompatible(f"{path} has format {version}, from which no migration is known")
        files = {str(name): (_count(entry["bytes"]), str(entry["sha256"])) for name, entry in body["files"].items()}
        if STATE not in files or not set(files) < set(_LIMITS):
            raise ValueError(f"it names the files {', '.join(files)}")
        return Manifest(version, _count(body["step"]), files, body["meta"])
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise CheckpointCorrupt(f"{path}: {MANIFEST} has a bad or missing field ({error})") from error


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value


def _read(path: Path, name: str, expected: int | None) -> bytes:
    """Return the bytes of one file, after checking its kind, its size and the size that its header declares."""
    status = os.lstat(path / name)  # not stat: a link could lead to a device
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointCorrupt(f"{path}: {name} is not a regular file")
    size = status.st_size
    if expected is not None and size != expected:
        raise CheckpointCorrupt(f"{path}: {name} has {size} bytes, its manifest has {expected}")
    with open(path / name, "rb") as handle:
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
        raise CheckpointError(f"{name} has {size} bytes; at most {_LIMITS[name]} would be read back")
    if name.endswith(".safetensors"):
        header = int.from_bytes(head, "little")
        if header > min(size - 8, _HEADER_LIMIT):
            raise CheckpointError(
                f"{name} declares a header of {header} bytes, more than its {size} bytes can hold or {_HEADER_LIMIT} allow"
            )


def _parse(contents: dict[str, bytes]) -> dict[str, Tree]:
    groups = {name: arrays_from_bytes(data) for name, data in contents.items() if name != STATE}
    state = parse_json(contents[STATE])
    parts = {p: unpack_tree(t, groups.get(_OWN_FILE.get(p, _OTHER_ARRAYS), {})) for p, t in state.items()}
    if left := [name for arrays in groups.values() for name in arrays]:
        raise ValueError(f"no part refers to the array {left[0]!r}")
    return parts
