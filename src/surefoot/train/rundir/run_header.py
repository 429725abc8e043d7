"""run.json: what a run is, what its digits depend on, and what differs when it is resumed."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from surefoot import native
from surefoot.envs.make import placement_of
from surefoot.errors import RunError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, replace_file
from surefoot.learn.checkpoint.typed_state import RunProgress
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import RunSpec

if TYPE_CHECKING:
    from surefoot.train.collect.replay_cycles import Cycles
    from surefoot.train.training import Training

# What the digits of a run depend on, besides its settings and threads.
_DIGITS = ("torch", "numpy", "gymnasium", "mujoco", "kernel")


def kernel_name() -> str:
    """Return the instruction set of the kernel, or "none"."""
    return "none" if native.unusable() is not None else native.instruction_set()


def next_after(point: float, every: int, steps: int) -> Any:
    """Return the first of point, point + every, … that is after `steps`."""
    return point if point > steps or not every else point + every * ((steps - point) // every + 1)


def _edits(before: dict[str, Any], now: dict[str, Any], prefix: str = "") -> list[str]:
    """Return one sentence per setting that run.json has changed since the checkpoint; a new length is no edit."""
    notes: list[str] = []
    for name in sorted(before.keys() & now.keys() - {"total_steps", "workers"}):
        old, new = before[name], now[name]
        if isinstance(old, dict) and isinstance(new, dict):
            notes += _edits(old, new, f"{prefix}{name}.")
        elif json.dumps(old, default=repr) != json.dumps(new):
            notes.append(
                f"{prefix}{name} was {old!r} when the checkpoint was saved and is {new!r} in run.json: it is used"
            )
    return notes


def resume_notes(saved: RunProgress, spec: RunSpec) -> list[str]:
    """Return one sentence per difference between the run that was saved and the run that resumes it."""
    now, before = {**versions(), "kernel": kernel_name()}, {**saved.versions}
    if saved.kernel:
        before["kernel"] = saved.kernel
    notes = [
        f"saved with {name} {before[name]}, resumed with {name} {now.get(name, 'missing')}: digits may differ"
        for name in _DIGITS
        if name in before and before[name] != now.get(name)
    ]
    return notes + (_edits(saved.spec, json.loads(json.dumps(spec.to_json()))) if saved.spec else [])


def write_header(directory: RunDir, training: Training | Cycles, command: Sequence[str], *, record: bool) -> None:
    """Write run.json: what the run is from now on."""
    header = {
        "name": directory.name,
        "spec": training.spec.to_json(),
        "placement": placement_of(training.world),
        "versions": versions(),
        "threads": torch.get_num_threads(),
        "git_commit": git_commit(Path.cwd()),
        "command": list(command),
        "record": record,
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    try:
        replace_file(REAL_FS, directory.header, (json.dumps(header, indent=2) + "\n").encode())
    except OSError as error:
        raise RunError(
            f"{directory.header} cannot be written: {error.strerror or error}; make room and start again"
        ) from error


def versions() -> dict[str, str]:
    """Return the versions of everything that the digits depend on."""
    result = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    for package in ("surefoot", "gymnasium", "mujoco", "ale-py", "Box2D", "envpool"):
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            continue
    return result


def git_commit(where: Path) -> str | None:
    """Return the commit checked out at `where`; None if it is not a git work tree."""
    try:
        # 2 seconds: a slow network drive must not delay the start of a run.
        result = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=where, capture_output=True, text=True, timeout=2, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip() or None if result.returncode == 0 else None
