"""Runs on disk: list, read, compare, resume."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from surefoot.data.kinds import as_list
from surefoot.errors import RunError, RunNotFound
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.text import load_graph
from surefoot.server.studio.curves import rounded
from surefoot.telemetry.export.page import page, page_data
from surefoot.telemetry.export.run_facts import gather
from surefoot.telemetry.files.rotation import is_being_written, live_file
from surefoot.telemetry.reader import load_curves
from surefoot.train.diagnose.compare_runs import Group, chance, differences, group, one_run
from surefoot.train.rundir.run_index import RunIndex
from surefoot.train.rundir.run_summary import is_locked
from surefoot.train.rundir.rundir import RunDir

TAGS = "tags.json"
# As many, and as long, as a row of the table shows.
MOST_TAGS, MOST_TAG = 8, 24


class Library:
    """The runs in one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._index = RunIndex(root)
        self._resumed: dict[str, subprocess.Popen[bytes]] = {}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per run, newest first; unchanged records are not read again."""
        return [self._row(row) for row in reversed(self._index.rows())]

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        run = RunDir(self.root / row["run"])
        header = run.read_header()
        return row | {
            "graph": (run.path / "graph.json").exists(),
            "document": header.get("document", ""),
            "created": header.get("created", ""),
            "total_steps": header["spec"].get("total_steps"),
            "checkpoint": (run.checkpoints / "latest").exists(),
            "tags": _tags(run),
        }

    def get(self, name: str) -> RunDir:
        """Return a run by name. Raise `RunNotFound` if it does not exist."""
        run = RunDir(self.root / name)
        if Path(name).name != name or name in (".", "..") or not run.header.is_file():
            raise RunNotFound(f"unknown run {name[:80]!r} in {self.root.name}")
        return run

    def curves(self, name: str) -> dict[str, Any]:
        """Return the data of a run's page."""
        run = self.get(name)
        curves = load_curves(run.path)
        return page_data(curves, gather(curves, running=is_being_written(live_file(run.path))))

    def report(self, name: str) -> str:
        """Return a run's page as HTML."""
        run = self.get(name)
        live, curves = live_file(run.path), load_curves(run.path)
        return page(curves, gather(curves, running=is_being_written(live)), live)

    def compare(self, names: list[str], metric: str) -> dict[str, Any]:
        """Group runs by their settings, with the median of scores and curves per group."""
        loaded = [(name, load_curves(self.get(name).path)) for name in names]
        if not loaded:
            raise RunError("select runs to compare")
        evaluated = metric == "return" and all(len(curves.evals) for _, curves in loaded)
        ones = [one_run(name, curves, metric, evaluated=evaluated) for name, curves in loaded]
        groups, different = group(ones), differences(ones)
        comparison: dict[str, Any] = {
            "what": "last evaluation" if evaluated else f"{metric}, last tenth of updates",
            "groups": [_group_json(each) for each in groups],
            "different": {
                key: [one.settings.get(key, one.env if key == "env" else "–") for one in ones] for key in different
            },
            "runs": [one.name for one in ones],
        }
        if len(groups) == 2:
            comparison["first_above_second"] = chance(groups[0].scores, groups[1].scores)
        return comparison

    def graph_of(self, name: str) -> Graph:
        """Return the graph of a run."""
        file = self.get(name).path / "graph.json"
        if not file.exists():
            raise RunError(f"{name} is not a run of a graph; use `surefoot resume {name}` or `surefoot report {name}`")
        return load_graph(file)

    def move_to_trash(self, name: str) -> None:
        """Move a run to .trash in the directory of runs."""
        run = self.get(name)
        if is_locked(run):
            raise RunError(f"{name} is running; stop it first")
        trash = self.root / ".trash"
        trash.mkdir(exist_ok=True)
        os.replace(run.path, trash / f"{name}-{time.time_ns()}")

    def tag(self, name: str, tags: list[str]) -> list[str]:
        """Replace the tags of a run and return them: words without commas, each once."""
        if as_list(tags) is None:
            raise RunError(f"tags are {str(tags)[:40]!r}; they must be a list of words")
        words = list(dict.fromkeys(word for tag in tags if (word := str(tag).replace(",", " ").strip()[:MOST_TAG])))
        file = self.get(name).path / TAGS
        file.with_suffix(".new").write_text(json.dumps(words[:MOST_TAGS]), encoding="utf-8")
        os.replace(file.with_suffix(".new"), file)
        return words[:MOST_TAGS]

    def resume_by_command(self, name: str) -> None:
        """Resume a run of `surefoot train` in a new process."""
        run = self.get(name)
        if is_locked(run):
            raise RunError(f"{name} is already running")
        command = [sys.executable, "-m", "surefoot", "resume", str(run.path), "--display", "lines"]
        with open(run.path / "resumed.log", "ab") as log:
            self._resumed[name] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def close(self) -> None:
        """Terminate the resumed runs; they save a checkpoint first."""
        for process in self._resumed.values():
            if process.poll() is None:
                process.terminate()


def _tags(run: RunDir) -> list[str]:
    """Return the tags of a run; none if there is no readable file."""
    with suppress(OSError, ValueError):
        tags: Any = json.loads((run.path / TAGS).read_text(encoding="utf-8"))
        return [str(each) for each in as_list(tags) or []]
    return []


def _group_json(each: Group) -> dict[str, Any]:
    row = {"label": each.label, "runs": each.runs, "scores": each.scores, **asdict(each.summary)}
    columns = {name: getattr(each, name) for name in ("steps", "middle", "low", "high")}
    return row | {name: [rounded(float(x)) for x in column] for name, column in columns.items()}
