"""The classifier of principles: its labelled answers, and a set where one word decides."""

from __future__ import annotations

import pytest
from lm_helpers import tiny_encoder

from surefoot.errors import DataError
from surefoot.lm.constitution.classifier import PrincipleClassifier, measure, read_labelled
from surefoot.lm.constitution.principles import Constitution, Principle

ROWS = [
    [f"ask {i}", f"{word} zzzz zzzz qqqq", f"{word} aaaa aaaa eeee"]
    for i, word in enumerate(["one", "two", "six", "ten"] * 6)
]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    place = tmp_path_factory.mktemp("labelled")
    rows = "\n".join(f"    - {row}" for row in ROWS)
    (place / "rows.yaml").write_text(f"build:\n  plain:\n{rows}\n")
    return PrincipleClassifier(place / "rows.yaml", model=tiny_encoder(place / "encoder"))


def test_the_shipped_answers_are_labelled_for_the_shipped_principles_and_no_answer_is_in_both_parts():
    build, test = read_labelled("build"), read_labelled("test")
    names = {principle.name for principle in Constitution.shipped().principles}
    assert {answer.breaks for answer in build} == {answer.breaks for answer in test} == names | {None}
    assert len(test) >= 96
    assert {answer.answer for answer in build} & {answer.answer for answer in test} == set()
    assert {answer.prompt for answer in build} & {answer.prompt for answer in test} == set()


def test_breaches_are_found_and_fine_answers_are_not_flagged(classifier):
    plain = Principle("plain", "should be plain")
    assert classifier(plain, "ten zzzz zzzz qqqq") == {"flagged": True, "method": "classifier", "p": 1.0}
    assert not classifier(plain, "ten aaaa aaaa eeee")["flagged"]


def test_a_principle_without_labelled_answers_is_judged_by_its_signs(classifier):
    assert classifier(Principle("other", "should be other"), "ten zzzz")["method"] == "rules"


def test_precision_and_recall_are_counted(classifier):
    answers = read_labelled("build", None)[:0]
    assert measure(classifier, [*answers, *_labelled()])["plain"] == {"precision": 1.0, "recall": 1.0, "breaches": 1.0}


def _labelled():
    from surefoot.lm.constitution.classifier import LabelledAnswer

    return [LabelledAnswer("", "two zzzz zzzz qqqq", "plain"), LabelledAnswer("", "two aaaa aaaa eeee", None)]


def test_a_file_of_another_form_is_one_sentence(tmp_path):
    (tmp_path / "x.yaml").write_text("build: [1, 2]\n")
    with pytest.raises(DataError, match="x.yaml must have `build:"):
        read_labelled("build", tmp_path / "x.yaml")
    with pytest.raises(DataError, match="cannot read labelled answers"):
        read_labelled("build", tmp_path / "none.yaml")
