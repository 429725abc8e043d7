"""The summary of a run: range, mode, latest values, extremes with their updates, findings, drift from a baseline."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.telemetry.doctor.drift import BaselineLevel, DriftMeter, MetricDrift, levels
from surefoot.telemetry.doctor.findings import patch_text, severity_rank
from surefoot.telemetry.export.run_facts import clock_time, gather
from surefoot.telemetry.files.rotation import is_being_written
from surefoot.telemetry.reader import load_curves
from surefoot.telemetry.record_table import update_row
from surefoot.telemetry.schema import UpdateRecord

SHOWN = (
    *("episodes.return_mean", "loss", "policy_loss", "value_loss", "entropy", "approx_kl", "kl_divergence"),
    *("clip_fraction", "grad_norm", "explained_variance", "reward_advantage_corr", "lr"),
)
# The numbers that trainings of towns add to an update, by subject.
CONFLICT = tuple(f"conflict.rivalry_{x}_avg" for x in ("max_mean", "max_max", "avoid_count_mean", "avoid_count_max"))
SOCIAL = (
    *("shared_meal_events", "late_help_events", "shift_takeover_events", "chat_success_events", "chat_failure_events"),
    *("chat_quality_mean", "utility_outage_events", "shower_complete_events", "sleep_complete_events"),
)
ANNEAL_NUMBERS = (
    *("anneal_cycle", "anneal_bc_accuracy", "anneal_bc_threshold"),
    *("anneal_loss_baseline", "anneal_queue_baseline", "anneal_intensity_baseline"),
)
ANNEAL_FLAGS = ("anneal_bc_passed", "anneal_loss_flag", "anneal_queue_flag", "anneal_intensity_flag")
_FINDING_FIELDS = (
    *("rule", "severity", "status", "title", "since_update", "since_env_steps"),
    *("causes", "patch", "primary"),
)
QUEUES = ("queue_conflict_events", "queue_conflict_intensity_sum", *CONFLICT)


@dataclass(frozen=True, slots=True)
class Extreme:
    """Minimum and maximum of a number, each with its update."""

    low: float
    low_update: int
    high: float
    high_update: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The content of `surefoot telemetry summary`."""

    run: str
    env: str
    state: str
    rows: int
    """Update lines in the summary."""
    updates: tuple[int, int]
    env_steps: tuple[int, int]
    seconds: float
    labels: dict[str, str]
    latest: dict[str, float]
    extremes: dict[str, Extreme]
    findings: list[dict[str, Any]]
    unreadable: list[str]
    """The first of the lines that could not be read."""
    unreadable_lines: int
    """All of them."""
    drift: list[MetricDrift]

    def part(self, names: tuple[str, ...]) -> dict[str, float]:
        """Return the latest values of the numbers that the run has."""
        return {name: self.latest[name] for name in names if name in self.latest}

    def to_json(self) -> dict[str, Any]:
        anneal = {k.removeprefix("anneal_"): x for k, x in (self.latest | self.labels).items() if k[:7] == "anneal_"}
        return {
            "run": self.run,
            "env": self.env,
            "state": self.state,
            "epochs": self.rows,
            "updates": self.updates,
            "env_steps": self.env_steps,
            "seconds": round(self.seconds, 3),
            "data_mode": self.labels.get("data_mode"),
            "cycle_id": self.latest.get("cycle_id"),
            "log_stream_offset": self.latest.get("log_stream_offset"),
            "latest": self.latest,
            "extremes": {
                name: {"min": x.low, "min_update": x.low_update, "max": x.high, "max_update": x.high_update}
                for name, x in self.extremes.items()
            },
            "conflict": self.part(QUEUES),
            "social": self.part(SOCIAL),
            "anneal": anneal,
            "findings": self.findings,
            "unreadable": self.unreadable,
            "unreadable_lines": self.unreadable_lines,
            "baseline_drift": {
                d.name: {
                    "baseline": d.level.median,
                    "scale": d.level.scale,
                    "delta": d.latest * d.level.scale,
                    "robust_z": d.latest,
                    "worst_robust_z": d.worst,
                    "worst_update": d.worst_update,
                    "per_epoch": [None if np.isnan(x) else round(float(x), 4) for x in d.rows],
                }
                for d in self.drift
            },
        }


def summarise(path: Path | str, *, baseline: Path | str | None = None, last: int | None = None) -> RunSummary:
    """Return the summary of a run directory, record or log; `last` limits it to that many update lines at the end.

    Updates are folded as they are read: memory does not grow with the file.
    """
    fold = _Fold(levels(baseline) if baseline is not None else {})
    if last:
        waiting: deque[tuple[UpdateRecord, float]] = deque(maxlen=last)
        curves = load_curves(path, take=lambda update, elapsed: waiting.append((update, elapsed)))
        for update, elapsed in waiting:
            fold.add(update, elapsed)
    else:
        curves = load_curves(path, take=fold.add)
    facts = gather(curves, running=is_being_written(Path(path)))
    (first, begin), (final, end) = fold.ends
    return RunSummary(
        run=facts.run or Path(path).name,
        env=facts.env,
        state=facts.state_text if curves.header else "a log of an older version",
        rows=fold.rows,
        updates=(first.updates, final.updates) if first and final else (0, 0),
        env_steps=(first.env_steps, final.env_steps) if first and final else (0, 0),
        seconds=end - (begin if last else 0.0),
        labels=curves.labels,
        latest=fold.latest,
        extremes=fold.extremes,
        findings=[
            {name: getattr(f, name) for name in _FINDING_FIELDS}
            for f in sorted(curves.findings, key=lambda f: (f.status, not f.primary, -severity_rank(f.severity)))
        ],
        unreadable=[str(problem) for problem in curves.problems],
        unreadable_lines=curves.unreadable,
        drift=fold.meter.drifts(),
    )


class _Fold:
    """The first and last update, the latest value and the extremes of every number, and the drift."""

    def __init__(self, baseline: dict[str, BaselineLevel]) -> None:
        self.meter = DriftMeter(baseline)
        self.rows = 0
        self.ends: list[tuple[UpdateRecord | None, float]] = [(None, 0.0), (None, 0.0)]
        self.latest: dict[str, float] = {}
        self.extremes: dict[str, Extreme] = {}

    def add(self, update: UpdateRecord, elapsed: float) -> None:
        """Take one update and its running time."""
        self.rows += 1
        self.ends[1] = (update, elapsed)
        if self.rows == 1:
            self.ends[0] = (update, elapsed)
        row, number = update_row(update), update.updates
        self.meter.add(number, row)
        for name, x in row.items():
            if x is None or name.endswith((".min", ".max")) or name.startswith("nonfinite."):
                continue
            self.latest[name] = x
            low, high = update.m_min.get(name), update.m_max.get(name)
            low, high = x if low is None else min(low, x), x if high is None else max(high, x)
            known = self.extremes.get(name)
            if known is None:
                self.extremes[name] = Extreme(low, number, high, number)
            elif low < known.low or high > known.high:
                lowest = (low, number) if low < known.low else (known.low, known.low_update)
                highest = (high, number) if high > known.high else (known.high, known.high_update)
                self.extremes[name] = Extreme(*lowest, *highest)


def as_text(summary: RunSummary) -> str:
    mode, cycle = summary.labels.get("data_mode"), summary.latest.get("cycle_id")
    extra = [f"mode={mode}"] if mode else []
    extra += [f"cycle_id={cycle:g}"] if cycle is not None else []
    lines = [
        f"{summary.run} · {summary.env} · {summary.state}",
        f"Epochs analysed: {summary.rows}" + (f" ({', '.join(extra)})" if extra else ""),
        f"Span: updates {summary.updates[0]}–{summary.updates[1]}, env steps {summary.env_steps[0]:,}–"
        f"{summary.env_steps[1]:,}, {clock_time(summary.seconds)}",
    ]
    for title, names in (
        ("Latest metrics", SHOWN),
        ("Queue conflicts", QUEUES),
        ("Social interactions", SOCIAL[:6]),
        ("Hygiene & rest", SOCIAL[6:]),
        ("Anneal status", ANNEAL_NUMBERS + ANNEAL_FLAGS),
    ):
        if part := summary.part(names):
            lines.append(f"{title}: " + ", ".join(f"{name} {x:.4g}" for name, x in part.items()))
    if summary.extremes:
        lines.append("Extremes:")
    shown = _shown_extremes(summary)
    for name, x in shown:
        if x.low != x.high:
            lines.append(f"  {name:<30} {x.low:>11.4g} at {x.low_update:<8} {x.high:>11.4g} at {x.high_update}")
    if same := [f"{name} {x.low:.4g}" for name, x in shown if x.low == x.high]:
        lines.append(f"  constant: {', '.join(same)}")
    if summary.findings:
        lines.append("Findings:")
        lines += [f"  {_finding_text(f)}" for f in summary.findings]
    if summary.unreadable:
        lines.append(f"{summary.unreadable_lines} unreadable lines, the first: {summary.unreadable[0]}")
    if summary.drift:
        lines.append("Baseline drift, in units of the baseline's spread (1.4826 MAD):")
    for d in [d for d in summary.drift if abs(d.worst) >= 1.0]:
        lines.append(f"  {d.name:<30} latest {_z(d.latest):>8}   worst {_z(d.worst):>8} at update {d.worst_update}")
    if near := sum(abs(d.worst) < 1.0 for d in summary.drift):
        lines.append(f"  {near} others stay within one unit")
    return "\n".join(lines)


def as_markdown(summary: RunSummary) -> str:
    lines = [
        "### PPO Telemetry Summary",
        "",
        f"- run: {summary.run} ({summary.env}), {summary.state}",
        f"- epochs: {summary.rows}, updates {summary.updates[0]}–{summary.updates[1]}, "
        f"env steps {summary.env_steps[0]:,}–{summary.env_steps[1]:,}",
    ]
    lines += [f"- {name}: {word}" for name, word in summary.labels.items()]
    lines += ["", "| Metric | Latest | Min | at | Max | at |", "| --- | --- | --- | --- | --- | --- |"]
    for name, x in _shown_extremes(summary):
        latest = f"{summary.latest[name]:.4g}"
        lines.append(f"| {name} | {latest} | {x.low:.4g} | {x.low_update} | {x.high:.4g} | {x.high_update} |")
    if summary.findings:
        lines += ["", "#### Findings", "", *[f"- {_finding_text(f)}" for f in summary.findings]]
    if summary.drift:
        lines += ["", "#### Baseline Drift", ""]
        lines += ["| Metric | Baseline | Latest | Worst | at |", "| --- | --- | --- | --- | --- |"]
    for d in summary.drift:
        lines.append(f"| {d.name} | {d.level.median:.4g} | {_z(d.latest)} | {_z(d.worst)} | {d.worst_update} |")
    return "\n".join(lines)


def _shown_extremes(summary: RunSummary) -> list[tuple[str, Extreme]]:
    names = dict.fromkeys((*SHOWN, *QUEUES, *SOCIAL))
    return [(name, summary.extremes[name]) for name in names if name in summary.extremes]


def _finding_text(finding: dict[str, Any]) -> str:
    patch = patch_text(finding["patch"])
    since = f" since update {finding['since_update']}" if finding["since_update"] else ""
    state = "" if finding["status"] == "open" else f" ({finding['status']})"
    return f"{finding['rule']} {finding['severity']}: {finding['title']}{since}{state}" + (
        f" → {patch}" if patch else ""
    )


def _z(x: float) -> str:
    return f"{x:+.1f}" if abs(x) < 1000 else f"{'+' if x > 0 else '-'}>1000"
