"""Data sets of both forms, what a log of decisions comes to, and scales of what is learned from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.decide.evaluation.datasets import read
from surefoot.errors import RecordingError


def test_labels_are_read_from_csv_and_grouped_by_topics(tmp_path: Path):
    (tmp_path / "a.csv").write_text('text,category\n"hi, there",greet_user\nbye,leave?\n')
    data = read(tmp_path)
    assert data.texts == ["hi, there", "bye"]
    assert [data.names[i] for i in data.right] == ["greet_user", "leave?"]
    assert data.descriptions == ["greet user", "leave"]
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"talk": {"description": "small talk", "labels": ["greet_user", "leave?"]}}))
    assert read(tmp_path, "labels", topics).right == [0, 0]
    topics.write_text(json.dumps({"talk": {"description": "small talk", "labels": ["leave?"]}}))
    with pytest.raises(RecordingError, match="every label but 'greet_user'"):
        read(tmp_path, "labels", topics)


def test_candidates_are_read_from_jsonl_and_tools_of_one_name_stay_apart(tmp_path: Path):
    tools = [{"name": "f", "description": "one"}, {"name": "g", "description": "two"}]
    other = [{"name": "f", "description": "another"}, {"name": "g", "description": "two"}]
    rows = [{"text": "x", "tools": tools, "correct": "g"}, {"text": "y", "tools": other, "correct": "f"}]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = read(tmp_path)
    assert data.names == ["f", "g", "f#2"]
    assert (data.right, data.candidates) == ([1, 2], [[0, 1], [2, 1]])


def test_what_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(RecordingError, match="neither queries.jsonl nor any .csv"):
        read(tmp_path)
    for written, told in (
        ("a,b\n1,2\n", "has a, b at its top"),
        ("", "no line at all"),
        ("text,category\n", "no queries"),
    ):
        (tmp_path / "a.csv").write_text(written)
        with pytest.raises(RecordingError, match=told):
            read(tmp_path)
    for written, told in (
        ('{"text": "x", "tools": [], "correct": "f"}', "'f' is not among its tools"),
        ("not json", "line 1 of .* is no object with text"),
        ('{"text": "x"}', "is no object with text, tools"),
        ("", "has no queries"),
    ):
        (tmp_path / "queries.jsonl").write_text(written)
        with pytest.raises(RecordingError, match=told):
            read(tmp_path)


def test_topics_that_cannot_be_read_are_named(tmp_path: Path):
    (tmp_path / "a.csv").write_text("text,category\nhello,greet\n")
    for written in ("{", "[]", '{"a": {"labels": ["greet"]}}'):
        (tmp_path / "t.json").write_text(written)
        with pytest.raises(RecordingError, match="cannot be read as {name: {description, labels}}"):
            read(tmp_path, topics=tmp_path / "t.json")
    with pytest.raises(RecordingError, match=r"FileNotFoundError"):
        read(tmp_path, topics=tmp_path / "none.json")
