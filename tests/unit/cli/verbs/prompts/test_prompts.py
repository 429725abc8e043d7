"""`surefoot prompts`: text in, better text out."""

from __future__ import annotations

import io
import json
import re

import pytest

from surefoot.cli.main import main
from surefoot.decide.prompts.improve import Improved
from surefoot.decide.prompts.page import prompts_page

PROMPTS = [
    "Write a story about bees.",
    "What is tea?",
    "Review this code for bugs.",
    "Read the table and then draw a chart of it.",
]


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.txt"
    path.write_text("\n".join(PROMPTS) + "\n")
    return path


def test_a_prompt_is_improved_without_any_run(capsys):
    assert main(["prompts", "improve", "Write a story about bees.", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["score"] > told["score_before"]
    assert told["text"].startswith("Write a story about bees.")
    assert all(change["gain"] > 0 or change["tokens"] < 0 for change in told["changes"])


def test_a_prompt_may_come_from_a_pipe(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("What is tea?"))
    assert main(["prompts", "improve"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("score 0.")
    assert "What is tea?" in out


def test_words_are_removed_only_with_allow_cut_and_then_shown(capsys):
    asked = ["prompts", "improve", "Please just really explain to me what tea is made of."]
    assert main(asked) == 0
    assert "- Please" not in capsys.readouterr().out
    assert main([*asked, "--allow-cut"]) == 0
    out = capsys.readouterr().out
    assert "- Please just really explain" in out
    assert "+ Explain to me what tea is made of." in out


def test_a_policy_is_trained_used_and_measured(prompts, tmp_path, capsys):
    runs = ["--runs", str(tmp_path / "runs")]
    quick = [
        "-n",
        "256",
        "--set",
        "envs=4",
        "--set",
        "rollout_steps=16",
        "--set",
        "minibatch_size=32",
        "--display",
        "quiet",
    ]
    assert main(["prompts", "train", "--prompts", str(prompts), "--name", "mine", *quick, *runs]) == 0
    assert main(["prompts", "improve", "Write a poem.", "--run", "mine", "--json", *runs]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["original"] == "Write a poem."
    assert main(["prompts", "eval", "mine", "--json", *runs]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows["prompts"] == 4
    assert set(rows["rows"]) == {"the policy", "at random", "one after the other"}
    assert main(["prompts", "report", "mine", *runs]) == 0
    assert "the policy earns" in capsys.readouterr().out
    page = (tmp_path / "runs/mine/prompts.html").read_text()
    assert re.findall(r'<section id="(\w+)"', page) == [
        "curve",
        "compared",
        "chosen",
        "spread",
        "categories",
        "examples",
    ]
    assert "default-src 'none'" in page
    assert "Write a story about bees." in page


def test_what_prompts_say_cannot_break_out_of_the_page():
    bad = Improved(original="<script>alert(1)</script>", score_before=0.1, score=0.2, reward=0.1)
    page = prompts_page("<b>run</b>", {"the policy": [bad]}, [], token_cost=0.008)
    assert "<script>" not in page
    assert "<b>run" not in page


def test_the_scorer_learns_from_people_first_if_there_are_scores(prompts, tmp_path, capsys):
    scores = tmp_path / "scores.jsonl"
    scores.write_text("\n".join(json.dumps({"prompt": p, "score": 1 + i % 5}) for i, p in enumerate(PROMPTS * 5)))
    quick = [
        "-n",
        "64",
        "--set",
        "envs=4",
        "--set",
        "rollout_steps=16",
        "--set",
        "minibatch_size=32",
        "--display",
        "quiet",
    ]
    args = ["--prompts", str(prompts), "--scores", str(scores), "--runs", str(tmp_path / "runs"), "--name", "mine"]
    assert main(["prompts", "train", *args, *quick]) == 0
    assert "scorer fitted to 15 scores; on 5" in capsys.readouterr().out
    assert (tmp_path / "runs" / "mine" / "scorer.json").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [('{"prompt": 3}', "prompts.jsonl:1 has no text"), ("{", "prompts.jsonl:1 is not JSON"), ("", "has no prompt")],
)
def test_a_bad_row_is_named_by_its_line(tmp_path, capsys, text, words):
    path = tmp_path / "prompts.jsonl"
    path.write_text(text + "\n")
    assert main(["prompts", "train", "--prompts", str(path), "--runs", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err


def test_scores_out_of_range_are_named_by_their_line(prompts, tmp_path, capsys):
    scores = tmp_path / "scores.jsonl"
    scores.write_text('{"prompt": "a", "score": 3}\n{"prompt": "b", "score": 9}\n')
    assert main(["prompts", "train", "--prompts", str(prompts), "--scores", str(scores)]) == 2
    assert "scores.jsonl:2 has score 9; scores must be from 1 to 5" in capsys.readouterr().err
