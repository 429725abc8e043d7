"""A run on one page that needs nothing but a browser, and the same in a few lines for a terminal."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import numpy as np

from surefoot.telemetry.doctor.findings import gravity
from surefoot.telemetry.export.html import escape, style
from surefoot.telemetry.export.run_facts import RunFacts, gather, number
from surefoot.telemetry.files.rotation import is_being_written, live_file
from surefoot.telemetry.reader import Curves, RecordTable, load_curves
from surefoot.telemetry.schema import METRICS

PANELS = (
    "entropy",
    "approx_kl",
    "clip_fraction",
    "explained_variance",
    "value_loss",
    "grad_norm",
    "lr",
    "first_ratio_error",
)
_BUCKETS, _FINE = 1000, 4000
_EVENTS = 300


def write_report(run: Path | str, out: Path | str | None = None, *, others: Sequence[Path | str] = ()) -> Path:
    """Write the page, by default `report.html` beside the record, and return where it is; `others` are runs beside it."""
    live = live_file(Path(run))
    beside = [page_data(*_load(other)) for other in others]
    target = Path(out) if out else live.parent / "report.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(*_load(run), live, others=beside), encoding="utf-8")
    return target


def summary_lines(run: Path | str) -> list[str]:
    """The run in some ten lines of plain text."""
    return _summary(*_load(run), live_file(Path(run)))


def _load(run: Path | str) -> tuple[Curves, RunFacts]:
    curves = load_curves(run)
    return curves, gather(curves, running=is_being_written(Path(run)))


def page(curves: Curves, facts: RunFacts, live: Path, *, others: Sequence[dict[str, Any]] = ()) -> str:
    """Return the page: the template with its placeholders filled in one pass, so that no text is itself taken for one."""
    # In JSON "<" only stands inside strings, where \u003c means the same: nothing can close the script element.
    whole = page_data(curves, facts) | {"others": list(others)}
    data = json.dumps(whole, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    fill = {
        "style": style("style.css"),
        "title": escape(f"{facts.env} · {facts.run}"),
        "summary": escape("\n".join(_summary(curves, facts, live))),
        "data": data,
    }
    template = (files("surefoot.telemetry.export") / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(title|style|summary|data)\}\}", lambda hole: fill[hole[1]], template)


def page_data(curves: Curves, facts: RunFacts) -> dict[str, Any]:
    """Everything the page draws, as JSON values: at most 1000 points a curve, each with its range, and 4000 to zoom into."""
    updates, header = curves.updates, curves.header
    events = curves.events[-_EVENTS:]
    return {
        "env": facts.env,
        "run": facts.run,
        "state": facts.state,
        "state_text": facts.state_text,
        "facts": [{"label": label, "value": value, "note": note} for label, value, note in facts.tiles],
        **_level(updates, _BUCKETS),
        "fine": _level(updates, _FINE) if len(updates) > _BUCKETS else None,
        "evals": _clocks(curves.evals, np.arange(len(curves.evals)))
        | {key: _rounded(curves.evals[f"return_{key}"]) for key in ("mean", "std", "min", "max")},
        "split": [{"name": name, "seconds": round(seconds, 3)} for name, seconds in facts.split],
        "findings": _findings(curves),
        "events": [
            {name: getattr(e, name) for name in ("name", "message", "env_steps", "updates")} | {"elapsed": round(at, 3)}
            for e, at in zip(events, curves.events_elapsed[-_EVENTS:], strict=True)
        ],
        "config": flat(header.config) if header else [],
        "about": _about(curves),
        "reproduce": shlex.join(header.command) if header else "",
        "resume": shlex.join(header.resume_command) if header else "",
        "problems": [str(p) for p in curves.problems[:50]],
    }


def _level(updates: RecordTable, buckets: int) -> dict[str, Any]:
    """The curves at one height of the pyramid: each point stands for neighbouring updates, with their range."""
    edges = np.unique(np.linspace(0, len(updates), min(len(updates), buckets) + 1).astype(np.int64))[:-1]
    ends = np.append(edges[1:], len(updates)) - 1 if len(edges) else edges
    episodes = "episodes.return_{}".format
    counts = np.nan_to_num(updates["episodes.count"])
    return {
        "x": _clocks(updates, ends),
        "returns": _curve(updates, edges, episodes("mean"), episodes("min"), episodes("max"), counts),
        "panels": [_panel(updates, edges, name) for name in PANELS],
    }


def _findings(curves: Curves) -> list[dict[str, Any]]:
    """What was found, the gravest that are open first, with where on each axis it began and was over."""
    updates = curves.updates

    def clocks(number: int, steps: int) -> dict[str, Any]:
        if not len(updates):
            return {"updates": number, "env_steps": steps, "elapsed": 0.0}
        elapsed = float(np.interp(number, updates.updates, updates.elapsed))
        steps = steps or int(np.interp(number, updates.updates, updates.env_steps))
        return {"updates": number, "env_steps": steps, "elapsed": round(elapsed, 3)}

    rows: list[dict[str, Any]] = []
    for f in sorted(curves.findings, key=lambda f: (f.status != "open", not f.primary, -gravity(f.severity))):
        over = (f.updates, f.env_steps)
        if f.status == "open" and len(updates):
            over = (int(updates.updates[-1]), int(updates.env_steps[-1]))
        rows.append(
            {
                **{name: getattr(f, name) for name in ("rule", "severity", "status", "title")},
                "since": clocks(f.since_update, f.since_env_steps),
                "until": clocks(*over),
                "evidence": ", ".join(f"{n} {'–' if x is None else number(x)}" for n, x in f.evidence.items()),
                "causes": f.causes,
                "patch": " ".join(
                    f"--set {n}={x if isinstance(x, str) else json.dumps(x)}" for n, x in f.patch.items()
                ),
            }
        )
    return rows


def _panel(updates: RecordTable, edges: np.ndarray, name: str) -> dict[str, Any]:
    metric = METRICS[name]
    bad = np.nan_to_num(updates[f"nonfinite.{name}"])
    return {
        "name": name,
        "unit": metric.unit,
        "meaning": metric.meaning,
        "healthy": metric.healthy,
        "bad": np.flatnonzero(np.add.reduceat(bad, edges)).tolist() if len(edges) else [],
        **_curve(updates, edges, name, f"{name}.min", f"{name}.max", np.nan_to_num(updates["covers"])),
    }


def _curve(
    updates: RecordTable, edges: np.ndarray, mean: str, low: str, high: str, weight: np.ndarray
) -> dict[str, Any]:
    """One point a bucket: weighted mean, smallest and largest of what lies in it; None where nothing does."""
    if len(edges) == 0:
        return {"mean": [], "min": [], "max": []}
    x = updates[mean]
    known = np.where(np.isnan(x), 0.0, weight)
    with np.errstate(invalid="ignore", divide="ignore"):  # 0/0: an empty bucket
        mid = np.add.reduceat(np.nan_to_num(x) * known, edges) / np.add.reduceat(known, edges)
    lowest = np.fmin.reduceat(np.fmin(updates[low], x), edges)
    highest = np.fmax.reduceat(np.fmax(updates[high], x), edges)
    return {"mean": _rounded(mid), "min": _rounded(lowest), "max": _rounded(highest)}


def _clocks(table: RecordTable, rows: np.ndarray) -> dict[str, list[Any]]:
    return {
        "env_steps": table.env_steps[rows].tolist(),
        "updates": table.updates[rows].tolist(),
        "elapsed": [round(x, 3) for x in table.elapsed[rows].tolist()],
    }


def _rounded(column: np.ndarray) -> list[float | None]:
    """Five significant digits are more than a screen shows; None for NaN."""
    return [float(f"{x:.5g}") if np.isfinite(x) else None for x in column.tolist()]


def flat(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as rows (dotted name, text)."""
    rows: list[tuple[str, str]] = []
    for name, value in config.items():
        if isinstance(value, Mapping):
            rows += flat(cast(Mapping[str, Any], value), f"{prefix}{name}.")
        else:
            rows.append((f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)))
    return rows


def _about(curves: Curves) -> list[tuple[str, str]]:
    header = curves.header
    if header is None:
        return []
    rows = [("seed", str(header.seed)), ("threads", str(header.threads)), ("sessions", str(curves.sessions))]
    rows += [("git commit", header.git_commit)] if header.git_commit else []
    return rows + list(header.versions.items()) + [("record", f"version {header.v}")]


def _summary(curves: Curves, facts: RunFacts, live: Path) -> list[str]:
    lines = [f"{facts.env} · {facts.run} · {facts.state_text}"]
    lines += [f"  {label:<12} {value}{f'  ({note})' if note else ''}" for label, value, note in facts.tiles]
    total = sum(seconds for _, seconds in facts.split)
    if total:
        shares = " · ".join(f"{name} {seconds / total:.0%}" for name, seconds in facts.split)
        lines.append(f"  {'time split':<12} {shares}")
    if spark := sparkline(curves.updates["episodes.return_mean"]):
        lines.append(f"  {'returns':<12} {spark}")
    for name in PANELS:
        values = curves.updates[name]
        values = values[np.isfinite(values)]
        if len(values):
            band = METRICS[name].healthy
            healthy = f"  (healthy {number(band[0])} to {number(band[1])})" if band else ""
            lines.append(f"  {name:<18} {number(values[-1])}{healthy}")
    if curves.problems:
        lines.append(f"  {len(curves.problems)} unreadable lines, the first: {curves.problems[0]}")
    lines.append(f"  record       {live}")
    return lines


def sparkline(values: np.ndarray, width: int = 48) -> str:
    """A curve in one line of block characters; empty if there are fewer than two numbers."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return ""
    chunks = np.array_split(known, min(width, len(known)))
    means = np.array([chunk.mean() for chunk in chunks])
    span = float(means.max() - means.min()) or 1.0
    levels = ((means - means.min()) / span * 7).round().astype(int)
    return f"{number(means[0])} {''.join('▁▂▃▄▅▆▇█'[level] for level in levels)} {number(means[-1])}"
