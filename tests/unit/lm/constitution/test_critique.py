"""Which revisions count."""

from __future__ import annotations

import pytest

from surefoot.errors import DataError
from surefoot.lm.constitution.critique import SHOTS, Revision, _after_examples, says_something
from surefoot.lm.constitution.principles import Constitution


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


def test_examples_are_earlier_turns_of_the_conversation():
    rows = "".join(f"[question {i}, answer {i}], " for i in range(6))
    text = f"principles: {{calm: {{description: should not shout, examples: [{rows}]}}}}"
    (principle,) = Constitution.parse(text, "x.yaml").principles
    talk = list(_after_examples(principle, "And you?", 3))
    assert [turn["role"] for turn in talk] == ["user", "assistant"] * SHOTS + ["user"]
    assert talk[-1]["content"] == "And you?"
    shown = {(talk[i]["content"], talk[i + 1]["content"]) for i in range(0, 2 * SHOTS, 2)}
    assert len(shown) == SHOTS
    assert shown <= set(principle.examples)
    assert talk == list(_after_examples(principle, "And you?", 3))
    with pytest.raises(DataError, match="examples must be a list of"):
        Constitution.parse("principles: {calm: {description: should not shout, examples: [one]}}", "x.yaml")
