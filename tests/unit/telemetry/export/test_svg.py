"""Charts: where values land, which ticks are round, and that a name cannot break out."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from surefoot.telemetry.export.svg import (
    Band,
    Dot,
    Line,
    PlotArea,
    band_chart,
    bar_chart,
    line_chart,
    padded_range,
    round_ticks,
    scatter,
    tick_label,
)

AREA = PlotArea(x=(0, 10), y=(0, 2), width=120, height=120, left=10, right=10, top=10, bottom=10)


def test_corners_of_the_range_are_corners_of_the_plot():
    assert AREA.points([(0, 0), (10, 2), (5, 1)]) == "10.0,110.0 110.0,10.0 60.0,60.0"


def test_a_range_without_width_does_not_divide_by_zero():
    assert PlotArea(x=(3, 3), y=(1, 1)).points([(3, 1)]) == "44.0,194.0"


@pytest.mark.parametrize(
    ("low", "high", "count", "labels"),
    [
        (0, 1, 5, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (0, 376, 4, ["0", "100", "200", "300"]),
        (-30, 432, 5, ["0", "100", "200", "300", "400"]),
        (0, 120_000, 6, ["0", "20k", "40k", "60k", "80k", "100k", "120k"]),
        (2, 2, 5, ["2"]),
    ],
)
def test_ticks_are_round_numbers_inside_the_range(low: float, high: float, count: int, labels: list[str]):
    assert [text for _, text in round_ticks(low, high, count)] == labels


def test_a_range_of_unknown_numbers_has_no_ticks():
    assert round_ticks(float("nan"), 1.0, 4) == []


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (9999, "9999"), (12_500, "12.5k"), (3e6, "3M"), (-2e4, "-20k")])
def test_large_numbers_are_shortened(value: float, text: str):
    assert tick_label(value) == text


def test_equal_values_get_a_range_around_them():
    assert padded_range([2.0, 2.0]) == (1.0, 3.0)
    assert padded_range([0.0, 10.0], pad=0.1) == (-1.0, 11.0)


def test_lines_and_dots_are_drawn_with_their_style_and_tooltip():
    tree = ET.fromstring(
        line_chart([Line([(0, 0), (10, 2)], "reference")], dots=[Dot(5, 1, "hollow", "<5>")], area=AREA)
    )
    line, dot = tree.find("polyline"), tree.find("circle")
    assert line is not None
    assert dot is not None
    assert (line.get("class"), line.get("points")) == ("reference", "10.0,110.0 110.0,10.0")
    assert (dot.get("class"), dot.get("cx"), dot.get("cy"), dot.findtext("title")) == (
        "dot hollow",
        "60.0",
        "60.0",
        "<5>",
    )


def test_a_scatter_has_the_ticks_it_was_given():
    tree = ET.fromstring(scatter([Dot(1, 1)], area=AREA, x_ticks=[(0, "few"), (10, "many")], y_ticks=[]))
    assert [text.text for text in tree.iter("text")] == ["few", "many"]


def test_bars_are_as_long_as_their_shares():
    tree = ET.fromstring(bar_chart({"lr": 0.5, "<idle>": 0.25}, width=1030))
    assert [float(bar.get("width", 0)) for bar in tree.iter("rect")] == [400.0, 200.0]
    assert [text.text for text in tree.iter("text")] == ["lr", "50%", "<idle>", "25%"]


def test_a_band_is_drawn_only_where_it_has_a_width():
    wide = Band(label="a", x=[0, 1], middle=[1, 2], low=[0, 1], high=[2, 3])
    flat = Band(label='"b" <i>', x=[0, 1], middle=[1, 2], low=[1, 2], high=[1, 2])
    tree = ET.fromstring(band_chart([wide, flat], title='"return"', x_label="env steps"))
    names = [node.tag.rpartition("}")[2] for node in tree]
    assert (names.count("polyline"), names.count("polygon")) == (2, 1)
    assert tree.get("aria-label") == '"return"'
    assert [node.text for node in tree][-1] == '"b" <i>'
