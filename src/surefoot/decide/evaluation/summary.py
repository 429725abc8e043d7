"""Summarize a log of decisions as data, as text and as an HTML page: success, learning curve, regret, calibration."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from surefoot.decide.policy.calibration import Calibration
from surefoot.telemetry.export import html
from surefoot.telemetry.export.svg import Dot, Line, PlotArea, line_chart

# One point per 5 % of the decisions: enough to show the shape, and each point still averages many rewards.
POINTS = 20


def summary_of(rows: Sequence[dict[str, Any]], marks: Sequence[int] = (100, 300, 500, 1000, 2000)) -> dict[str, Any]:
    """Return the summary of rows with chosen, reward (0 … 1), confidence, probability and, where known, right and nearest.

    `marks` are numbers of decisions at which the success of the last 100 is reported.
    """
    reward = np.array([row["reward"] for row in rows], float)
    # Regret, nearest and confusion need the right option; success does not.
    known = [row for row in rows if row.get("right") is not None]
    calibration = Calibration(memory=10**9)
    for row in rows:
        calibration.add(row["confidence"], row["reward"])
    return {
        "decisions": len(rows),
        "success": float(reward.mean()) if len(rows) else float("nan"),
        "curve": curve(reward),
        "marks": {str(m): float(reward[max(0, m - 100) : m].mean()) for m in marks if m <= len(rows)},
        "regret": float(sum(1.0 - row["reward"] for row in known)) if known else None,
        "regret_curve": regret_curve(known),
        "nearest_curve": curve(np.array([row["nearest"] == row["right"] for row in rows], float))
        if rows and all("nearest" in row for row in rows)
        else [],
        "nearest": float(np.mean([row["nearest"] == row["right"] for row in known]))
        if known and "nearest" in known[0]
        else None,
        "tools": per_option(rows),
        "confusion": confusion(known),
        "matrix": matrix(known),
        "calibration": [[float(x), float(y)] for x, y in calibration.curve()[calibration.count > 0]],
        "calibration_error": calibration.error(),
        "risk_coverage": risk_coverage(np.array([row["confidence"] for row in rows]), reward),
        "explored": float(np.mean([row["probability"] < 0.5 for row in rows])) if rows else 0.0,
    }


def risk_coverage(confidence: np.ndarray, reward: np.ndarray) -> list[tuple[float, float]]:
    """Return (coverage, risk), at most 20 points: the error rate if only the share with the highest confidence is answered."""
    if not len(reward):
        return []
    failures = np.cumsum(1.0 - reward[np.argsort(-confidence, kind="stable")])
    counts = np.unique(np.linspace(0, len(reward), min(POINTS, len(reward)) + 1).astype(int))[1:]
    return [(float(n / len(reward)), float(failures[n - 1] / n)) for n in counts]


def curve(reward: np.ndarray) -> list[tuple[int, float]]:
    """Return (decisions, success since the previous point), at most 20 points."""
    if not len(reward):
        return []
    # unique: with fewer decisions than points some ends coincide.
    ends = np.unique(np.linspace(0, len(reward), min(POINTS, len(reward)) + 1).astype(int))
    return [(int(b), float(reward[a:b].mean())) for a, b in pairwise(ends)]


def per_option(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return per option how often it was chosen, was right, and succeeded; most chosen first."""
    rewards: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        rewards[row["chosen"]].append(row["reward"])
    right = Counter(row["right"] for row in rows if row.get("right") is not None)
    table = [
        {"name": name, "chosen": len(each), "success": float(np.mean(each)), "right": right.get(name, 0)}
        for name, each in rewards.items()
    ]
    return sorted(table, key=lambda each: -each["chosen"])


def confusion(rows: Sequence[dict[str, Any]], most: int = 10) -> list[dict[str, Any]]:
    """Return the most frequent mistakes: right, chosen, count."""
    wrong = Counter((row["right"], row["chosen"]) for row in rows if row["right"] != row["chosen"])
    return [{"right": right, "chosen": chosen, "count": n} for (right, chosen), n in wrong.most_common(most)]


def regret_curve(rows: Sequence[dict[str, Any]]) -> list[tuple[int, float]]:
    """Return (decisions, cumulative regret), from 0, at most 101 points."""
    if not rows:
        return []
    total = np.concatenate([[0.0], np.cumsum([1.0 - row["reward"] for row in rows])])
    counts = np.unique(np.linspace(0, len(rows), min(100, len(rows)) + 1).astype(int))
    return [(int(n), float(total[n])) for n in counts]


def matrix(rows: Sequence[dict[str, Any]], most: int = 12) -> dict[str, Any]:
    """Return the confusion matrix: right options as rows, chosen options as columns; rarer options are `others`."""
    right = Counter(row["right"] for row in rows)
    names = [name for name, _ in right.most_common(most)]
    index = {name: i for i, name in enumerate(names)}
    if len(set(right) | {row["chosen"] for row in rows}) > len(names):
        names.append("others")
    counts = [[0] * len(names) for _ in names]
    for row in rows:
        counts[index.get(row["right"], len(names) - 1)][index.get(row["chosen"], len(names) - 1)] += 1
    return {"names": names, "counts": counts}


def as_text(summary: dict[str, Any], most: int = 12) -> str:
    """Return the summary for a terminal, with at most `most` options."""
    spark = "".join("▁▂▃▄▅▆▇█"[min(7, int(value * 8))] for _, value in summary["curve"])
    lines = [f"{summary['decisions']:,} decisions, success {summary['success']:.1%}   {spark}"]
    if summary["nearest"] is not None:
        lines.append(f"nearest description alone: {summary['nearest']:.1%}; regret {summary['regret']:,.0f} decisions")
    lines += [f"  after {mark:>5}: {value:.1%} of the last 100" for mark, value in summary["marks"].items()]
    lines += ["", f"  {'option':<34} chosen  right  success"]
    lines += [
        f"  {t['name'][:34]:<34} {t['chosen']:6} {t['right']:6}  {t['success']:6.1%}" for t in summary["tools"][:most]
    ]
    if summary["confusion"]:
        lines += ["", "  most frequent mistakes"]
        lines += [f"  {c['count']:5} × {c['chosen']} where {c['right']} was right" for c in summary["confusion"]]
    lines += ["", f"  calibration error {summary['calibration_error']:.3f}; explored in {summary['explored']:.1%}"]
    return "\n".join(lines)


def page_of(summary: dict[str, Any], title: str) -> str:
    headline = f"{summary['decisions']:,} decisions, {summary['success']:.1%} successful"
    if summary["nearest"] is not None:
        headline += f"; the nearest description alone would have been right in {summary['nearest']:.1%}"
    headline += f"; chosen with a probability below 50 % in {summary['explored']:.1%}."
    mistakes = [[c["right"], c["chosen"], str(c["count"])] for c in summary["confusion"]]
    options = [
        [t["name"], f"{t['chosen']:,}", str(t["right"] or "–"), f"{t['success']:.1%}", html.share_bar(t["success"])]
        for t in summary["tools"]
    ]
    mistake_table = html.table(["right", "chosen", "times"], mistakes) if mistakes else ""
    option_table = html.table(["option", "chosen", "right", "success", ""], options)
    parts = [
        _curve_section(summary),
        _regret_section(summary),
        _calibration_section(summary),
        _coverage_section(summary),
        html.section("Most frequent mistakes", "" if mistakes else "None known.", mistake_table, id="mistakes"),
        html.section("Success per option", "", option_table, id="options", wide=True),
        _confusion_section(summary),
    ]
    return html.page(title, headline, parts)


def _curve_section(summary: dict[str, Any]) -> str:
    points = [(float(n), y) for n, y in summary["curve"]]
    lines = [Line(points)]
    note = "Success since the previous point."
    if summary["nearest_curve"]:
        lines.append(Line([(float(n), y) for n, y in summary["nearest_curve"]], "reference"))
        note += " Dashed: the nearest description on the same queries."
    if marks := ", ".join(f"{y:.0%} after {m}" for m, y in summary["marks"].items()):
        note += f" Of the last 100: {marks}."
    area = PlotArea(x=(0, max([x for x, _ in points], default=1.0)), y=(0, 1))
    return html.section("Learning curve", note, line_chart(lines, area=area), id="curve")


def _regret_section(summary: dict[str, Any]) -> str:
    points = [(float(n), y) for n, y in summary["regret_curve"]]
    if not points:
        return html.section("Regret", "Unknown: the log does not name the right options.", "", id="regret")
    note = (
        f"Cumulative number of decisions that were not right: {summary['regret']:,.0f} at the end. It should flatten."
    )
    end = points[-1][0]
    lines = [Line(points)]
    if summary["nearest"] is not None:
        lines.append(Line([(0.0, 0.0), (end, (1.0 - summary["nearest"]) * end)], "reference"))
        note += " Dashed: the nearest description's."
    area = PlotArea(x=(0, end), y=(0, max(1.0, *(y for line in lines for _, y in line.points))))
    return html.section("Regret", note, line_chart(lines, area=area), id="regret")


def _calibration_section(summary: dict[str, Any]) -> str:
    points: list[tuple[float, float]] = [(x, y) for x, y in summary["calibration"]]
    lines = [Line([(0.0, 0.0), (1.0, 1.0)], "reference"), Line(points)]
    note = (
        f"Horizontal: expected success. Vertical: measured success. Mean distance {summary['calibration_error']:.3f}."
    )
    chart = line_chart(lines, dots=[Dot(x, y) for x, y in points], area=PlotArea(x=(0, 1), y=(0, 1)))
    return html.section("Calibration", note, chart, id="calibration")


def _coverage_section(summary: dict[str, Any]) -> str:
    points: list[tuple[float, float]] = [(x, y) for x, y in summary["risk_coverage"]]
    half = next((risk for coverage, risk in points if coverage >= 0.5), None)
    note = "Horizontal: share of the decisions that are answered, the most confident first. Vertical: share of wrong answers."
    if half is not None:
        note += f" The more confident half: {half:.1%} wrong; all: {points[-1][1]:.1%}."
    top = max([risk for _, risk in points], default=1.0)
    chart = line_chart([Line(points)], area=PlotArea(x=(0, 1), y=(0, max(top, 0.01))))
    return html.section("Risk and coverage", note, chart, id="coverage")


def _confusion_section(summary: dict[str, Any]) -> str:
    names, counts = summary["matrix"]["names"], summary["matrix"]["counts"]
    if not names:
        return ""
    rows = [
        [name, *(html.heat_cell(str(n or ""), n / max(1, sum(row))) for n in row)]
        for name, row in zip(names, counts, strict=True)
    ]
    head = ["", *(name if len(name) <= 12 else f"{name[:11]}…" for name in names)]
    note = "Rows: the right option. Columns: the chosen option. The less frequent options share the row and column `others`."
    return html.section("Confusion", note, html.table(head, rows), id="confusion", wide=True)
