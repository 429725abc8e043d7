"""A log of decisions on one page that needs nothing but a browser: no script, nothing fetched, every curve an SVG."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

Point = tuple[float, float]
_WIDE, _HIGH, _LEFT, _BELOW = 460, 220, 44, 26
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #7b8794; --line: #d9dee4; --a: #2563eb; --b: #d97706; --back: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #93a0ad; --line: #34404c; --a: #6ea8fe; --b: #f0b35a; --back: #14191f }
}
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 1000px; margin: 2rem auto;
  padding: 0 1rem }
h1 { font-size: 1.4rem; margin: 0 } h2 { font-size: 1rem; margin: 0 0 .3rem } p { color: var(--soft); margin: .2rem 0 1rem }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 2rem }
section.wide { grid-column: 1 / -1; overflow-x: auto }
svg { width: 100%; height: auto } svg text { font-size: 11px; fill: var(--soft) } .grid { stroke: var(--line) }
.a { fill: none; stroke: var(--a); stroke-width: 2 } .b { fill: none; stroke: var(--b); stroke-width: 1.5;
  stroke-dasharray: 5 4 } circle { fill: var(--a) }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
td, th { padding: .15rem .5rem; text-align: right; border-bottom: 1px solid var(--line); font-weight: normal }
#confusion { font-size: .8rem } th:first-child, td:first-child { text-align: left } thead th { color: var(--soft) }
details { border-bottom: 1px solid var(--line); padding: .3rem 0 } pre { white-space: pre-wrap; color: var(--ink) }
.bar { display: inline-block; height: .6em; background: var(--a); border-radius: 2px }
"""


def page_of(summary: dict[str, Any], title: str) -> str:
    """The whole page of a summary (summary.py)."""
    parts = [_curve(summary), _regret(summary), _calibration(summary), _mistakes(summary)]
    parts += [_options(summary), _confusion(summary)]
    return document(title, headline(summary), parts)


def document(title: str, said: str, parts: Sequence[str]) -> str:
    """A page of sections under a title and a sentence."""
    name = html.escape(title)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<link rel="icon" href="data:,"><title>{name}</title><style>{_STYLE}</style></head><body>'
        f"<h1>{name}</h1><p>{html.escape(said)}</p><main>{''.join(parts)}</main></body></html>\n"
    )


def headline(summary: dict[str, Any]) -> str:
    """The whole in one sentence."""
    said = f"{summary['decisions']:,} decisions, {summary['success']:.1%} successful"
    if summary["nearest"] is not None:
        said += f"; the nearest description alone would have been right in {summary['nearest']:.1%}"
    return f"{said}; chosen at less than even odds in {summary['explored']:.1%}."


def _curve(summary: dict[str, Any]) -> str:
    lines = [("a", [(float(n), y) for n, y in summary["curve"]])]
    note = "Success since the point before."
    if summary["nearest_curve"]:
        lines.append(("b", [(float(n), y) for n, y in summary["nearest_curve"]]))
        note += " Dashed: the nearest description on the same queries."
    if marks := ", ".join(f"{y:.0%} after {m}" for m, y in summary["marks"].items()):
        note += f" Of the last 100: {marks}."
    return section("curve", "Learning curve", note, plot(lines, top=1.0))


def _regret(summary: dict[str, Any]) -> str:
    points = [(float(n), y) for n, y in summary["regret_curve"]]
    if not points:
        return section("regret", "Regret", "Unknown: nobody said which option would have been right.", "")
    note = f"Decisions so far that were not the right one: {summary['regret']:,.0f} in the end. It should flatten."
    lines = [("a", points)]
    if summary["nearest"] is not None:
        end = points[-1][0]
        lines.append(("b", [(0.0, 0.0), (end, (1.0 - summary["nearest"]) * end)]))
        note += " Dashed: the nearest description's."
    return section("regret", "Regret", note, plot(lines, top=max(1.0, *(y for _, line in lines for _, y in line))))


def _calibration(summary: dict[str, Any]) -> str:
    lines = [("b", [(0.0, 0.0), (1.0, 1.0)]), ("a", [(x, y) for x, y in summary["calibration"]])]
    note = f"Expected success across, what came of it up; mean distance {summary['calibration_error']:.3f}."
    return section("calibration", "Calibration", note, plot(lines, top=1.0, dots=True))


def _mistakes(summary: dict[str, Any]) -> str:
    rows = [[c["right"], c["chosen"], str(c["count"])] for c in summary["confusion"]]
    if not rows:
        return section("mistakes", "Commonest mistakes", "None is known.", "")
    return section("mistakes", "Commonest mistakes", "", table(["right", "chosen", "times"], rows))


def _options(summary: dict[str, Any]) -> str:
    head = "".join(f"<th>{each}</th>" for each in ("option", "chosen", "right", "success", ""))
    rows = "".join(
        f"<tr><td>{html.escape(t['name'])}</td><td>{t['chosen']:,}</td><td>{t['right'] or '–'}</td>"
        f'<td>{t["success"]:.1%}</td><td style="width:30%;text-align:left">'
        f'<span class="bar" style="width:{100 * t["success"]:.0f}%"></span></td></tr>'
        for t in summary["tools"]
    )
    table = f"<table><thead><tr>{head}</tr></thead>{rows}</table>"
    return section("options", "Success per option", "", table, wide=True)


def _confusion(summary: dict[str, Any]) -> str:
    names, counts = summary["matrix"]["names"], summary["matrix"]["counts"]
    if not names:
        return ""
    head = "<th></th>" + "".join(f"<th>{html.escape(_short(name))}</th>" for name in names)
    rows = ""
    for name, row in zip(names, counts, strict=True):
        total = max(1, sum(row))
        cells = "".join(
            f'<td style="background:color-mix(in srgb, var(--a) {round(70 * n / total)}%, transparent)">{n or ""}</td>'
            for n in row
        )
        rows += f"<tr><td>{html.escape(name)}</td>{cells}</tr>"
    note = "Right option down, chosen one across; the most wanted ones, the others together."
    table = f"<table><thead><tr>{head}</tr></thead>{rows}</table>"
    return section("confusion", "Confusion", note, table, wide=True)


def section(id: str, title: str, note: str, body: str, *, wide: bool = False) -> str:
    """A part of a page, with a title and a sentence; `body` is HTML."""
    kind = ' class="wide"' if wide else ""
    return f'<section id="{id}"{kind}><h2>{title}</h2><p>{html.escape(note)}</p>{body}</section>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of texts."""
    top = "".join(f"<th>{html.escape(each)}</th>" for each in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead>{body}</table>"


def plot(lines: Sequence[tuple[str, Sequence[Point]]], *, top: float, dots: bool = False) -> str:
    """Lines over a common scale that begins at 0 both ways."""
    right = max([x for _, points in lines for x, _ in points], default=1.0) or 1.0

    def at(point: Point) -> str:
        x = _LEFT + (_WIDE - _LEFT - 20) * point[0] / right
        y = _HIGH - _BELOW - (_HIGH - _BELOW - 10) * point[1] / top
        return f"{x:.1f},{y:.1f}"

    made = [f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img">']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = float(at((0.0, share * top)).split(",")[1])
        made.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDE - 20}" y1="{y}" y2="{y}"/>')
        made.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number(share * top)}</text>')
        x = float(at((share * right, 0.0)).split(",")[0])
        made.append(f'<text x="{x:.1f}" y="{_HIGH - 8}" text-anchor="middle">{number(share * right)}</text>')
    for kind, points in lines:
        made.append(f'<polyline class="{kind}" points="{" ".join(map(at, points))}"/>')
        if dots and kind == "a":
            made += [f'<circle r="3" cx="{at(p).split(",")[0]}" cy="{at(p).split(",")[1]}"/>' for p in points]
    return "".join(made) + "</svg>"


def number(value: float) -> str:
    """As an axis tells it."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def _short(name: str) -> str:
    return name if len(name) <= 12 else f"{name[:11]}…"
