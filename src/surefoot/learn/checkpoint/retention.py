"""Decides which checkpoints stay: the last few, the best, the pinned, and always one that loads."""

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
    writer_is_running,
)
from surefoot.learn.checkpoint.checkpoint import LATEST, newest_first, read_verified, step_of

BEST, PINNED = "best", "pinned.json"


def mark_best(root: Path, step: int, *, fs: Fs = REAL_FS) -> None:
    """Point `best` at this step; `prune` keeps it until another one is marked."""
    _point(root, BEST, step, fs)


def best(root: Path) -> int | None:
    """Return the step marked best, or None."""
    return step_of(read_link(root / BEST) or "")


def pin(root: Path, step: int, *, fs: Fs = REAL_FS) -> None:
    """Keep this step until it is unpinned."""
    _existing(root, step)
    _write_pins(root, pinned(root) | {step}, fs)


def unpin(root: Path, step: int, *, fs: Fs = REAL_FS) -> None:
    """Let `prune` remove this step again."""
    _write_pins(root, pinned(root) - {step}, fs)


def pinned(root: Path) -> set[int]:
    """Return the pinned steps. Raise if the list is damaged: guessing could delete a pinned checkpoint."""
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
    """Remove all but the last `keep_last`, the best and the pinned, and return what was removed. Also run `sweep`.

    "Last" is the order of loading, `newest_first`. Damaged checkpoints count like others, but if all that would stay are
    damaged, the newest intact one stays too.
    """
    if keep_last < 1:
        raise ConfigError(f"keep_last is {keep_last}; at least 1 checkpoint must stay")
    sweep(root, fs)
    present = newest_first(root)
    # A "000120.replaced" beside "000120" is an old version that a crash left: it does not count.
    current = [p for p in present if not (p.name.endswith(REPLACED) and p.with_suffix("").exists())]
    marked = pinned(root) | {best(root)}
    staying = {path for i, path in enumerate(current) if i < keep_last or step_of(path.name) in marked}
    others = [path for path in present if path not in staying]
    if not any(_is_intact(path) for path in current if path in staying):
        rescued = next((path for path in others if _is_intact(path)), None)
        others = [path for path in others if path != rescued]
    return [path for path in others if _remove(fs, path)]


def go_back(root: Path, step: int, *, fs: Fs = REAL_FS) -> None:
    """Point `latest` at this step: later ones are loaded only if no earlier one is intact."""
    _point(root, LATEST, step, fs)


def sweep(root: Path, fs: Fs = REAL_FS) -> list[Path]:
    """Remove what killed processes left half written or half removed, and return it."""
    stale = [path for path in sorted(root.glob(TMP_PREFIX + "*")) if not writer_is_running(path.name)]
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


def _is_intact(path: Path) -> bool:
    try:
        read_verified(path)
    except CheckpointError:
        return False
    return True


def _remove(fs: Fs, path: Path) -> bool:
    # Renamed first: a kill during the removal must not leave half a checkpoint under a checkpoint's name.
    temporary = path.with_name(temporary_name(path.name))
    try:
        fs.rename(path, temporary)
    except OSError:
        return False  # it stays, and the next prune tries again
    discard(fs, temporary)
    return True
