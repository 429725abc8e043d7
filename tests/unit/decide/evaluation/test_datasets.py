"""Data sets of both forms, what a log of decisions comes to, and scales of what is learned from it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from surefoot.decide.evaluation.datasets import read
from surefoot.decide.evaluation.page import page_of
from surefoot.decide.evaluation.summary import as_text, matrix, summary_of
from surefoot.decide.policy.calibration import Calibration
from surefoot.decide.policy.experience_log import Log
from surefoot.decide.policy.outcome_model import Scene
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


def row(chosen: str, right: str, confidence: float = 0.8) -> dict[str, object]:
    reward = float(chosen == right)
    return {
        "chosen": chosen,
        "right": right,
        "nearest": "a",
        "reward": reward,
        "confidence": confidence,
        "probability": 1.0,
    }


def test_a_summary_by_hand():
    found = summary_of([row("a", "a"), row("a", "b"), row("b", "b"), row("a", "b")], marks=(2, 100))
    assert (found["success"], found["regret"], found["nearest"]) == (0.5, 2.0, 0.25)
    assert found["marks"] == {"2": 0.5}
    assert found["tools"][0] == {"name": "a", "chosen": 3, "success": pytest.approx(1 / 3), "right": 1}
    assert found["confusion"] == [{"right": "b", "chosen": "a", "count": 2}]
    assert found["calibration_error"] == pytest.approx(0.3)
    assert "2 × a where b was right" in as_text(found)
    assert found["regret_curve"] == [(0, 0.0), (1, 0.0), (2, 1.0), (3, 1.0), (4, 2.0)]
    assert found["matrix"] == {"names": ["b", "a"], "counts": [[1, 2], [0, 1]]}


def test_less_wanted_options_are_others_in_the_matrix():
    assert matrix([row("a", "a"), row("c", "a"), row("b", "b")], most=1) == {
        "names": ["a", "others"],
        "counts": [[1, 1], [0, 1]],
    }


def test_a_page_without_known_answers_says_so():
    rows = [{"chosen": "a", "reward": 0.7, "probability": 0.9, "confidence": 0.5}] * 3
    written = page_of(summary_of(rows), "a run")
    assert "nobody said which option would have been right" in written
    assert "Confusion" not in written


def test_a_calibration_curve_never_falls():
    made = Calibration()
    for said, seen in ((0.1, 1.0), (0.5, 0.0), (0.9, 1.0)) * 50:
        made.add(said, seen)
    curve = made.curve()
    assert (np.diff(curve[:, 1]) >= -1e-12).all()
    assert made(0.3) == pytest.approx(0.5, abs=0.1), "pooled: .1 said too little and .5 too much"


def test_a_full_log_writes_over_its_oldest_and_comes_back_the_same():
    log = Log(2, capacity=3)
    for i in range(5):
        k = 2 + i % 2
        scene = Scene(x=np.array([i, 1.0], np.float32), option=np.arange(k), cosine=np.zeros(k, np.float32))
        log.append(scene, 1, 0.5, float(i))
    assert len(log) == 3
    assert log.latest(2).reward.tolist() == [3.0, 4.0]
    again = Log(2, capacity=3)
    again.set_state(log.state())
    assert again.latest(3).reward.tolist() == [2.0, 3.0, 4.0]
    assert again.latest(3).valid.tolist() == [[True, True, False], [True, True, True], [True, True, False]]
    picked = again.sample(3, np.random.default_rng(0))
    assert sorted(picked.reward) == [2.0, 3.0, 4.0]
