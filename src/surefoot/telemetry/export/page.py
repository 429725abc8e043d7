"""The report of a run: a self-contained HTML page, and a few lines for a terminal."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import numpy as np

from surefoot.telemetry.doctor.findings import patch_text, severity_rank
from surefoot.telemetry.export.html import escape, style
from surefoot.telemetry.export.run_facts import RunFacts, gather, number
from surefoot.telemetry.files.rotation import is_being_written, live_file
from surefoot.telemetry.reader import Curves, load_curves
from surefoot.telemetry.record_table import RecordTable
from surefoot.telemetry.schema import METRICS

PANELS = (
    *("entropy", "approx_kl", "clip_fraction", "explained_variance"),
    *("value_loss", "grad_norm", "lr", "first_ratio_error"),
)
# Points per curve: about the pixels of a screen, and four times as many to zoom in. They bound the size of the page.
_BUCKETS, _FINE = 1000, 4000
_EVENTS = 300


def write_report(run: Path | str, out: Path | str | None = None, *, others: Sequence[Path | str] = ()) -> Path:
    """Write the page, by default `report.html` beside the record, and return its path; `others` are runs to compare."""
    live = live_file(Path(run))
    target = Path(out) if out else live.parent / "report.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    compared = [page_data(*_load(other)) for other in others]
    target.write_text(page(*_load(run), live, others=compared), encoding="utf-8")
    return target


def summary_lines(run: Path | str) -> list[str]:
    """Return the run in about ten lines of plain text."""
    return _summary(*_load(run), live_file(Path(run)))


def _load(run: Path | str) -> tuple[Curves, RunFacts]:
    curves = load_curves(run)
    return curves, gather(curves, running=is_being_written(Path(run)))


def page(curves: Curves, facts: RunFacts, live: Path, *, others: Sequence[dict[str, Any]] = ()) -> str:
    """Return the page: all placeholders of the template are filled in one pass, so that no inserted text is read as one."""
    # In JSON "<" is only inside strings, where \u003c means the same: no text can close the script element.
    content = page_data(curves, facts) | {"others": list(others)}
    data = json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    fill = {
        "style": style("style.css"),
        "title": escape(f"{facts.env} · {facts.run}"),
        "summary": escape("\n".join(_summary(curves, facts, live))),
        "data": data,
    }
    template = (files("surefoot.telemetry.export") / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(title|style|summary|data)\}\}", lambda hole: fill[hole[1]], template)


def page_data(curves: Curves, facts: RunFacts) -> dict[str, Any]:
    """Return everything the page draws, as JSON values: at most 1000 points per curve with their ranges, 4000 to zoom in."""
    updates, header = curves.updates, curves.header
    events = curves.events[-_EVENTS:]
    about: list[tuple[str, str]] = []
    if header:
        about = [("seed", str(header.seed)), ("threads", str(header.threads)), ("sessions", str(curves.sessions))]
        about += [("git commit", header.git_commit)] if header.git_commit else []
        about += [*header.versions.items(), ("record", f"version {header.v}")]
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
            {name: getattr(e, name) for name in ("name", "message", "env_steps", "updates")} | {"elapsed": round(t, 3)}
            for e, t in zip(events, curves.events_elapsed[-_EVENTS:], strict=True)
        ],
        "config": flat(header.config) if header else [],
        "about": about,
        "reproduce": shlex.join(header.command) if header else "",
        "resume": shlex.join(header.resume_command) if header else "",
        "problems": [str(p) for p in curves.problems[:50]],
    }


def _level(updates: RecordTable, buckets: int) -> dict[str, Any]:
    """Return the curves at one resolution: each point stands for neighbouring updates, with their range."""
    edges = np.unique(np.linspace(0, len(updates), min(len(updates), buckets) + 1).astype(np.int64))[:-1]
    ends = np.append(edges[1:], len(updates)) - 1 if len(edges) else edges
    episodes = "episodes.return_{}".format
    counts = np.nan_to_num(updates["episodes.count"])
    return {
        "x": _clocks(updates, ends),
        "returns": _curve(updates, edges, episodes("mean"), episodes("min"), episodes("max"), counts),
        "panels": [
            {
                "name": name,
                "unit": METRICS[name].unit,
                "meaning": METRICS[name].meaning,
                "healthy": METRICS[name].healthy,
                "bad": np.flatnonzero(np.add.reduceat(np.nan_to_num(updates[f"nonfinite.{name}"]), edges)).tolist()
                if len(edges)
                else [],
                **_curve(updates, edges, name, f"{name}.min", f"{name}.max", np.nan_to_num(updates["covers"])),
            }
            for name in PANELS
        ],
    }


def _findings(curves: Curves) -> list[dict[str, Any]]:
    """Return the findings, the gravest open ones first, with their start and end on each axis."""
    updates = curves.updates

    def clocks(number: int, steps: int) -> dict[str, Any]:
        if not len(updates):
            return {"updates": number, "env_steps": steps, "elapsed": 0.0}
        elapsed = float(np.interp(number, updates.updates, updates.elapsed))
        steps = steps or int(np.interp(number, updates.updates, updates.env_steps))
        return {"updates": number, "env_steps": steps, "elapsed": round(elapsed, 3)}

    rows: list[dict[str, Any]] = []
    for f in sorted(curves.findings, key=lambda f: (f.status != "open", not f.primary, -severity_rank(f.severity))):
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
                "patch": patch_text(f.patch),
            }
        )
    return rows


def _curve(
    updates: RecordTable, edges: np.ndarray, mean: str, low: str, high: str, weight: np.ndarray
) -> dict[str, Any]:
    """Return one point per bucket: weighted mean, minimum and maximum; None for an empty bucket."""
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
    """Return five significant digits, more than a screen shows; None for NaN."""
    return [float(f"{x:.5g}") if np.isfinite(x) else None for x in column.tolist()]


def flat(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested settings as rows (dotted name, text)."""
    rows: list[tuple[str, str]] = []
    for name, value in config.items():
        if isinstance(value, Mapping):
            rows += flat(cast(Mapping[str, Any], value), f"{prefix}{name}.")
        else:
            rows.append((f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)))
    return rows


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
        lines.append(f"  {curves.unreadable} unreadable lines, the first: {curves.problems[0]}")
    lines.append(f"  record       {live}")
    return lines


def sparkline(values: np.ndarray, width: int = 48) -> str:
    """Return a curve in one line of block characters; empty if there are fewer than two numbers."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return ""
    chunks = np.array_split(known, min(width, len(known)))
    means = np.array([chunk.mean() for chunk in chunks])
    height = float(means.max() - means.min()) or 1.0
    levels = ((means - means.min()) / height * 7).round().astype(int)
    return f"{number(means[0])} {''.join('▁▂▃▄▅▆▇█'[level] for level in levels)} {number(means[-1])}"
