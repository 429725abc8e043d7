"""Short texts of numbers, durations and counts, with bounded widths."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """Return two to four digits in at most 6 characters, 7 with a minus sign: 0.0081, 1.2e-5, 0.62, 187.3, 12,288, 1.5e7."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    size = abs(value)
    if size == 0:
        return "0"
    if size < 9.95e-4 or size >= 99_999.5:
        digits, exponent = f"{value:.1e}".split("e")
        if int(exponent) < -9:
            digits, exponent = f"{value:.0e}".split("e")
        return f"{digits}e{int(exponent)}"
    if size < 9.95e-3:
        return f"{value:.4f}"
    if size < 0.9995:
        return f"{value:.3f}"
    if size < 9.995:
        return f"{value:.2f}"
    if size < 999.95:
        return f"{value:.1f}"
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """Return 0:08, 12:40, 3:05:00 or 2d 03:10; "-:--" if it is unknown."""
    if not math.isfinite(seconds) or seconds < 0:
        return "-:--"
    hours, seconds = divmod(round(seconds), 3600)
    if hours >= 24:
        return f"{hours // 24}d {hours % 24:02}:{seconds // 60:02}"
    if hours:
        return f"{hours}:{seconds // 60:02}:{seconds % 60:02}"
    return f"{seconds // 60}:{seconds % 60:02}"


def compact(value: float) -> str:
    """Return a count for an axis: 0, 512, 4.1k, 50k, 1.2M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
