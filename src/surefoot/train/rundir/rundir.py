"""Run directories: their files, names and how they are found. No torch here, so that listing runs is fast."""

from __future__ import annotations

import difflib
import json
import os
import re
import time
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.envs.ids import short_name
from surefoot.errors import RunError, RunNotFound

RUNS_VARIABLE = "SUREFOOT_RUNS"


@dataclass(frozen=True, slots=True)
class RunDir:
    """A run's directory and the paths of its files."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the run: that of its directory."""
        return self.path.name

    @property
    def header(self) -> Path:
        """Config, seed, versions, command line."""
        return self.path / "run.json"

    @property
    def telemetry(self) -> Path:
        return self.path / "telemetry.ndjson"

    @property
    def checkpoints(self) -> Path:
        """One directory per checkpoint, and links to the latest and the best."""
        return self.path / "checkpoints"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    def read_header(self) -> dict[str, Any]:
        try:
            header = json.loads(self.header.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RunNotFound(f"{self.path} is not a run: it has no run.json") from None
        except (OSError, UnicodeDecodeError, ValueError, RecursionError) as why:
            raise RunError(f"{self.header} cannot be read: {why}") from why
        if not isinstance(header, dict) or not isinstance(header.get("spec"), dict):
            raise RunError(f"{self.header} is not the header of a run: it has no 'spec'")
        return header

    def read_spec(self) -> dict[str, Any]:
        """Return the spec of a run of `surefoot train`; raise `RunError` for other kinds of runs."""
        header = self.read_header()
        if "resume" in header:
            raise RunError(f"{self.path} is another kind of run; resume it with `{header['resume']}`")
        return header["spec"]


def runs_root(path: str | Path | None = None) -> Path:
    """Return the directory of runs: `path`, else $SUREFOOT_RUNS, else ./runs."""
    return Path(path or os.environ.get(RUNS_VARIABLE) or "runs")


def _resume_command(path: Path) -> str:
    """Return the command that continues a run; runs of other verbs than `train` have it in their header."""
    with suppress(OSError, ValueError, AttributeError):
        return str(
            json.loads((path / "run.json").read_text(encoding="utf-8")).get("resume") or f"surefoot resume {path}"
        )
    return f"surefoot resume {path}"


def valid_name(name: str) -> str:
    """Return the name of a run in Unicode's composed form (NFC), so that it is the same on every file system."""
    name = unicodedata.normalize("NFC", name)
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise RunError(
            f"{name[:60]!r} is not a valid name for a run; use letters and digits of any script, dots, dashes and underscores"
        )
    # File systems allow 255 bytes; a search adds to the names of its trials.
    if (size := len(name.encode())) > 200:
        raise RunError(f"{name[:40]!r}… has {size} bytes; the name of a run has at most 200")
    return name


def new_run_dir(env: str, seed: int, *, root: Path | None = None, name: str | None = None) -> RunDir:
    """Create the directory of a new run: <env>-<yyyymmdd-hhmmss>-s<seed>, numbered if it exists."""
    root = runs_root(root)
    name = None if name is None else valid_name(name)
    base = name or f"{re.sub(r'[^A-Za-z0-9._-]+', '-', short_name(env))}-{time.strftime('%Y%m%d-%H%M%S')}-s{seed}"
    # mkdir fails if the directory exists, so two runs that start in the same second get different names.
    for number in range(1, 1000):
        path = root / (base if number == 1 else f"{base}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            # If the name belongs to a run, the user may have meant to resume it; any other folder of that name is left alone.
            if name is not None and (path / "run.json").exists():
                raise RunError(f"{path} already contains a run; `{_resume_command(path)}` continues it") from None
            continue
        except OSError as why:
            raise RunError(
                f"cannot make {path}: {why.strerror or why}; choose another directory with --runs DIR"
            ) from why
        return RunDir(path)
    raise RunError(f"cannot find a free name like {base} under {root}")


def find_run(name: str | Path, root: Path | None = None) -> RunDir:
    """Return the run with this directory, or with this name under `root`."""
    root = runs_root(root)
    for candidate in (Path(name), root / name):
        if (candidate / "run.json").is_file():
            return RunDir(candidate)
        if candidate.name == "run.json" and candidate.is_file():
            return RunDir(candidate.parent)
    known = [run.name for run in list_runs(root)]
    # Below difflib's default of 0.6: a short part of a long name should still match.
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.3)
    advice = f"did you mean {close[0]}?" if close else "`surefoot runs` lists them, --runs DIR looks elsewhere"
    raise RunNotFound(f"no run called {str(name)!r} here or under {root}; {advice}")


def list_runs(root: Path) -> list[RunDir]:
    """Return all runs under `root`, oldest first."""
    if not root.is_dir():
        return []
    runs = [RunDir(path) for path in root.iterdir() if (path / "run.json").is_file()]
    return sorted(runs, key=lambda run: run.header.stat().st_mtime)
