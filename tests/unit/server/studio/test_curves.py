"""The metrics of updates for the page."""

import math

import pytest

from surefoot.server.studio.curves import MOST, CurveBook, rounded


def test_curves_of_any_length_stay_short_and_whole() -> None:
    book = CurveBook()
    for n in range(1, 3 * MOST):
        book.add({"env_steps": n, "entropy": float("nan") if n == 1 else 0.5, "return": "x", "lr": 0.1})
    rows = book.to_json()
    assert len(rows) <= MOST
    assert rows[-1]["env_steps"] >= 3 * MOST - 4
    assert rows[0]["env_steps"] < 20
    assert book.take()[-1] == {"env_steps": 3 * MOST - 1, "entropy": 0.5}, "only what the page draws"
    assert book.take() == []


@pytest.mark.parametrize(
    ("value", "shown"), [(1 / 3, 0.333333), (math.inf, None), (math.nan, None), (None, None), (12345678, 12345678)]
)
def test_numbers_are_rounded_for_the_page(value, shown):
    assert rounded(value) == shown
