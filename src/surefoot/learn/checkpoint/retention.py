"""Which checkpoints stay: the last few, the best, the pinned, and always one that loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from surefoot.errors import CheckpointCorrupt, CheckpointError, CheckpointMissing, ConfigError
from surefoot.learn.checkpoint.atomic_files import (
    REAL_FS,
    REPLACED,
    TMP_PREFIX,
    Fs,
    discard,
    read_link,
    replace_file,
    set_link,
    temporary_name,
    writer_lives,
)
from surefoot.learn.checkpoint.checkpoint import LATEST, newest_first, read_verified, step_of

BEST, PINNED = "best", "pinned.json"


def mark_best(root: Path, step: int, *, fs: Fs = REAL_FS) -> None:
    """Points `best` at this step; `prune` keeps it until another one is marked."""
    _point(root, BEST, step, fs)


def best(root: Path) -> int | None:
    """The step marked best, or None."""
    return step_of(read_link(root / BEST) or "")


def pin(root: Path, step: int, *, fs: Fs = REAL_FS) -> None:
    """Keeps this step until it is unpinned."""
    _existing(root, step)
    _write_pins(root, pinned(root) | {step}, fs)


def unpin(root: Path, step: int, *, fs: Fs = REAL_FS) -> None:
    """Lets `prune` decide about this step again."""
    _write_pins(root, pinned(root) - {step}, fs)


def pinned(root: Path) -> set[int]:
    """The pinned steps. A damaged list raises: to guess here would be to delete what somebody asked to keep."""
    file = root / PINNED
    if not file.exists():
        return set()
    try:
        steps: Any = json.loads(file.read_text("ascii"))
        if not all(type(step) is int for step in steps):
            raise ValueError(f"it holds {steps!r}")
        return set(steps)
    except (ValueError, TypeError, RecursionError) as error:
        raise CheckpointCorrupt(f"{file} is not a list of steps ({error}); nothing is pruned until it is") from error


def prune(root: Path, keep_last: int, *, fs: Fs = REAL_FS) -> list[Path]:
    """Removes all but the last `keep_last`, the best and the pinned, and returns what went. Sweeps `root` as well.

    "Last" is the order of loading, `newest_first`. Damaged ones count like others, but if all that would stay are
    damaged, the newest whole one stays too.
    """
    if keep_last < 1:
        raise ConfigError(f"keep_last is {keep_last}; at least 1 checkpoint must stay")
    sweep(root, fs)
    present = newest_first(root)
    counted = [path for path in present if not _superseded(path)]
    wanted = pinned(root) | {best(root)}
    kept = {path for i, path in enumerate(counted) if i < keep_last or step_of(path.name) in wanted}
    others = [path for path in present if path not in kept]
    if not any(_is_whole(path) for path in counted if path in kept):
        rescued = next((path for path in others if _is_whole(path)), None)
        others = [path for path in others if path != rescued]
    return [path for path in others if _remove(fs, path)]


def go_back(root: Path, step: int, *, fs: Fs = REAL_FS) -> None:
    """Points `latest` at this step: what came after it is loaded only if nothing before it is whole."""
    _point(root, LATEST, step, fs)


def sweep(root: Path, fs: Fs = REAL_FS) -> list[Path]:
    """Removes what killed processes left half written or half removed, and returns it."""
    stale = [path for path in sorted(root.glob(TMP_PREFIX + "*")) if not writer_lives(path.name)]
    for path in stale:
        discard(fs, path)
    return stale


def _point(root: Path, link: str, step: int, fs: Fs) -> None:
    target = _existing(root, step)
    try:
        set_link(fs, root / link, target.name)
    except OSError as error:
        raise CheckpointError(f"{root / link} could not be set: {error.strerror}") from error


def _existing(root: Path, step: int) -> Path:
    path = root / f"{step:06d}"
    if not path.is_dir():
        raise CheckpointMissing(f"no checkpoint of step {step} under {root}")
    return path


def _write_pins(root: Path, steps: set[int], fs: Fs) -> None:
    try:
        replace_file(fs, root / PINNED, json.dumps(sorted(steps)).encode("ascii"))
    except OSError as error:
        raise CheckpointError(f"{root / PINNED} could not be written: {error.strerror}") from error


def _is_whole(path: Path) -> bool:
    try:
        read_verified(path)
    except CheckpointError:
        return False
    return True


def _superseded(path: Path) -> bool:
    """An old version of a step whose new version is in place: a crash came before it was removed."""
    return path.name.endswith(REPLACED) and path.with_name(path.name.removesuffix(REPLACED)).exists()


def _remove(fs: Fs, path: Path) -> bool:
    # Out of sight first: a kill halfway through must not leave half a checkpoint under a checkpoint's name.
    aside = path.with_name(temporary_name(path.name))
    try:
        fs.rename(path, aside)
    except OSError:
        return False  # It stays, and the next prune tries again.
    discard(fs, aside)
    return True
