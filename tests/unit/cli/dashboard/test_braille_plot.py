import math
import unicodedata

import numpy as np
import pytest

from surefoot.cli.dashboard.braille_plot import ChartData, _braille, _columns, _line, chart, sparkline

# Dot numbers of a braille cell by (row, column), from the Unicode standard.
DOT = {"1": (0, 0), "2": (1, 0), "3": (2, 0), "4": (0, 1), "5": (1, 1), "6": (2, 1), "7": (3, 0), "8": (3, 1)}


def dots(rows: list[str]) -> set[tuple[int, int]]:
    """(row, column) of every dot, read from the characters' Unicode names."""
    found: set[tuple[int, int]] = set()
    for r, row in enumerate(rows):
        for c, char in enumerate(row):
            if char != " ":
                numbers = unicodedata.name(char).removeprefix("BRAILLE PATTERN DOTS-")
                found |= {(4 * r + DOT[n][0], 2 * c + DOT[n][1]) for n in numbers}
    return found


def curve(values: list[float] | np.ndarray, width: int, height: int) -> list[str]:
    """`height` strings of `width` characters with one line through all values, as `chart` draws it."""
    y = np.asarray(values, dtype=float)
    columns = _columns(np.arange(y.size, dtype=float), y, 0.0, max(1.0, y.size - 1.0), width * 2)
    known = columns[np.isfinite(columns)]
    if known.size == 0:
        return [" " * width] * height
    return ["".join(row) for row in _braille(_line(columns, float(known.min()), float(known.max()), height * 4))]


def picture(**changes: object) -> ChartData:
    x = np.arange(0.0, 101.0, 10.0)
    nothing = np.full_like(x, np.nan)
    parts: dict[str, object] = {"x": x, "y": x.copy(), "low": nothing, "high": nothing, "x_start": 0.0, "x_end": 100.0}
    return ChartData(**(parts | changes))  # type: ignore[arg-type]


def text(rows: list[list[tuple[str, str]]]) -> list[str]:
    return ["".join(t for t, _ in row) for row in rows]


def test_a_curve_has_the_asked_size():
    rows = curve([1, 3, 2], 17, 5)
    assert len(rows) == 5
    assert {len(row) for row in rows} == {17}


def test_a_rising_curve_goes_from_the_lower_left_to_the_upper_right_dot():
    found = dots(curve(range(50), 10, 4))
    assert (15, 0) in found
    assert (0, 19) in found
    assert (0, 0) not in found


def test_a_steep_curve_stays_connected():
    found = dots(curve([0, 1, 0, 1, 0.5], 9, 6))
    for column in range(17):
        here = [r for r, c in found if c == column]
        there = [r for r, c in found if c == column + 1]
        assert min(abs(a - b) for a in here for b in there) <= 1


def test_a_constant_curve_is_one_straight_row_of_dots():
    found = dots(curve([7.0] * 5, 6, 3))
    assert len({r for r, _ in found}) == 1
    assert {c for _, c in found} == set(range(12))


def test_a_gap_is_bridged_by_a_straight_line():
    assert curve([0, math.nan, math.inf, 3], 8, 3) == curve([0, 1, 2, 3], 8, 3)


@pytest.mark.parametrize("values", [[], [math.nan, math.inf]])
def test_a_curve_of_nothing_is_blank(values: list[float]):
    assert curve(values, 4, 2) == ["    ", "    "]


def test_eight_rising_values_are_the_eight_blocks():
    assert sparkline(range(8), 8) == "▁▂▃▄▅▆▇█"


def test_a_sparkline_averages_what_does_not_fit():
    assert sparkline([0, 0, 7, 7], 2) == "▁█"
    assert sparkline([0, 14, 7, 7, 0, 0], 3) == "██▁"


def test_a_sparkline_with_few_values_keeps_to_the_right():
    assert sparkline([0, 1], 5) == "   ▁█"


def test_a_sparkline_skips_what_is_not_finite():
    assert sparkline([0, math.nan, 1, math.inf], 2) == "▁█"
    assert sparkline([math.nan], 3) == "   "


def test_rounding_noise_is_no_shape():
    assert sparkline([1.0, 1.0 + 1e-9, 1.0], 3) == "▁▁▁"


@pytest.mark.parametrize(("width", "height"), [(20, 4), (76, 12), (120, 33)])
def test_a_chart_fills_its_rectangle(width: int, height: int):
    rows = text(chart(picture(marks=((50.0, 80.0),), target=90.0), width, height))
    assert len(rows) == height
    assert {len(row) for row in rows} == {width}


def test_the_axis_names_round_values_in_their_rows():
    rows = text(chart(picture(), 60, 21))
    labels = {row.split("┤")[0].strip(): i for i, row in enumerate(rows) if "┤" in row}
    assert set(labels) == {"0", "20", "40", "60", "80", "100"}
    assert labels["100"] == 0
    # 0 to 100 and 4 % of air on each side over 20 rows: 50 would be at the middle.
    assert labels["60"] < 10 <= labels["40"]


def test_the_target_is_a_dashed_row_with_its_value():
    rows = text(chart(picture(target=200.0), 60, 12))
    assert "target 200.0" in rows[0]
    assert "╌╌╌" in rows[0]
    assert not any("╌" in row for row in rows[1:])


def test_the_label_of_the_target_does_not_cut_the_line():
    high = picture(y=np.full(11, 100.0), target=100.0)
    with_label = chart(high, 60, 12)
    row = next(row for row in with_label if any(role == "line" for _, role in row))
    assert all(role in ("line", "axis") for _, role in row)


def test_the_best_evaluation_carries_its_value():
    rows = chart(picture(marks=((20.0, 90.0), (80.0, 40.0))), 60, 12)
    runs = [run for row in rows for run in row]
    assert ("◆", "mark") in runs
    best = next(t for t, role in runs if role == "best")
    assert best.strip() in ("90.0 ◆", "◆ 90.0")


def test_shading_lies_between_lowest_and_highest():
    x = np.arange(0.0, 101.0, 10.0)
    shaded = picture(y=np.full_like(x, 50.0), low=np.full_like(x, 40.0), high=np.full_like(x, 60.0), target=100.0)
    rows = chart(
        picture(**{f: getattr(shaded, f) for f in ("y", "low", "high")}, marks=((0.0, 0.0), (100.0, 100.0))), 60, 28
    )
    with_band = [r for r, row in enumerate(rows) if any(role == "band" and t.strip() for t, role in row)]
    # 27 rows over -4 … 104: a row is 4 high, so 60 lies in row 11 and 40 in row 16.
    assert with_band
    assert set(with_band) <= set(range(11, 17))


def test_a_chart_of_nothing_is_an_empty_frame():
    nothing = np.empty(0)
    rows = text(chart(ChartData(x=nothing, y=nothing, low=nothing, high=nothing, x_start=0, x_end=1), 30, 6))
    assert len(rows) == 6
    assert not any(0x2800 < ord(char) <= 0x28FF for row in rows for char in row)
