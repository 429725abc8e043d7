"""Hyperparameter searches: their trials, the importance of the settings, and the winner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from surefoot.errors import RunError, RunNotFound, SurefootError
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.text import load_graph
from surefoot.server.studio.curves import rounded
from surefoot.train.rundir.run_summary import is_locked
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.tune.final_round import TrialResult, final_results
from surefoot.train.tune.plan import PLAN, Plan, read_plan
from surefoot.train.tune.report import BEST, TRIALS, SearchResult, search_result
from surefoot.train.tune.search import JOURNAL, read_study

GRAPH, BEST_GRAPH = "graph.json", "best.json"
STATES = {"complete": "done", "fail": "failed"}


class Searches:
    """The searches in one directory; their files are Optuna's, and are read while they grow."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._cache: dict[str, tuple[int, Any, SearchResult]] = {}
        """{name: (size of its journal, study, result)}"""

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per search, the one that changed last first."""

        def changed(directory: Path) -> float:
            return max(file.stat().st_mtime for name in (PLAN, JOURNAL) if (file := directory / name).exists())

        searches = [file.parent for file in self.root.glob(f"*/{PLAN}")]
        return [self._row(each) for each in sorted(searches, key=changed, reverse=True)]

    def get(self, name: str) -> dict[str, Any]:
        """Return the data of a search's page."""
        directory = self._directory(name)
        plan, about = read_plan(directory)
        result = self._result(directory)
        state, best = _state(directory), result.best
        return {
            **_line(directory, plan, about, result),
            "seeds": plan.seeds,
            "rungs": plan.rungs,
            "graph": (directory / GRAPH).exists() or (directory / BEST_GRAPH).exists(),
            "names": list(dict.fromkeys(name for trial in result.trials for name in trial["params"])),
            "trials": [_trial(each, state) for each in result.trials],
            "so_far": _so_far(result),
            "importance": dict(sorted(result.importance.items(), key=lambda item: -item[1])),
            "finals": [{"number": each.number, "score": rounded(each.value)} for each in result.finals],
            "settings": "" if best is None else _settings(directory, state, best),
        }

    def best_graph(self, name: str) -> Graph:
        """Return the graph of a search with the values of the best trial so far."""
        directory = self._directory(name)
        best = self._result(directory).best
        if best is None:
            raise RunError(f"no trial of {name} is finished yet")
        if (directory / GRAPH).exists():
            # Imported late: it imports torch, which would delay the page.
            from surefoot.graph.tuning import GraphTask

            return GraphTask(load_graph(directory / GRAPH), GRAPH).with_params(best.params)
        if (directory / BEST_GRAPH).exists():
            return load_graph(directory / BEST_GRAPH)
        raise RunError(
            f"{name} did not search a graph; train the winner with `surefoot train --config {directory.name}/{BEST}`"
        )

    def _directory(self, name: str) -> Path:
        if Path(name).name != name or name in (".", "..") or not (self.root / name / PLAN).is_file():
            raise RunNotFound(f"unknown search {name[:80]!r} in {self.root.name}")
        return self.root / name

    def _row(self, directory: Path) -> dict[str, Any]:
        try:
            plan, about = read_plan(directory)
            return _line(directory, plan, about, self._result(directory))
        except SurefootError as error:
            return {"search": directory.name, "of": "?", "state": "unreadable", "why": str(error)}

    def _result(self, directory: Path) -> SearchResult:
        """Return the result so far; read again only if the journal has grown."""
        size = (directory / JOURNAL).stat().st_size if (directory / JOURNAL).exists() else 0
        cached = self._cache.get(directory.name)
        if cached is not None and cached[0] == size:
            return cached[2]
        study = cached[1] if cached is not None and size > cached[0] else read_study(directory)
        result = search_result(study, {}, final_results(study, {}))
        self._cache[directory.name] = size, study, result
        return result


def _state(directory: Path) -> str:
    """Return running, ended, or stopped (before it wrote its results)."""
    if is_locked(RunDir(directory)):
        return "running"
    trials, journal = directory / TRIALS, directory / JOURNAL
    ended = trials.exists() and journal.exists() and trials.stat().st_mtime_ns >= journal.stat().st_mtime_ns
    return "ended" if ended else "stopped"


def _line(directory: Path, plan: Plan, about: dict[str, Any], result: SearchResult) -> dict[str, Any]:
    counted = [trial for trial in result.trials if not trial["taken_back"]]
    best = result.best
    return {
        "search": directory.name,
        "of": Path(str(about["env"])).name if str(about["env"]).endswith(".json") else str(about["env"]),
        "state": _state(directory),
        "begun": len(counted),
        "planned": plan.trials,
        "best": None if best is None else best.number,
        "score": None if best is None else rounded(best.value),
        "base": None if result.base is None else rounded(result.base.value),
        "fresh": bool(result.finals),
    }


def _trial(trial: dict[str, Any], search: str) -> dict[str, Any]:
    rungs = [rounded(value) for value in trial["rungs"].values()]
    value = trial["value"] if trial["value"] is not None else rungs[-1] if rungs else None
    state = STATES.get(trial["state"], trial["state"])
    if trial["taken_back"] or (state == "running" and search != "running"):
        state = "stopped"
    row = {name: trial[name] for name in ("number", "params", "seconds", "why")}
    return row | {"state": state, "score": rounded(value), "rungs": rungs, "scores": [*map(rounded, trial["scores"])]}


def _so_far(result: SearchResult) -> list[float | None]:
    """Return the best score up to each trial."""
    best: float | None = None
    course: list[float | None] = []
    for trial in result.trials:
        value = rounded(trial["value"]) if trial["state"] == "complete" else None
        best = value if best is None or (value is not None and value > best) else best
        course.append(best)
    return course


def _settings(directory: Path, state: str, best: TrialResult) -> str:
    """Return best.yaml, or the values of the best trial while the search runs."""
    if state == "ended" and (directory / BEST).exists():
        return (directory / BEST).read_text(encoding="utf-8")
    return f"# trial {best.number}, so far\n" + yaml.safe_dump(best.params, sort_keys=False)
