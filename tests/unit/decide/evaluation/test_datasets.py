"""Tests of `surefoot.decide.evaluation.datasets`."""

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
    with pytest.raises(RecordingError, match="does not list the label 'greet_user'"):
        read(tmp_path, "labels", topics)


def test_candidates_are_read_from_jsonl_and_tools_of_one_name_stay_apart(tmp_path: Path):
    tools = [{"name": "f", "description": "one"}, {"name": "g", "description": "two"}]
    other = [{"name": "f", "description": "another"}, {"name": "g", "description": "two"}]
    rows = [{"text": "x", "tools": tools, "correct": "g"}, {"text": "y", "tools": other, "correct": "f"}]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = read(tmp_path)
    assert data.names == ["f", "g", "f#2"]
    assert (data.right, data.candidates) == ([1, 2], [[0, 1], [2, 1]])


def test_a_byte_order_mark_before_the_header_is_ignored(tmp_path: Path):
    # Excel writes one when a sheet is saved as "CSV UTF-8".
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbftext,category\nhi,greet\n")
    assert read(tmp_path).texts == ["hi"]
    row = {"text": "x", "tools": [{"name": "f", "description": "one"}], "correct": "f"}
    (tmp_path / "queries.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(row).encode())
    assert read(tmp_path).texts == ["x"]


def test_what_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(RecordingError, match="neither queries.jsonl nor any .csv"):
        read(tmp_path)
    for content, message in (
        ("a,b\n1,2\n", "has the columns a, b"),
        ("", "is empty"),
        ("text,category\n", "no queries"),
        ("text,category\nhi,greet\nbye,\n", "line 3 of .* has no category; its text is 'bye'"),
        ("text,category\ncafé,greet\n", "is not UTF-8 .*; save it as UTF-8"),
    ):
        (tmp_path / "a.csv").write_text(content, encoding="latin-1")
        with pytest.raises(RecordingError, match=message):
            read(tmp_path)
    for content, message in (
        ('{"text": "x", "tools": [], "correct": "f"}', "'f' is not among its tools"),
        ("not json", "line 1 of .* must be an object with text"),
        ('{"text": "x"}', "must be an object with text, tools"),
        ("", "has no queries"),
    ):
        (tmp_path / "queries.jsonl").write_text(content)
        with pytest.raises(RecordingError, match=message):
            read(tmp_path)


def test_topics_that_cannot_be_read_are_named(tmp_path: Path):
    (tmp_path / "a.csv").write_text("text,category\nhello,greet\n")
    for content in ("{", "[]", '{"a": {"labels": ["greet"]}}'):
        (tmp_path / "t.json").write_text(content)
        with pytest.raises(RecordingError, match="must be {name: {description, labels}}"):
            read(tmp_path, topics=tmp_path / "t.json")
    with pytest.raises(RecordingError, match=r"FileNotFoundError"):
        read(tmp_path, topics=tmp_path / "none.json")
