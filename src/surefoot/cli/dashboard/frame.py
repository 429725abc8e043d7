"""One frame of the dashboard, in the size of the terminal.

It consists of lines of (text, style) pairs instead of rich's tables and layouts, which take five times as long to draw.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import pairwise

from surefoot.cli.dashboard.braille_plot import Role, chart, sparkline
from surefoot.cli.dashboard.history import RunHeader, RunHistory
from surefoot.cli.dashboard.metric_ranges import Level, MetricReading, out_of_range
from surefoot.cli.dashboard.numbers import duration, number
from surefoot.cli.dashboard.text_boxes import Line, box, fit, length, spread, wrap
from surefoot.telemetry.doctor.findings import patch_text, severity_rank

ACCENT = "bold cyan"
ROLE_STYLES: dict[Role, str] = {
    "line": "bold #2bc4b2",
    "band": "#1f6f78",
    "mark": "bold magenta",
    "best": "bold magenta",
    "target": "yellow",
    "axis": "dim",
    "label": "yellow",
}
LEVEL_STYLES: dict[Level, str] = {
    "ok": "green",
    "warn": "bold yellow",
    "bad": "bold red",
    "wait": "cyan",
    "none": "dim",
}
DOTS: dict[Level, str] = {"ok": "●", "warn": "▲", "bad": "✖", "wait": "○", "none": "·"}
# The fill differs as well as the colour: the bar must be readable without colours.
PARTS = {
    "env": ("█", "green"),
    "policy": ("▓", "cyan"),
    "collect": ("▓", "cyan"),
    "learn": ("▒", "magenta"),
    "rest": ("░", "dim"),
}
WIDE, TWO_COLUMNS = 116, 80
"""Columns from which the layout has a right column, and from which metrics are in two columns."""
SIDE = 52
"""Width of the right column of a wide terminal."""


def frame(history: RunHistory, width: int, height: int, elapsed: float) -> list[Line]:
    """Return exactly `height` lines of exactly `width` cells."""
    head = [_title(history.header, width), _progress(history, width, elapsed)]
    foot = [_footer(history.header, width)]
    room = height - len(head) - len(foot)
    if width >= WIDE and room >= 18:
        body = _wide(history, width, room)
    else:
        body = _stacked(history, width, room)
    lines = [*head, *body, *foot]
    if len(lines) > height:
        lines = lines[:height]
    return [fit(line, width) for line in lines] + [[(" " * width, "")]] * (height - len(lines))


def _wide(history: RunHistory, width: int, room: int) -> list[Line]:
    """Return the layout with the curve on the left, the other panels on the right, and notes below."""
    note_rows = min(8, max(3, room // 6))
    upper = room - note_rows - 2
    metrics = history.readings()
    side = metrics_panel(history, metrics, SIDE, one_column=True)
    side += box("time", [_split_bar(history, SIDE - 4), _split_legend(history)], SIDE)
    about = _run_lines(history.header, SIDE - 4)
    side += _small_charts(history, metrics, upper - len(side) - len(about) - 2)
    spare = upper - len(side)
    if spare >= 3:
        side += box("run", about[: spare - 2], SIDE, rows=spare - 2)
    left = curve_panel(history, width - SIDE, upper)
    side = side[:upper]
    side += [[(" " * SIDE, "")]] * (upper - len(side))
    joined = [[*a, *b] for a, b in zip(left, side, strict=True)]
    return joined + box("notes", _note_lines(history, width - 4, note_rows), width, rows=note_rows)


def _stacked(history: RunHistory, width: int, room: int) -> list[Line]:
    """Return curve, metrics, time and notes from top to bottom; the last ones are dropped first if there is no space."""
    metrics = history.readings()
    numbers = metrics_panel(history, metrics, width, one_column=width < TWO_COLUMNS)
    if room - len(numbers) < 6:
        numbers = [_metrics_line(metrics)]
    left = room - len(numbers)
    time_rows = 1 if left >= 8 else 0
    note_rows = 0 if left < 12 else min(6, 2 + (left - 14) // 4)
    curve_rows = left - time_rows - note_rows
    out = curve_panel(history, width, curve_rows) if curve_rows >= 5 else []
    out += numbers
    if time_rows:
        out.append(_split_line(history, width))
    return out + [[("  ", ""), *line] for line in _note_lines(history, width - 4, note_rows)]


def _title(header: RunHeader, width: int) -> Line:
    left: Line = [(" surefoot ", "bold reverse cyan"), ("  ", ""), (header.env, "bold")]
    for text in (f"seed {header.seed}", f"preset {header.preset}"):
        left += [("  ·  ", "dim"), (text, "")]
    return spread(left, [(header.run_dir + " ", "dim")], width)


def _progress(history: RunHistory, width: int, elapsed: float) -> Line:
    last = history.last
    share = history.progress
    if last is None:
        return [(" waiting for the first update …", "dim")]
    # During an update the clock advances, so the estimate has to decrease with it.
    eta = max(0.0, history.eta - max(0.0, elapsed - last.seconds))
    steps = f"{last.env_steps:,}"
    tail: Line = [(f" {share * 100:5.1f} % ", ACCENT)]
    tail += [(f" {steps}", "bold"), (f" / {last.total_steps:,} steps " if width >= 72 else " steps ", "dim")]
    tail += [(f" {history.rate:,.0f}", "bold"), ("/s ", "dim")]
    tail += [(f" {duration(elapsed)}", ""), (" eta ", "dim"), (f"{duration(eta)} ", "bold")]
    bar = width - 1 - length(tail)
    return [(" ", ""), *(progress_bar(share, bar) if bar >= 4 else []), *tail]


def progress_bar(share: float, width: int) -> Line:
    """Return a bar of `width` cells, filled to `share`."""
    halves = round(share * width * 2)
    full = "━" * (halves // 2) + ("╸" if halves % 2 else "")
    return [(full, "cyan"), ("─" * (width - len(full)), "dim")]


def _footer(header: RunHeader, width: int) -> Line:
    keys: Line = [(" Ctrl-C ", "reverse"), (" saves and stops", "")]
    return spread(keys, [(f"surefoot resume {shlex.quote(header.run_dir)} ", "dim")], width)


def curve_panel(history: RunHistory, width: int, height: int) -> list[Line]:
    """Return the box with the curve of returns, `height` lines including the borders."""
    last = history.last
    title: Line = [("return", "bold")]
    right: Line = []
    if last is not None and last.recent_return is not None:
        title += [("  ", ""), (number(last.recent_return), ROLE_STYLES["line"])]
        title += [(f"  mean of {min(100, last.episodes)} episodes", "dim")]
    best = history.best_evaluation
    if best is not None:
        name = "◆ best evaluation " if width >= 88 else "◆ best "
        right = [(name, ROLE_STYLES["best"]), (f"{number(best.mean)} ± {number(best.std)}", ROLE_STYLES["best"])]
    elif history.best_return is not None:
        right = [("best ", "dim"), (number(history.best_return), ROLE_STYLES["line"])]
    rows = chart(history.picture(), width - 4, height - 2)
    lines = [[(text, ROLE_STYLES[role]) for text, role in row] for row in rows]
    return box(title, lines, width, right=right)


def _small_charts(history: RunHistory, metrics: Sequence[MetricReading], room: int) -> list[Line]:
    """Return larger charts of up to three metrics, as many as fit with six rows each."""
    charted = [r for key in ("approx_kl", "explained_variance", "entropy") for r in metrics if r.key == key]
    count = min(len(charted), max(0, room) // 8)
    out: list[Line] = []
    for reading in charted[:count]:
        rows = chart(history.metric_picture(reading.key), SIDE - 4, min(9, room // count - 2))
        lines = [[(text, "blue" if role == "line" else ROLE_STYLES[role]) for text, role in row] for row in rows]
        word: Line = [(f"{DOTS[reading.level]} {reading.word}", LEVEL_STYLES[reading.level])]
        out += box(reading.label, lines, SIDE, right=word)
    return out


def metrics_panel(history: RunHistory, metrics: Sequence[MetricReading], width: int, *, one_column: bool) -> list[Line]:
    """Return the PPO metrics: symbol, name, value, curve, normal range, and one word of assessment."""
    inner = width - 4
    if one_column:
        lines = [_metric(history, reading, inner) for reading in metrics]
    else:
        half = (inner - 2) // 2
        rows = (len(metrics) + 1) // 2
        cells = [fit(_metric(history, reading, half), half) for reading in metrics]
        cells += [[(" " * half, "")]] * (rows * 2 - len(cells))
        lines = [[*cells[i], ("  ", ""), *cells[i + rows]] for i in range(rows)]
    return box([("ppo", "bold"), *_health(metrics)], lines, width, right=[("value · course · healthy", "dim")])


def _metric(history: RunHistory, reading: MetricReading, width: int) -> Line:
    style = LEVEL_STYLES[reading.level]
    # mark 2, name 10, value 7, gap, course, gap, range 7, gap, word 4
    course = max(0, min(24, width - 33))
    value_style = "bold" if reading.level in ("ok", "none", "wait") else style
    return [
        (f"{DOTS[reading.level]} ", style),
        (f"{reading.label:<10}", ""),
        (f"{number(reading.value):>7} ", value_style),
        (sparkline(history.metric(reading.key), course), "blue"),
        (f" {reading.healthy:<7} ", "dim"),
        (f"{reading.word:<4}", style),
    ]


def _health(metrics: Sequence[MetricReading]) -> Line:
    odd = out_of_range(metrics)
    if not metrics:
        return []
    if not odd:
        return [("  ● ", "green"), ("all in range", "green")]
    style = LEVEL_STYLES[odd[0].level]
    named = ", ".join(f"{r.label} {r.word}" for r in odd[:2]) + (f" and {len(odd) - 2} more" if len(odd) > 2 else "")
    return [(f"  {DOTS[odd[0].level]} {named}", style)]


def _metrics_line(metrics: Sequence[MetricReading]) -> Line:
    """Return the metrics in one line, for a terminal too low for the panel."""
    out: Line = []
    for reading in metrics:
        style = LEVEL_STYLES[reading.level]
        out += [(f" {reading.label} ", "dim"), (number(reading.value), ""), (f" {reading.word} ", style)]
    return out


def _split_bar(history: RunHistory, width: int) -> Line:
    split = history.time_split()
    edges = [0.0]
    for _, share in split:
        edges.append(edges[-1] + share)
    cells = [round(edge * width) for edge in edges]
    return [
        (PARTS[name][0] * (b - a), PARTS[name][1]) for (name, _), (a, b) in zip(split, pairwise(cells), strict=True)
    ]


def _split_legend(history: RunHistory) -> Line:
    out: Line = []
    for name, share in history.time_split():
        fill, style = PARTS[name]
        out += [("  " if out else "", ""), (f"{fill} ", style), (f"{name} ", ""), (f"{share * 100:.0f}%", "bold")]
    return out


def _split_line(history: RunHistory, width: int) -> Line:
    legend = _split_legend(history)
    bar = min(40, width - 11 - length(legend))
    return [("  time  ", "bold"), *(_split_bar(history, bar) if bar >= 8 else []), ("  ", ""), *legend]


def _run_lines(header: RunHeader, width: int) -> list[Line]:
    """Return environment, implementation and settings, wrapped to the width."""
    lines = [[(text, "")] for note in (header.world_note, header.path_note) for text in wrap(note, width)]
    settings = "  ".join(f"{name} {value}" for name, value in header.settings.items())
    return lines + [[(text, "dim")] for text in wrap(settings, width)]


def _finding_lines(history: RunHistory) -> list[Line]:
    """Return the open findings of the doctor with their remedy, the most serious first."""
    lines: list[Line] = []
    for finding in sorted(history.findings.values(), key=lambda f: (not f.primary, -severity_rank(f.severity))):
        level: Level = "warn" if finding.severity == "warn" else "bad"
        text = f"{DOTS[level]} {finding.rule} {finding.title}, since update {finding.since_update:,}"
        remedy: Line = [(f"   {patch_text(finding.patch)}", "cyan")] if finding.patch else []
        lines.append([(f"{'doctor':>7}  ", "dim"), (text, LEVEL_STYLES[level]), *remedy])
    return lines


def _note_lines(history: RunHistory, width: int, rows: int) -> list[Line]:
    """Return the newest events in order; while there are few, preceded by how the run started."""
    if rows <= 0:
        return []
    lines = _finding_lines(history)[: max(1, rows // 2)]
    room = rows - len(lines)
    for event in list(history.events)[-room:] if room else ():
        times = f"  ×{event.times}" if event.times > 1 else ""
        lines.append([(f"{duration(event.seconds):>7}  ", "dim"), (event.text, ""), (times, "dim")])
    start = [f"{history.header.world_note} · {history.header.path_note}"] if len(lines) < rows else []
    lines = [[(f"{'start':>7}  {text}", "dim")] for text in start] + lines
    return [fit(line, width) for line in lines] + [[("", "")]] * (rows - len(lines))
