"""Tests of `surefoot.decide.prompts.tasks`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from surefoot.decide.prompts.tasks import CHECKS, TaskRow, TaskScorer, read_task
from surefoot.errors import ConfigError


class Recorder:
    """A model whose likelihood is minus the number of words, and whose reply repeats the prompt."""

    name, likelihoods = "recorder", True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def log_likelihood(self, prompts, answers):
        self.asked += prompts
        return np.array([-float(len(p.split())) for p in prompts])

    def reply(self, prompts):
        self.asked += prompts
        return list(prompts)


@pytest.mark.parametrize(
    ("check", "reply", "answer", "right"),
    [
        ("exact", " Paris. ", "paris", True),
        ("exact", "It is Paris", "paris", False),
        ("contains", "It is **Paris**!", "paris", True),
        ("contains", "parishioner", "paris", False),
        ("regex", "on 2024-02-29", r"\d{4}-\d\d-\d\d", True),
        ("number", "3 apples and 4 pears are 1,007.0 fruits", "1007", True),
        ("number", "no idea", "7", False),
        ("json", '```json\n{"a": 1, "b": 2}\n```', '{"a": 1}', True),
        ("json", '{"a": 2}', '{"a": 1}', False),
        ("json", "not json", "", False),
        ("json", "[1]", "", True),
    ],
)
def test_checks_of_a_reply(check: str, reply: str, answer: str, right: bool):
    assert CHECKS[check](reply, answer) == right


def test_each_version_is_evaluated_once_and_rows_of_one_prompt_are_averaged():
    model = Recorder()
    rows = [TaskRow(prompt="a b", answer="x"), TaskRow(prompt="a b", answer="a", check="contains")]
    scorer = TaskScorer([*rows, TaskRow(prompt="c", answer="y")], model)
    assert scorer.prompts == ["a b", "c"]
    first = scorer.score(["a b", "a b c", "c"], ["a b", "a b", "c"])
    # (-2 + 1) / 2, (-3 + 1) / 2, -1
    assert first.tolist() == [-0.5, -1.0, -1.0]
    assert scorer.evaluations == 5
    scorer.score(["a b", "c"], ["a b", "c"])
    assert scorer.evaluations == 5
    assert len(model.asked) == 5


def test_a_model_without_likelihoods_is_asked_for_replies():
    model = Recorder()
    model.likelihoods = False
    scorer = TaskScorer([TaskRow(prompt="say hi", answer="hi")], model)
    assert scorer.score(["say hi", "say ho"], ["say hi", "say hi"]).tolist() == [1.0, 0.0]


def test_a_prompt_that_is_not_in_the_task_is_named():
    with pytest.raises(ConfigError, match="no row for the prompt 'other'"):
        TaskScorer([TaskRow(prompt="a", answer="b")], Recorder()).score(["x"], ["other"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "rows.jsonl:2 is not JSON"),
        ("[]", 'rows.jsonl:2 has no text in "prompt"'),
        ('{"prompt": "a"}', 'rows.jsonl:2 has no "answer"'),
        ('{"prompt": "a", "answer": "b", "check": "same"}', "known checks: exact, contains, regex, json, number"),
        ('{"prompt": "a", "answer": "(", "check": "regex"}', "does not compile"),
        ('{"prompt": "a", "answer": "x", "check": "number"}', "needs a number"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path, line: str, words: str):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a", "answer": "b"}\n' + line + "\n")
    with pytest.raises(ConfigError) as error:
        read_task(path)
    assert words in str(error.value)


def test_numbers_and_objects_are_answers(tmp_path):
    rows = [{"prompt": "a", "answer": 7, "check": "number"}, {"prompt": "b", "answer": {"x": 1}, "check": "json"}]
    path = tmp_path / "rows.jsonl"
    path.write_text("\ufeff" + "\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    assert [row.answer for row in read_task(path)] == ["7", '{"x": 1}']
    path.write_text("\n")
    with pytest.raises(ConfigError, match="has no rows"):
        read_task(path)
