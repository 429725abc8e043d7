"""Files with the result of a search: best settings (YAML), all trials (JSON) and an HTML report."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from surefoot.learn.checkpoint.atomic_files import REAL_FS, replace_file
from surefoot.learn.search_ranges import Choice, Range, Space, label
from surefoot.telemetry.export import html
from surefoot.telemetry.export.svg import Dot, Line, PlotArea, bar_chart, line_chart, padded_range, scatter
from surefoot.train.diagnose.statistics import summarize
from surefoot.train.tune.final_round import TrialResult, ranked_trials
from surefoot.train.tune.plan import Plan
from surefoot.train.tune.search import REQUEUED, TuneTask, optuna, read_params

BEST, TRIALS, PAGE = "best.yaml", "trials.json", "report.html"
# PED-ANOVA compares the best tenth of the trials with all of them, so few trials give noisy importances. A smaller value
# shows them earlier.
MIN_TRIALS_FOR_IMPORTANCE = 6


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search that ended or was stopped."""

    best: TrialResult | None
    ranked: list[TrialResult]
    """Finished trials, best first."""
    finals: list[TrialResult]
    """Results of the final comparison on fresh seeds, best first; empty if there was none."""
    importance: dict[str, float]
    trials: list[dict[str, Any]]

    @property
    def base(self) -> TrialResult | None:
        """The base settings with their result in the final comparison, or else in the search."""
        return next((trial for trial in (*self.finals, *self.ranked) if trial.number == 0), None)


def search_result(study: Any, space: Space, finals: Sequence[TrialResult]) -> SearchResult:
    ranked = ranked_trials(study, space)
    trials = [
        {
            "number": t.number,
            "state": t.state.name.lower(),
            "value": t.value,
            "params": read_params(space, t.params),
            "rungs": {str(rung): value for rung, value in sorted(t.intermediate_values.items())},
            "scores": t.user_attrs.get("scores", []),
            "seconds": t.user_attrs.get("seconds"),
            "why": t.user_attrs.get("why"),
            "taken_back": REQUEUED in t.user_attrs,
            "parent": t.user_attrs.get("parent"),
            "from_rung": t.user_attrs.get("from_rung"),
        }
        for t in study.get_trials(deepcopy=False)
        # Queued trials have no parameters yet.
        if t.params
    ]
    best = finals[0] if finals else ranked[0] if ranked else None
    return SearchResult(best, ranked, list(finals), _importance(study, len(ranked)), trials)


def write_result(directory: Path, result: SearchResult, task: TuneTask, plan: Plan) -> None:
    """Write best.yaml (if a trial finished), trials.json and report.html."""
    if result.best is not None:
        replace_file(REAL_FS, directory / BEST, best_yaml(result, task, plan).encode())
    text = json.dumps({"importance": result.importance, "trials": result.trials}, indent=1) + "\n"
    replace_file(REAL_FS, directory / TRIALS, text.encode())
    replace_file(REAL_FS, directory / PAGE, page(result, task, plan).encode())


def best_yaml(result: SearchResult, task: TuneTask, plan: Plan) -> str:
    """Return the best settings for `surefoot train --config`, with the scores as a comment."""
    assert result.best is not None
    seeds = "fresh seeds" if result.finals else "the seeds of the search"
    lines = [
        f"# {task.name}: trial {result.best.number} of {len(result.trials)}",
        f"# {score_text(result.best)} on {seeds}",
    ]
    if result.base is not None and result.base.number != result.best.number:
        lines.append(f"# {score_text(result.base)} before the search")
    # With population-based training the score is not that of these settings alone.
    inherited = next((t.get("from_rung") for t in result.trials if t["number"] == result.best.number), None)
    if inherited and not result.finals:
        lines.append(f"# trained with other settings for the first {inherited} of {plan.rungs} rungs")
    graph = task.name.endswith(".json")
    lines.append("# surefoot graph run best.json" if graph else f"# surefoot train {task.name} --config {BEST}")
    return "\n".join(lines) + "\n" + yaml.safe_dump(task.settings(result.best.params), sort_keys=False)


def score_text(trial: TrialResult) -> str:
    return str(summarize(trial.scores)) if trial.scores else f"{trial.value:.1f}"


def _importance(study: Any, finished: int) -> dict[str, float]:
    """Return how much each setting separates good trials from the others (PED-ANOVA); empty if too few have finished."""
    if finished < MIN_TRIALS_FOR_IMPORTANCE:
        return {}
    o = optuna()
    with warnings.catch_warnings():
        # Some versions of Optuna warn that the evaluator is experimental.
        warnings.simplefilter("ignore")
        try:
            shares = o.importance.get_param_importances(study, evaluator=o.importance.PedAnovaImportanceEvaluator())
        # Raised if all trials have the same score or the same settings: nothing can be attributed.
        except (ValueError, RuntimeError, ZeroDivisionError):
            return {}
    return {name: float(share) for name, share in shares.items() if math.isfinite(share)}


def page(result: SearchResult, task: TuneTask, plan: Plan) -> str:
    """Return the report as one HTML page without scripts."""
    done, pruned = len(result.ranked), sum(t["state"] == "pruned" for t in result.trials)
    lead = f"{len(result.trials)} trials of {plan.seeds} seeds: {done} trained to the end, {pruned} stopped early."
    if inherited := sum(t["parent"] is not None for t in result.trials):
        lead += f" {inherited} started from the weights of another trial."
    parts: list[str] = [html.section("Result", _summary(result), _finals(result), id="result", wide=True)]
    if result.best is not None:
        winner = f"<pre>{html.escape(best_yaml(result, task, plan))}</pre>"
        parts.append(html.section("Best settings", f"surefoot train {task.name} --config {BEST}", winner, wide=True))
    note = "Filled: trained to the end. Hollow: stopped early. Dashed: the settings before the search."
    parts.append(html.section("Trials", note, _history(result), wide=True))
    if result.importance:
        shares = dict(sorted(result.importance.items(), key=lambda item: -item[1]))
        note = "Share of each setting in the difference between the best trials and the others."
        parts.append(html.section("What mattered", note, bar_chart(shares), wide=True))
    slices = "".join(_slice(result, task, name) for name in result.importance or task.space)
    parts.append(f'<h2 class="wide">Each setting</h2><div class="multiples">{slices}</div>')
    return html.page(f"Hyperparameter search: {task.name}", lead, parts)


def _summary(result: SearchResult) -> str:
    if result.best is None:
        return "No trial was trained to the end."
    if result.base is None:
        return f"Best: {score_text(result.best)}."
    if result.best.number == 0:
        return f"No trial was better than the base: {score_text(result.best)}."
    return f"Best {score_text(result.best)}; before the search {score_text(result.base)}."


def _finals(result: SearchResult) -> str:
    rows: list[list[str]] = []
    for trial in result.finals or result.ranked[:5]:
        s = summarize(trial.scores) if trial.scores else None
        interval = f"{s.low:.1f} … {s.high:.1f}" if s else ""
        name = f"{trial.number}{' (base)' if trial.number == 0 else ''}"
        rows.append([name, f"{trial.value:.1f}", interval, str(len(trial.scores))])
    note = "On fresh seeds." if result.finals else "On the seeds of the search."
    return html.table(["trial", "IQM", "95 %", "seeds"], rows) + f"<p>{note}</p>"


def _scored(result: SearchResult) -> list[tuple[int, float, str, dict[str, Any]]]:
    """Return (number, score, style of its dot, params) of every trial that has a finite score."""
    scored: list[tuple[int, float, str, dict[str, Any]]] = []
    for trial in result.trials:
        rungs = list(trial["rungs"].values())
        # A pruned trial has no final value; its last rung is shown.
        value = trial["value"] if trial["value"] is not None else rungs[-1] if rungs else None
        if value is not None and math.isfinite(value):
            best = result.best is not None and trial["number"] == result.best.number
            kind = "chosen" if best else "" if trial["state"] == "complete" else "hollow"
            scored.append((trial["number"], float(value), kind, trial["params"]))
    return scored


def _history(result: SearchResult) -> str:
    """Return a chart of the scores by trial number, with the best score so far as a step line."""
    scored = _scored(result)
    if not scored:
        return ""
    last = max(number for number, *_ in scored) or 1
    lines: list[Line] = []
    base = next((value for number, value, *_ in scored if number == 0), None)
    if base is not None:
        lines.append(Line([(0, base), (last, base)], "reference"))
    best: list[tuple[float, float]] = []
    for number, value, kind, _ in scored:
        # Pruned trials do not count as best: they were scored after less training.
        if kind != "hollow" and (not best or value > best[-1][1]):
            best += [(number, best[-1][1])] if best else []
            best.append((number, value))
    if best:
        lines.append(Line([*best, (last, best[-1][1])]))
    area = PlotArea(x=(0, last), y=padded_range([v for _, v, *_ in scored], pad=0.05), width=1080, height=240, left=60)
    dots = [Dot(n, v, kind, f"trial {n}: {v:.1f}") for n, v, kind, _ in scored]
    return line_chart(lines, dots=dots, area=area)


def _slice(result: SearchResult, task: TuneTask, name: str) -> str:
    """Return a chart of the scores by the values of one setting."""
    points = [(params[name], value, kind, n) for n, value, kind, params in _scored(result) if name in params]
    dim = task.space.get(name)
    if not points or dim is None:
        return ""
    if isinstance(dim, Choice):
        names = [label(value) for value in dim.values]
        # A study may contain values that are no longer in the space; they are drawn at the left edge.
        places = [(names.index(label(p)) + 0.5) / len(names) if label(p) in names else 0.0 for p, *_ in points]
        ticks = [((k + 0.5) / len(names), text.strip('"')) for k, text in enumerate(names)]
    else:
        places = [_place(dim, float(p)) for p, *_ in points]
        ticks = [(0.0, f"{dim.low:.3g}"), (1.0, f"{dim.high:.3g}")]
    area = PlotArea(
        x=(0, 1), y=padded_range([value for _, value, *_ in points], pad=0.05), width=250, height=134, left=34, right=14
    )
    dots = [
        Dot(x, value, kind, f"trial {n}: {p} → {value:.1f}")
        for x, (p, value, kind, n) in zip(places, points, strict=True)
    ]
    return html.section(name, "", scatter(dots, area=area, x_ticks=ticks))


def _place(dim: Range, value: float) -> float:
    """Return the position of a value in its range, 0 to 1, on a log scale if the range has one."""
    low, high = (math.log(dim.low), math.log(dim.high)) if dim.log else (dim.low, dim.high)
    position = math.log(value) if dim.log else value
    return min(1.0, max(0.0, (position - low) / (high - low)))
