"""Several groups of runs as one SVG: a middle curve each, and the band that the seeds leave open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from surefoot.train.diagnose.compare_runs import Group

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe and Ito's, which the colour-blind can tell apart."""
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 760, 420, 70, 20, 20, 50


def draw(groups: Sequence[Group], metric: str) -> str:
    """The picture; x is env steps."""
    x_span = min(g.steps[0] for g in groups), max(g.steps[-1] for g in groups)
    y_span = min(g.low.min() for g in groups), max(g.high.max() for g in groups)
    xs, ys = _scale(x_span, _LEFT, _WIDTH - _RIGHT), _scale(y_span, _HEIGHT - _BOTTOM, _TOP)
    height = _HEIGHT + 18 * len(groups)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(metric, quote=True)} over env steps">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for x in np.linspace(*x_span, 5):
        here = xs(np.array([x]))[0]
        out.append(f'<text x="{here:.1f}" y="{_HEIGHT - 30}" text-anchor="middle" fill="#444">{_steps(x)}</text>')
    for y in np.linspace(*y_span, 5):
        here = ys(np.array([y]))[0]
        out.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{here:.1f}" y2="{here:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{_LEFT - 8}" y="{here + 4:.1f}" text-anchor="end" fill="#444">{y:.4g}</text>')
    out.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 12}" text-anchor="middle" fill="#444">env steps</text>')
    for i, g in enumerate(groups):
        colour = COLOURS[i % len(COLOURS)]
        px = xs(g.steps)
        if len(g.runs) > 1:
            edge = _points(np.r_[px, px[::-1]], ys(np.r_[g.high, g.low[::-1]]))
            out.append(f'<polygon points="{edge}" fill="{colour}" fill-opacity="0.2"/>')
        out.append(f'<polyline points="{_points(px, ys(g.middle))}" fill="none" stroke="{colour}" stroke-width="2"/>')
        at = _HEIGHT + 18 * i
        out.append(f'<rect x="{_LEFT}" y="{at - 10}" width="14" height="10" fill="{colour}"/>')
        told = f"{g.label}: IQM {g.summary.iqm:.4g}, n = {g.summary.count}"
        out.append(f'<text x="{_LEFT + 20}" y="{at}">{escape(told)}</text>')
    return "\n".join([*out, "</svg>", ""])


def _scale(span: tuple[float, float], start: float, end: float) -> Callable[[np.ndarray], np.ndarray]:
    low, size = span[0], (span[1] - span[0]) or 1.0
    return lambda values: start + (values - low) / size * (end - start)


def _points(x: np.ndarray, y: np.ndarray) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _steps(x: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if x >= size:
            return f"{x / size:.3g}{letter}"
    return f"{x:.0f}"
