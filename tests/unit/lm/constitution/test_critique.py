"""Which revisions count."""

from __future__ import annotations

import pytest

from surefoot.lm.constitution.critique import Revision, says_something


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", False), ("no no", False), ("go go go go go go", False), ("take the bus", True), ("extraordinary", True)],
)
def test_text_needs_some_words_that_do_not_repeat(text, expected):
    assert says_something(text) is expected


@pytest.mark.parametrize(
    ("after", "last", "better"), [(0.0, "take the bus", True), (-1.0, "take the bus", False), (0.0, "", False)]
)
def test_a_revision_must_score_higher_and_have_content(after, last, better):
    revision = Revision("prompt", "first", last, (), -1.0, after)
    assert revision.better is better
    assert revision.to_json()["kept"] is better
