"""The summary of a log of decisions as one HTML page."""

from __future__ import annotations

from typing import Any

from surefoot.telemetry.export import html
from surefoot.telemetry.export.svg import Dot, Line, PlotArea, line_chart


def page_of(summary: dict[str, Any], title: str) -> str:
    """Return the page for a summary (`summary.summary_of`)."""
    parts = [_curve(summary), _regret(summary), _calibration(summary), _mistakes(summary)]
    parts += [_options(summary), _confusion(summary)]
    return html.page(title, headline(summary), parts)


def headline(summary: dict[str, Any]) -> str:
    """Return the summary as one sentence."""
    text = f"{summary['decisions']:,} decisions, {summary['success']:.1%} successful"
    if summary["nearest"] is not None:
        text += f"; the nearest description alone would have been right in {summary['nearest']:.1%}"
    return f"{text}; chosen at less than even odds in {summary['explored']:.1%}."


def _curve(summary: dict[str, Any]) -> str:
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


def _regret(summary: dict[str, Any]) -> str:
    points = [(float(n), y) for n, y in summary["regret_curve"]]
    if not points:
        return html.section("Regret", "Unknown: nobody said which option would have been right.", "", id="regret")
    note = f"Decisions so far that were not the right one: {summary['regret']:,.0f} in the end. It should flatten."
    end = points[-1][0]
    lines = [Line(points)]
    if summary["nearest"] is not None:
        lines.append(Line([(0.0, 0.0), (end, (1.0 - summary["nearest"]) * end)], "reference"))
        note += " Dashed: the nearest description's."
    area = PlotArea(x=(0, end), y=(0, max(1.0, *(y for line in lines for _, y in line.points))))
    return html.section("Regret", note, line_chart(lines, area=area), id="regret")


def _calibration(summary: dict[str, Any]) -> str:
    points: list[tuple[float, float]] = [(x, y) for x, y in summary["calibration"]]
    lines = [Line([(0.0, 0.0), (1.0, 1.0)], "reference"), Line(points)]
    note = (
        f"Horizontal: expected success. Vertical: measured success. Mean distance {summary['calibration_error']:.3f}."
    )
    chart = line_chart(lines, dots=[Dot(x, y) for x, y in points], area=PlotArea(x=(0, 1), y=(0, 1)))
    return html.section("Calibration", note, chart, id="calibration")


def _mistakes(summary: dict[str, Any]) -> str:
    rows = [[c["right"], c["chosen"], str(c["count"])] for c in summary["confusion"]]
    if not rows:
        return html.section("Commonest mistakes", "None is known.", "", id="mistakes")
    return html.section("Commonest mistakes", "", html.table(["right", "chosen", "times"], rows), id="mistakes")


def _options(summary: dict[str, Any]) -> str:
    rows = [
        [t["name"], f"{t['chosen']:,}", str(t["right"] or "–"), f"{t['success']:.1%}", html.share_bar(t["success"])]
        for t in summary["tools"]
    ]
    table = html.table(["option", "chosen", "right", "success", ""], rows)
    return html.section("Success per option", "", table, id="options", wide=True)


def _confusion(summary: dict[str, Any]) -> str:
    names, counts = summary["matrix"]["names"], summary["matrix"]["counts"]
    if not names:
        return ""
    rows = [
        [name, *(html.heat_cell(str(n or ""), n / max(1, sum(row))) for n in row)]
        for name, row in zip(names, counts, strict=True)
    ]
    head = ["", *(name if len(name) <= 12 else f"{name[:11]}…" for name in names)]
    note = (
        "Rows: the right option. Columns: the chosen option. The most frequent ones; the others are one row and column."
    )
    return html.section("Confusion", note, html.table(head, rows), id="confusion", wide=True)
