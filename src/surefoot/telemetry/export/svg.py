"""Charts as SVG text: lines, bands, bars and points over round ticks; no script.

Inside a page the classes of `style.css` and `sections.css` set the colours; `band_chart` returns a file with its own style.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

Point = tuple[float, float]
Ticks = Sequence[tuple[float, str]]
"""(value, label)"""

# Okabe and Ito's palette, which colour-blind readers can distinguish.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")


@dataclass(frozen=True, slots=True)
class Line:
    """Points joined by straight lines. `style` is a CSS class: "curve", or "reference" for a dashed line."""

    points: Sequence[Point]
    style: str = "curve"


@dataclass(frozen=True, slots=True)
class Dot:
    """A marked point. `style` adds CSS classes to "dot": "hollow", "chosen", "faint"; `title` is its tooltip."""

    x: float
    y: float
    style: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A curve with the range around it; a range of zero width everywhere is not drawn."""

    label: str
    x: Sequence[float]
    middle: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotArea:
    """The plotting area: the ranges of values it shows, its size in pixels and the margins for labels."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int = 460
    height: int = 220
    left: int = 44
    right: int = 20
    top: int = 10
    bottom: int = 26

    def place_x(self, value: float) -> float:
        """Return the pixel column of a value."""
        low, high = self.x
        return self.left + (self.width - self.left - self.right) * (value - low) / ((high - low) or 1.0)

    def place_y(self, value: float) -> float:
        """Return the pixel row of a value; larger values are higher up."""
        low, high = self.y
        return (
            self.height - self.bottom - (self.height - self.top - self.bottom) * (value - low) / ((high - low) or 1.0)
        )

    def points(self, points: Sequence[Point]) -> str:
        """Return points as the attribute of a polyline or polygon."""
        return " ".join(f"{self.place_x(x):.1f},{self.place_y(y):.1f}" for x, y in points)

    def axes(self, x_ticks: Ticks | None = None, y_ticks: Ticks | None = None) -> list[str]:
        """Return horizontal grid lines and the labels of both axes; round ticks by default."""
        x_ticks = round_ticks(*self.x, max(2, self.width // 80)) if x_ticks is None else x_ticks
        y_ticks = round_ticks(*self.y, max(2, self.height // 36)) if y_ticks is None else y_ticks
        parts: list[str] = []
        edge, right = self.height - self.bottom, self.width - self.right
        parts.append(f'<line class="grid" x1="{self.left}" x2="{right}" y1="{edge}" y2="{edge}"/>')
        for value, text in y_ticks:
            y = self.place_y(value)
            parts.append(f'<line class="grid" x1="{self.left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text x="{self.left - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>')
        parts += [
            f'<text x="{self.place_x(value):.1f}" y="{edge + 18}" text-anchor="middle">{escape(text)}</text>'
            for value, text in x_ticks
        ]
        return parts


def line_chart(
    lines: Sequence[Line],
    *,
    dots: Sequence[Dot] = (),
    area: PlotArea,
    x_ticks: Ticks | None = None,
    y_ticks: Ticks | None = None,
) -> str:
    """Return lines, and dots on top of them, over a grid."""
    parts = area.axes(x_ticks, y_ticks)
    parts += [f'<polyline class="{line.style}" points="{area.points(line.points)}"/>' for line in lines]
    for dot in dots:
        title = f"<title>{escape(dot.title)}</title>" if dot.title else ""
        style = f"dot {dot.style}".strip()
        parts.append(
            f'<circle class="{style}" r="3.5" cx="{area.place_x(dot.x):.1f}" cy="{area.place_y(dot.y):.1f}">{title}</circle>'
        )
    return f'<svg viewBox="0 0 {area.width} {area.height}" role="img">{"".join(parts)}</svg>'


def scatter(dots: Sequence[Dot], *, area: PlotArea, x_ticks: Ticks | None = None, y_ticks: Ticks | None = None) -> str:
    return line_chart([], dots=dots, area=area, x_ticks=x_ticks, y_ticks=y_ticks)


def bar_chart(shares: Mapping[str, float], *, width: int = 1080) -> str:
    """Return one horizontal bar per share of 1, in the order of the mapping, with its name and its percentage."""
    label, row = 150, 22
    parts: list[str] = []
    for k, (name, share) in enumerate(shares.items()):
        y, length = row * k, (width - label - 80) * share
        parts.append(f'<text x="{label}" y="{y + 15}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect class="share" x="{label + 10}" y="{y + 4}" width="{length:.1f}" height="14" rx="2"/>')
        parts.append(f'<text x="{label + 18 + length:.1f}" y="{y + 15}">{share:.0%}</text>')
    return f'<svg viewBox="0 0 {width} {row * len(shares) + 6}" role="img">{"".join(parts)}</svg>'


_STANDALONE = ".grid{stroke:#ddd}text{fill:#444}polyline{fill:none;stroke-width:2}polygon{fill-opacity:.2}"


def band_chart(bands: Sequence[Band], *, title: str, x_label: str) -> str:
    """Return an SVG file with one curve per band, the range around it and a legend below."""
    area = PlotArea(
        x=(min(b.x[0] for b in bands), max(b.x[-1] for b in bands)),
        y=(min(min(b.low) for b in bands), max(max(b.high) for b in bands)),
        width=760, height=420, left=70, top=20, bottom=50,
    )  # fmt: skip
    height = area.height + 18 * len(bands)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {area.width} {height}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}">',
        f"<style>{_STANDALONE}</style>",
        f'<rect width="{area.width}" height="{height}" fill="#fff"/>',
        *area.axes(),
        f'<text x="{area.width / 2}" y="{area.height - 12}" text-anchor="middle">{escape(x_label)}</text>',
    ]
    for k, band in enumerate(bands):
        colour = COLOURS[k % len(COLOURS)]
        if any(low != high for low, high in zip(band.low, band.high, strict=True)):
            edge = [*zip(band.x, band.high, strict=True), *reversed([*zip(band.x, band.low, strict=True)])]
            parts.append(f'<polygon points="{area.points(edge)}" fill="{colour}"/>')
        middle = area.points([*zip(band.x, band.middle, strict=True)])
        parts.append(f'<polyline points="{middle}" stroke="{colour}"/>')
        y = area.height + 18 * k
        parts.append(f'<rect x="{area.left}" y="{y - 10}" width="14" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{area.left + 20}" y="{y}">{escape(band.label)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def padded_range(values: Sequence[float], *, pad: float = 0.0) -> tuple[float, float]:
    """Return the smallest and the largest value, widened by a share; never an empty range."""
    low, high = min(values), max(values)
    if high <= low:
        return low - 1.0, high + 1.0
    return low - pad * (high - low), high + pad * (high - low)


def round_ticks(low: float, high: float, count: int) -> list[tuple[float, str]]:
    """Return about `count` multiples of 1, 2 or 5 times a power of ten in the range, with their labels."""
    raw = (high - low) / count
    if raw <= 0 or not math.isfinite(raw):
        return [(low, tick_label(low))] if math.isfinite(low) else []
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s for s in (power, 2 * power, 5 * power, 10 * power) if s >= raw * 0.999)
    # The slack keeps a tick at either end that rounding would push out of the range.
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(k * step, tick_label(k * step)) for k in range(first, last + 1)]


def tick_label(value: float) -> str:
    """Return a number as an axis shows it: at most four digits, k and M for thousands and millions."""
    for size, letter in ((1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"
