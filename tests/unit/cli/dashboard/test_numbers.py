import math

import pytest

from surefoot.cli.dashboard.numbers import compact, duration, number


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (0.00812, "0.0081"),
        (0.0123, "0.012"),
        (0.62, "0.620"),
        (1.5, "1.50"),
        (187.34, "187.3"),
        (4567.8, "4,568"),
        (12288, "12,288"),
        (1.5e7, "1.5e7"),
        (0.0000123, "1.2e-5"),
        (-0.123, "-0.123"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
    ],
)
def test_a_number_is_short_and_plain(value: float, shown: str):
    assert number(value) == shown


@pytest.mark.parametrize("power", range(-12, 13))
@pytest.mark.parametrize("digits", [1.0, 4.56789, 9.94999, 9.9951, 9.99999])
def test_a_number_never_outgrows_its_column(power: int, digits: float):
    value = digits * 10.0**power
    assert len(number(value)) <= 6
    assert len(number(-value)) <= 7
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=0.1)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(8, "0:08"), (59.6, "1:00"), (760, "12:40"), (11100, "3:05:00"), (2 * 86400 + 3 * 3600 + 600, "2d 03:10")],
)
def test_a_duration_reads_like_a_clock(seconds: float, shown: str):
    assert duration(seconds) == shown


@pytest.mark.parametrize("seconds", [math.inf, math.nan, -1])
def test_a_duration_nobody_knows_is_a_dash(seconds: float):
    assert duration(seconds) == "-:--"


def test_counts_on_an_axis_have_units():
    assert [compact(n) for n in (0, 512, 4100, 50_000, 1_200_000)] == ["0", "512", "4.1k", "50k", "1.2M"]
