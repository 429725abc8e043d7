"""Charts in a terminal: braille characters have 2 x 4 dots each, so 80 columns draw 160 points.

A chart is a list of rows of (text, role) runs; the caller maps roles to colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from surefoot.cli.dashboard.numbers import compact, number

Role = Literal["line", "band", "mark", "best", "target", "axis", "label"]
Run = tuple[str, Role]
"""A piece of text with one role."""

Floats = Sequence[float] | np.ndarray

SPARKS = " ▁▂▃▄▅▆▇█"
# Bit of the code point U+2800 + bits for the dot at [row, column] of a cell (Unicode block Braille Patterns).
BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartData:
    """Data of a chart. The four arrays are [P], x ascending; NaN means unknown."""

    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    x_start: float
    x_end: float
    """Edges of the chart; points outside are drawn on the edge."""
    marks: tuple[tuple[float, float], ...] = ()
    """Points drawn as diamonds; the value of the highest is written beside it."""
    target: float | None = None


def sparkline(values: Floats, width: int) -> str:
    """Return one row of eighth blocks from the smallest value to the largest; a constant is at the bottom."""
    y = np.asarray(values, dtype=float)
    y = y[np.isfinite(y)]
    if y.size == 0 or width < 1:
        return " " * max(0, width)
    if y.size > width:
        edges = np.linspace(0, y.size, width + 1).astype(int)
        y = np.add.reduceat(y, edges[:-1]) / np.diff(edges)
    low, extent = float(y.min()), float(y.max() - y.min())
    # Without this, rounding noise of a constant would be drawn as full-height waves.
    if extent <= 1e-4 * abs(low) or extent == 0:
        return (SPARKS[1] * y.size).rjust(width)
    levels = 1 + np.rint((y - low) / extent * 7).astype(int)
    return "".join(SPARKS[i] for i in levels).rjust(width)


def chart(picture: ChartData, width: int, height: int) -> list[list[Run]]:
    """Return `height` rows of `width` cells: y labels at the left, the x axis in the last row."""
    rows = max(1, height - 1)
    bottom, top = _extent(picture)
    ticks = _ticks(bottom, top, max(3, rows // 3))
    gutter = max((len(_plain(t)) for t in ticks), default=1) + 2
    columns = max(2, width - gutter)
    x_range = (picture.x_start, max(picture.x_end, picture.x_start + 1.0))

    grid = _cells(picture, columns, rows, x_range, (bottom, top))
    labels = {_cell_row(t, bottom, top, rows): _plain(t) for t in ticks}
    out: list[list[Run]] = []
    for r in range(rows):
        label = labels.get(r)
        edge = "┤" if label else "│"
        left: Run = (f"{label or '':>{gutter - 2}} {edge}", "axis")
        out.append([left, *grid.runs(r)])
    out.append([(_x_axis(x_range, gutter, columns), "axis")])
    return out


def _cells(
    picture: ChartData, columns: int, rows: int, x_range: tuple[float, float], y_range: tuple[float, float]
) -> Grid:
    """Return the plot area, drawn in the order shading, target, line, diamonds."""
    dots = columns * 2
    (start, end), (bottom, top) = x_range, y_range
    line = _line(_columns(picture.x, picture.y, start, end, dots), bottom, top, rows * 4)
    low = _columns(picture.x, picture.low, start, end, dots, "lowest")
    high = _columns(picture.x, picture.high, start, end, dots, "highest")
    band = _band(low, high, bottom, top, rows * 4)

    grid = Grid(_braille(band), [["band"] * columns for _ in range(rows)])
    strokes = _braille(line)
    target_row = -1
    if picture.target is not None:
        target_row = _cell_row(picture.target, bottom, top, rows)
        grid.write(target_row, 0, "╌" * columns, "target")
    for r, row in enumerate(strokes):
        for c, char in enumerate(row):
            if char != " ":
                grid.cells[r][c], grid.roles[r][c] = char, "line"
    places = [(y, _cell_row(y, bottom, top, rows), _cell_column(x, start, end, columns)) for x, y in picture.marks]
    for _, r, c in places:
        grid.write(r, c, "◆", "mark")
    if picture.target is not None:
        label = f" target {number(picture.target)} "
        grid.write_where_free(target_row, (2, columns - len(label) - 2), label, "label")
    if places:
        best, r, c = max(places, key=lambda place: place[0])
        label = f" {number(best)} "
        grid.write_where_free(r, (c - len(label), c + 1), label, "best")
        grid.write(r, c, "◆", "best")
    return grid


@dataclass(frozen=True, slots=True)
class Grid:
    """Characters and their roles, both [rows][columns]."""

    cells: list[list[str]]
    roles: list[list[Role]]

    def write(self, row: int, column: int, text: str, role: Role) -> None:
        end = column + len(text)
        self.cells[row][column:end] = list(text)
        roles: list[Role] = [role] * len(text)
        self.roles[row][column:end] = roles

    def write_where_free(self, row: int, columns: Iterable[int], text: str, role: Role) -> None:
        """Write at the first of the columns where the text fits and covers only shading; otherwise not at all."""
        for column in columns:
            behind = self.roles[row][max(0, column) : column + len(text)]
            if column >= 0 and len(behind) == len(text) and not {"line", "mark", "best", "label"} & set(behind):
                self.write(row, column, text, role)
                return

    def runs(self, row: int) -> list[Run]:
        cells, roles = self.cells[row], self.roles[row]
        out: list[Run] = []
        start = 0
        for c in range(1, len(cells) + 1):
            if c == len(cells) or roles[c] != roles[start]:
                out.append(("".join(cells[start:c]), roles[start]))
                start = c
        return out


def _columns(
    x: np.ndarray,
    y: np.ndarray,
    start: float,
    end: float,
    dots: int,
    keep: Literal["mean", "lowest", "highest"] = "mean",
) -> np.ndarray:
    """Return [dots], one value per dot column from the points in it, interpolated linearly in between."""
    out = np.full(dots, np.nan)
    known = np.isfinite(y)
    x, y = x[known], y[known]
    if x.size == 0:
        return out
    column = np.clip(((x - start) / (end - start) * (dots - 1)).round().astype(int), 0, dots - 1)
    if keep == "mean":
        counts = np.bincount(column, minlength=dots)
        with np.errstate(invalid="ignore"):
            out = np.bincount(column, weights=y, minlength=dots) / counts
    elif keep == "lowest":
        np.fmin.at(out, column, y)
    else:
        np.fmax.at(out, column, y)
    filled = np.flatnonzero(np.isfinite(out))
    between = np.arange(int(filled[0]), int(filled[-1]) + 1)
    out[between] = np.interp(between, filled, out[filled])
    return out


def _rows(values: np.ndarray, bottom: float, top: float, dots: int) -> np.ndarray:
    """Return the dot row of each value, 0 at the top; NaN gives 0 and must be masked by the caller."""
    share = np.full(values.shape, 0.5) if top <= bottom else (top - values) / (top - bottom)
    return np.clip(np.nan_to_num(share) * (dots - 1), 0, dots - 1).round().astype(int)


def _line(values: np.ndarray, bottom: float, top: float, dots: int) -> np.ndarray:
    """Return [dots, columns] bool; each column reaches half-way to its neighbours, so steep lines stay connected."""
    known = np.isfinite(values)
    r = _rows(values, bottom, top, dots)
    half = (r[:-1] + r[1:]) // 2
    both = known[:-1] & known[1:]
    to_right = np.append(np.where(both, half, r[:-1]), r[-1])
    to_left = np.append(r[0], np.where(both, half, r[1:]))
    first = np.minimum(r, np.minimum(to_left, to_right))
    last = np.maximum(r, np.maximum(to_left, to_right))
    grid = np.arange(dots)[:, None]
    return (grid >= first) & (grid <= last) & known


def _band(low: np.ndarray, high: np.ndarray, bottom: float, top: float, dots: int) -> np.ndarray:
    """Return [dots, columns] bool with one dot in four between low and high, so the line stands out without colours."""
    known = np.isfinite(low) & np.isfinite(high)
    first, last = _rows(high, bottom, top, dots), _rows(low, bottom, top, dots)
    grid, column = np.arange(dots)[:, None], np.arange(low.size)
    return (grid >= first) & (grid <= last) & known & (column % 2 == 0) & ((grid + column // 2) % 2 == 0)


def _braille(dots: np.ndarray) -> list[list[str]]:
    """Return rows of characters for [4·rows, 2·columns] bool; an empty cell is a space."""
    rows, columns = dots.shape[0] // 4, dots.shape[1] // 2
    cells = dots.reshape(rows, 4, columns, 2)
    codes = (cells * BITS[:, None, :]).sum(axis=(1, 3))
    return [[chr(0x2800 + code) if code else " " for code in row] for row in codes.tolist()]


def _extent(picture: ChartData) -> tuple[float, float]:
    """Return the lowest and highest value that must be visible, with a margin of 4 %."""
    extra = [y for _, y in picture.marks] + ([] if picture.target is None else [picture.target])
    every = np.concatenate([picture.y, picture.low, picture.high, np.asarray(extra, dtype=float)])
    every = every[np.isfinite(every)]
    if every.size == 0:
        return 0.0, 1.0
    bottom, top = float(every.min()), float(every.max())
    margin = (top - bottom) * 0.04 or max(1.0, abs(top) * 0.1)
    return bottom - margin, top + margin


def _ticks(bottom: float, top: float, most: int) -> list[float]:
    """Return at most `most` round values inside the range, 1, 2 or 5 times a power of ten apart."""
    rough = (top - bottom) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough), 10 * power)
    first = math.ceil(bottom / step)
    last = math.floor(top / step)
    return [i * step for i in range(first, last + 1)]


def _plain(value: float) -> str:
    return f"{value:,.6g}"


def _cell_row(value: float, bottom: float, top: float, rows: int) -> int:
    share = (top - value) / (top - bottom)
    return min(rows - 1, max(0, int(share * rows)))


def _cell_column(x: float, start: float, end: float, columns: int) -> int:
    return min(columns - 1, max(0, int((x - start) / (end - start) * columns)))


def _x_axis(x_range: tuple[float, float], gutter: int, columns: int) -> str:
    start, end = x_range
    line = ["─"] * columns
    for tick in _ticks(start, end, max(3, columns // 14)):
        text = f" {compact(tick)} "
        left = int((tick - start) / (end - start) * columns) - len(text) // 2
        left = min(max(0, left), columns - len(text))
        if left >= 0 and "".join(line[left : left + len(text)]).strip("─") == "":
            line[left : left + len(text)] = list(text)
    name = " steps "
    if columns > 40 and "".join(line[-len(name) :]).strip("─") == "":
        line[-len(name) :] = list(name)
    return " " * (gutter - 1) + "╰" + "".join(line)
