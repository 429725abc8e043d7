"""The classifier of principles: its labelled answers, and a set where one word decides."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from lm_helpers import tiny_encoder

from surefoot.errors import DataError
from surefoot.lm.constitution.classifier import PrincipleClassifier, _threshold, measure, read_labelled
from surefoot.lm.constitution.principles import Constitution, Principle
from surefoot.lm.policy.tiny import make_tiny

TEST_PARTS = ("test", "second_test", "third_test", "fourth_test", "fifth_test")

ROWS = [
    [f"ask {i}", f"{word} zzzz zzzz qqqq", f"{word} aaaa aaaa eeee"]
    for i, word in enumerate(["one", "two", "six", "ten"] * 6)
]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    place = tmp_path_factory.mktemp("labelled")
    rows = "\n".join(f"    - {row}" for row in ROWS)
    fine = "\n".join(f"    - {[ask, f'{good} eeee']}" for ask, _, good in ROWS[:4])
    (place / "rows.yaml").write_text(f"build:\n  plain:\n{rows}\n  fine:\n{fine}\n")
    models = {"model": tiny_encoder(place / "encoder"), "language_model": make_tiny(place / "tiny")}
    return PrincipleClassifier(place / "rows.yaml", **models)


def test_the_shipped_answers_are_labelled_for_the_shipped_principles_and_no_answer_is_in_both_parts():
    build, *tests = (read_labelled(part) for part in ("build", *TEST_PARTS))
    names = {principle.name for principle in Constitution.shipped().principles}
    for test, least in zip(tests, (20, 25, 25, 25, 25), strict=True):
        counts = Counter(answer.breaks for answer in test)
        assert {answer.breaks for answer in build} == set(counts) == names | {None}
        assert min(counts.values()) >= least
        assert {answer.answer for answer in build} & {answer.answer for answer in test} == set()
        assert {answer.prompt for answer in build} & {answer.prompt for answer in test} == set()


def test_breaches_are_found_and_fine_answers_are_not_flagged(classifier):
    plain = Principle("plain", "should be plain")
    breach, fine = (classifier(plain, f"ten {text}") for text in ("zzzz zzzz qqqq", "aaaa aaaa eeee"))
    assert (breach["flagged"], breach["method"], fine["flagged"]) == (True, "classifier", False)
    assert fine["p"] < 0.2 < 0.8 < breach["p"]


def test_answers_that_break_nothing_need_no_counterpart(tmp_path):
    (tmp_path / "x.yaml").write_text("build:\n  fine:\n    - [ask, answer]\n  rude:\n    - [ask, bad, good]\n")
    assert [(a.answer, a.breaks) for a in read_labelled("build", tmp_path / "x.yaml")] == [
        ("answer", None), ("bad", "rude"), ("good", None),
    ]  # fmt: skip


def test_a_fit_with_a_packaged_encoder_is_read_from_the_cache_the_second_time(tmp_path, monkeypatch):
    (tmp_path / "rows.yaml").write_text("build:\n  plain:\n" + "\n".join(f"    - {row}" for row in ROWS))
    model = tiny_encoder(tmp_path / "encoder")
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("surefoot.lm.constitution.classifier.KNOWN", {model: None})
    first = PrincipleClassifier(tmp_path / "rows.yaml", model=model, language_model=None)
    monkeypatch.setattr(PrincipleClassifier, "_fit", None)
    second = PrincipleClassifier(tmp_path / "rows.yaml", model=model, language_model=None)
    plain = Principle("plain", "should be plain")
    assert second(plain, "six zzzz aaaa") == first(plain, "six zzzz aaaa")


def test_the_lowest_threshold_with_the_precision_is_taken():
    # At 2.0 two of two are breaches, at 1.0 three of four, at 0.0 four of six.
    scores = torch.tensor([3.0, 2.0, 1.0, 0.0]), torch.tensor([1.5, 0.5])
    assert _threshold(*scores) == 2.0
    assert _threshold(torch.tensor([0.0, -1.0]), torch.tensor([5.0])) == 0.0


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
