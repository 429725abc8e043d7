"""Boxes of styled text have exact widths, also with wide characters."""

from __future__ import annotations

import pytest

from surefoot.cli.dashboard.text_boxes import Line, box, fit, length, spread, wrap


@pytest.mark.parametrize("width", [0, 1, 3, 4, 7, 20])
def test_a_line_is_cut_or_padded_to_the_width(width: int) -> None:
    assert length(fit([("abc", ""), ("漢字", "bold")], width)) == width  # 漢 and 字 are two cells each


def test_a_cut_line_ends_with_an_ellipsis() -> None:
    assert "".join(text for text, _ in fit([("abcdef", "")], 4)) == "abc…"


def test_every_line_of_a_box_has_its_width_and_rows_pad_it() -> None:
    lines: list[Line] = [[("one", "")], [("a much longer line than the box", "")]]
    drawn = box("title", lines, 16, rows=4)
    assert [length(line) for line in drawn] == [16] * 6


def test_the_right_title_is_left_out_if_there_is_no_space() -> None:
    top = box("title", [], 14, right=[("right", "")])[0]
    assert "right" not in "".join(text for text, _ in top)
    top = box("title", [], 30, right=[("right", "")])[0]
    assert "right" in "".join(text for text, _ in top)


def test_spread_keeps_a_gap_of_two_cells() -> None:
    assert length(spread([("ab", "")], [("cd", "")], 10)) == 10
    assert spread([("ab", "")], [("cd", "")], 5) == [("ab", "")]


def test_words_are_wrapped_and_never_broken() -> None:
    assert wrap("aa bb cccccc d", 5) == ["aa bb", "cccccc", "d"]
