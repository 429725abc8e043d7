"""What came of a search: the winner as YAML, every trial as JSON, and a page with what mattered."""

from __future__ import annotations

import html
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
from surefoot.train.diagnose.statistics import summarize
from surefoot.train.tune.final_round import Standing, standings
from surefoot.train.tune.search import TAKEN_BACK, Plan, Task, optuna, read_params

BEST, TRIALS, PAGE = "best.yaml", "trials.json", "report.html"
FEWEST = 6
"""Finished trials before it can be said what mattered."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of a search when it ends, or is stopped."""

    best: Standing | None
    ranked: list[Standing]
    """Finished trials, best first."""
    finals: list[Standing]
    """The play-off on fresh seeds, best first; empty if there was none."""
    importance: dict[str, float]
    trials: list[dict[str, Any]]

    @property
    def trials_by_number(self) -> dict[int, dict[str, Any]]:
        return {trial["number"]: trial for trial in self.trials}

    @property
    def base(self) -> Standing | None:
        """The settings before the search: as they did in the play-off, or else in the search."""
        return next((one for one in (*self.finals, *self.ranked) if one.number == 0), None)


def outcome(study: Any, space: Space, finals: Sequence[Standing]) -> Outcome:
    """Of all that was tried so far."""
    ranked = standings(study, space)
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
            "taken_back": TAKEN_BACK in t.user_attrs,
            "parent": t.user_attrs.get("parent"),
            "from_rung": t.user_attrs.get("from_rung"),
        }
        for t in study.get_trials(deepcopy=False)
        if t.params
    ]
    best = finals[0] if finals else ranked[0] if ranked else None
    return Outcome(best, ranked, list(finals), _importance(study, len(ranked)), trials)


def write_outcome(directory: Path, found: Outcome, task: Task, plan: Plan) -> None:
    """best.yaml, trials.json and report.html."""
    if found.best is not None:
        replace_file(REAL_FS, directory / BEST, best_yaml(found, task, plan).encode())
    text = json.dumps({"importance": found.importance, "trials": found.trials}, indent=1) + "\n"
    replace_file(REAL_FS, directory / TRIALS, text.encode())
    replace_file(REAL_FS, directory / PAGE, page(found, task, plan).encode())


def best_yaml(found: Outcome, task: Task, plan: Plan) -> str:
    """For `surefoot train --config`; where the numbers come from is in a comment."""
    assert found.best is not None
    where = "fresh seeds" if found.finals else "the seeds of the search"
    lines = [f"# {task.name}: trial {found.best.number} of {len(found.trials)}", f"# {_told(found.best)} on {where}"]
    if found.base is not None and found.base.number != found.best.number:
        lines.append(f"# {_told(found.base)} before the search")
    inherited = found.trials_by_number.get(found.best.number, {}).get("from_rung")
    if inherited and not found.finals:
        lines.append(f"# it had the weights of other settings for {inherited} of {plan.rungs} rungs")
    graph = task.name.endswith(".json")
    lines.append("# surefoot graph run best.json" if graph else f"# surefoot train {task.name} --config {BEST}")
    return "\n".join(lines) + "\n" + yaml.safe_dump(task.settings(found.best.params), sort_keys=False)


def _told(one: Standing) -> str:
    return str(summarize(one.scores)) if one.scores else f"{one.value:.1f}"


def _importance(study: Any, finished: int) -> dict[str, float]:
    """Which settings the good trials differ from the others by (PED-ANOVA); empty while too few are finished."""
    if finished < FEWEST:
        return {}
    o = optuna()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = o.importance.get_param_importances(study, evaluator=o.importance.PedAnovaImportanceEvaluator())
        except (ValueError, RuntimeError, ZeroDivisionError):  # all trials alike
            return {}
    return {name: float(share) for name, share in found.items() if math.isfinite(share)}


_STYLE = """
:root { color-scheme: light dark; --bg: #f6f5f1; --card: #fffefb; --ink: #1c2326; --dim: #687278; --line: #e3e0d8;
  --grid: #efede6; --curve: #17707a; --point: #cf6a1e }
@media (prefers-color-scheme: dark) { :root { --bg: #131719; --card: #1b2023; --ink: #e7e9e8; --dim: #95a0a5;
  --line: #2d3437; --grid: #252b2e; --curve: #5bc0c4; --point: #f09a54 } }
* { box-sizing: border-box } body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 1160px; margin: 0 auto; padding: 32px 24px 64px } h1 { font-size: 28px; margin: 0 }
h2 { font-size: 15px; margin: 0 }
p { color: var(--dim); margin: 4px 0 12px } .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 14px 16px; margin-top: 12px; overflow-x: auto }
.multiples { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 12px }
.multiples .card { margin: 0 }
svg { display: block; width: 100% } svg text { fill: var(--dim); font-size: 11px } .grid { stroke: var(--grid) }
.best { fill: none; stroke: var(--curve); stroke-width: 1.7 } .base { stroke: var(--point); stroke-dasharray: 5 4 }
.done { fill: var(--curve) } .pruned { fill: none; stroke: var(--dim) } .won { fill: var(--point) } .share { fill: var(--curve) }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } td, th { padding: 2px 10px; text-align: right;
  border-bottom: 1px solid var(--line); font-weight: normal; white-space: nowrap } th { color: var(--dim) }
pre { margin: 0; font-size: 13px }
"""


def page(found: Outcome, task: Task, plan: Plan) -> str:
    """One page that needs nothing but a browser: no script, nothing fetched."""
    done, pruned = len(found.ranked), sum(t["state"] == "pruned" for t in found.trials)
    said = f"{len(found.trials)} trials of {plan.seeds} seeds: {done} trained to the end, {pruned} given up early."
    if heirs := sum(t["parent"] is not None for t in found.trials):
        said += f" {heirs} went on with another's weights."
    name = html.escape(f"Search for settings: {task.name}")
    parts = [_card("What came of it", _summary(found), _finals(found))]
    if found.best is not None:
        parts.append(_card("The winner", f"surefoot train {task.name} --config {BEST}", _winner(found, task, plan)))
    parts.append(_card("Trials", "Filled: trained to the end. Hollow: given up. Dashed: the base.", _history(found)))
    if found.importance:
        parts.append(
            _card("What mattered", "Share of what tells the best trials from the rest.", _bars(found.importance))
        )
    slices = "".join(_slice(found, task, name) for name in found.importance or task.space)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<link rel="icon" href="data:,"><title>{name}</title><style>{_STYLE}</style></head><body><main>'
        f"<h1>{name}</h1><p>{said}</p>{''.join(parts)}<h2 style='margin:24px 0 8px'>Each setting</h2>"
        f'<div class="multiples">{slices}</div></main></body></html>\n'
    )


def _summary(found: Outcome) -> str:
    if found.best is None:
        return "No trial was trained to its end."
    if found.base is None:
        return f"Best: {_told(found.best)}."
    if found.best.number == 0:
        return f"Nothing beat the base: {_told(found.best)}."
    return f"Best {_told(found.best)}; before the search {_told(found.base)}."


def _finals(found: Outcome) -> str:
    rows = found.finals or found.ranked[:5]
    head = "<tr><th>trial</th><th>IQM</th><th>95 %</th><th>seeds</th></tr>"
    body = ""
    for one in rows:
        s = summarize(one.scores) if one.scores else None
        span = f"{s.low:.1f} … {s.high:.1f}" if s else ""
        who = f"{one.number}{' (base)' if one.number == 0 else ''}"
        body += f"<tr><td>{who}</td><td>{one.value:.1f}</td><td>{span}</td><td>{len(one.scores)}</td></tr>"
    note = "On fresh seeds." if found.finals else "On the seeds of the search."
    return f"<table>{head}{body}</table><p>{note}</p>"


def _winner(found: Outcome, task: Task, plan: Plan) -> str:
    return f"<pre>{html.escape(best_yaml(found, task, plan))}</pre>"


def _card(title: str, note: str, body: str) -> str:
    return f'<section class="card"><h2>{html.escape(title)}</h2><p>{html.escape(note)}</p>{body}</section>'


def _points(found: Outcome) -> list[tuple[int, float, str, dict[str, Any]]]:
    """(number, score, class, params) of every trial that was judged at all."""
    points: list[tuple[int, float, str, dict[str, Any]]] = []
    for trial in found.trials:
        rungs = list(trial["rungs"].values())
        value = trial["value"] if trial["value"] is not None else rungs[-1] if rungs else None
        if value is not None and math.isfinite(value):
            won = found.best is not None and trial["number"] == found.best.number
            kind = "won" if won else "done" if trial["state"] == "complete" else "pruned"
            points.append((trial["number"], float(value), kind, trial["params"]))
    return points


def _scale(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 1.0, high + 1.0)


def _history(found: Outcome) -> str:
    points = _points(found)
    if not points:
        return ""
    low, high = _scale([value for _, value, _, _ in points])
    last = max(number for number, *_ in points) or 1

    def x(number: float) -> float:
        return 60 + 1000 * number / last

    def y(value: float) -> float:
        return 210 - 190 * (value - low) / (high - low)

    best, line = -math.inf, ""
    for number, value, kind, _ in points:
        if kind != "pruned" and value > best:
            line += (
                f"{'M' if not line else 'L'}{x(number):.1f},{y(max(best, low)):.1f} L{x(number):.1f},{y(value):.1f} "
            )
            best = value
    line += f"L{x(last):.1f},{y(best):.1f}" if line else ""
    base = next((value for number, value, *_ in points if number == 0), None)
    dashed = "" if base is None else f'<line class="base" x1="60" x2="1060" y1="{y(base):.1f}" y2="{y(base):.1f}"/>'
    dots = "".join(_dot(x(n), y(v), kind, f"trial {n}: {v:.1f}") for n, v, kind, _ in points)
    ends = "".join(f'<text x="52" y="{y(v) + 4:.1f}" text-anchor="end">{v:.4g}</text>' for v in (low, high))
    return f'<svg viewBox="0 0 1080 230">{ends}{dashed}<path class="best" d="{line}"/>{dots}</svg>'


def _dot(x: float, y: float, kind: str, title: str) -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{html.escape(title)}</title></circle>'


def _bars(importance: dict[str, float]) -> str:
    rows = ""
    for k, (name, share) in enumerate(sorted(importance.items(), key=lambda item: -item[1])):
        y, wide = 22 * k, 760 * share
        rows += f'<text x="150" y="{y + 15}" text-anchor="end">{html.escape(name)}</text>'
        rows += f'<rect class="share" x="160" y="{y + 4}" width="{wide:.1f}" height="14" rx="2"/>'
        rows += f'<text x="{168 + wide:.1f}" y="{y + 15}">{share:.0%}</text>'
    return f'<svg viewBox="0 0 1080 {22 * len(importance) + 6}">{rows}</svg>'


def _slice(found: Outcome, task: Task, name: str) -> str:
    """Scores over one setting."""
    points = [(params[name], value, kind, n) for n, value, kind, params in _points(found) if name in params]
    dim = task.space.get(name)
    if not points or dim is None:
        return ""
    low, high = _scale([value for _, value, _, _ in points])
    if isinstance(dim, Choice):
        names = [label(value) for value in dim.values]
        places = [(names.index(label(p)) + 0.5) / len(names) if label(p) in names else 0.0 for p, *_ in points]
        ticks = [((k + 0.5) / len(names), text.strip('"')) for k, text in enumerate(names)]
    else:
        places = [_place(dim, float(p)) for p, *_ in points]
        ticks = [(0.0, f"{dim.low:.3g}"), (1.0, f"{dim.high:.3g}")]
    dots = "".join(
        _dot(14 + 222 * at, 100 - 88 * (value - low) / (high - low), kind, f"trial {n}: {p} → {value:.1f}")
        for at, (p, value, kind, n) in zip(places, points, strict=True)
    )
    marks = "".join(
        f'<text x="{14 + 222 * at:.1f}" y="122" text-anchor="middle">{html.escape(text)}</text>' for at, text in ticks
    )
    axis = '<line class="grid" x1="8" x2="242" y1="106" y2="106"/>'
    return f'<section class="card"><h2>{html.escape(name)}</h2><svg viewBox="0 0 250 128">{axis}{dots}{marks}</svg></section>'


def _place(dim: Range, value: float) -> float:
    low, high = (math.log(dim.low), math.log(dim.high)) if dim.log else (dim.low, dim.high)
    at = math.log(value) if dim.log else value
    return min(1.0, max(0.0, (at - low) / (high - low)))
