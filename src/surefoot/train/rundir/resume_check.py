"""Checks that a run resumes bit-exactly: the same updates without a break, and through a save and a new process."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.errors import ConfigError, RunError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.train.rundir.open_run import read_run
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.training import Training


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of `verify_resume`."""

    identical: bool
    lines: list[str]


def fingerprint(tree: Any) -> str:
    """Return the sha256 of a nested state: every bit of every array, every number, every name."""
    digest = hashlib.sha256()
    _feed(digest, tree)
    return digest.hexdigest()


def _feed(digest: Any, tree: Any) -> None:
    if isinstance(tree, Mapping):
        # Sorted: the order of insertion may differ after loading, and does not matter.
        for key in sorted(tree):
            digest.update(f"{{{key}:".encode())
            _feed(digest, tree[key])
    elif isinstance(tree, list | tuple):
        digest.update(f"[{len(tree)}".encode())
        for item in tree:
            _feed(digest, item)
    elif isinstance(tree, np.ndarray | torch.Tensor):
        array = tree.detach().cpu().numpy() if isinstance(tree, torch.Tensor) else tree
        # Type and shape too: the same bytes can be different arrays.
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    else:
        digest.update(repr(tree).encode())


def verify_resume(run: RunDir, *, updates: int = 6, env: str | None = None) -> Verdict:
    """Train `updates` updates from a run's newest checkpoint twice: without a break, and with a restart in the middle.

    The run itself is not changed. `env` names the environment again, for a run on code, as in `read_run`.
    """
    if updates < 2:
        raise ConfigError(f"updates is {updates}; at least 2 are needed, one before the restart and one after")
    spec, make = read_run(run.path, env)
    if spec.rollouts != "here":
        raise RunError(
            f"{run.name}'s rollouts are collected by {spec.rollouts}; --verify works with rollouts in one process only"
        )
    start = load_checkpoint(run.checkpoints)
    half = updates // 2
    training = Training(spec, make=make)
    try:
        training.set_state(start.parts)
        straight = _advance(training, updates)
    finally:
        training.close()
    with tempfile.TemporaryDirectory(prefix="surefoot-verify-") as scratch:
        root = Path(scratch)
        save_checkpoint(root, 0, start.parts)
        restarted = _restarted(run, env, root, half) + _restarted(run, env, root, updates - half)
    matches = [a == b for a, b in zip(straight, restarted, strict=True)]
    lines = [f"{run.name}: {updates} updates from checkpoint {start.step}, restarted after {half} in a new process"]
    lines += [
        f"  update +{i + 1}: {'identical' if same else 'DIFFERENT'}  {a[:16]} {b[:16]}"
        for i, (same, a, b) in enumerate(zip(matches, straight, restarted, strict=True))
    ]
    lines.append(f"{sum(matches)} of {updates} updates bit-identical")
    inexact = start.meta.get("why")
    if inexact and not all(matches):
        lines.append(f"exact: false, because {inexact}")
    return Verdict(all(matches), lines)


def _advance(training: Training, updates: int) -> list[str]:
    prints: list[str] = []
    for _ in range(updates):
        training.update()
        prints.append(fingerprint(training.state()))
    return prints


def _restarted(run: RunDir, env: str | None, root: Path, updates: int) -> list[str]:
    """Return the fingerprints of `updates` more updates from the checkpoint in `root`, by a new process."""
    command = [sys.executable, "-m", "surefoot.train.rundir.resume_check", str(run.path), str(root), str(updates)]
    # The same number of threads: sums of floats depend on it.
    done = subprocess.run(
        [*command, str(torch.get_num_threads()), env or ""], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RunError(f"the second process failed: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout.split()[-updates:]  # the environment may print too


def _child(run: str, root: str, updates: str, threads: str, env: str) -> None:
    torch.set_num_threads(int(threads))
    spec, make = read_run(Path(run), env or None)
    checkpoint = load_checkpoint(Path(root))
    training = Training(spec, make=make)
    training.set_state(checkpoint.parts)
    print("\n".join(_advance(training, int(updates))))
    save_checkpoint(Path(root), checkpoint.step + int(updates), training.state())


if __name__ == "__main__":
    _child(*sys.argv[1:])
