"""`surefoot prompts`: text in, better text out."""

from __future__ import annotations

import io
import json

import pytest

from surefoot.cli.main import main
from surefoot.lm.policy.tiny import make_tiny

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


@pytest.fixture
def tiny(tmp_path):
    """A folder with a tiny random model with characters as tokens."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    make_tiny(folder)
    return folder


def test_without_a_run_the_lint_says_what_is_missing_and_no_word_is_lost(capsys):
    assert main(["prompts", "improve", "Write something nice about bees."]) == 0
    out = capsys.readouterr().out
    assert out.startswith("lint 0.")
    assert "vague: nice, something" in out
    assert "Write something nice about bees." in out
    assert main(["prompts", "improve", "Write something nice about bees.", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"].startswith("Write something nice about bees.")


def test_a_prompt_may_come_from_a_pipe(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("What is tea?"))
    assert main(["prompts", "improve"]) == 0
    assert "What is tea?" in capsys.readouterr().out


def test_a_policy_is_trained_and_used(prompts, tmp_path, capsys):
    runs = ["--runs", str(tmp_path / "runs")]
    assert main(["prompts", "train", "--prompts", str(prompts), "--name", "mine", "-n", "40", *runs]) == 0
    assert main(["prompts", "improve", "Write a poem.", "--run", "mine", "--json", *runs]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["original"] == "Write a poem."


def test_a_task_is_measured_with_a_model(tiny, tmp_path, capsys):
    rows = [{"prompt": f"Which of these is {x}: sun, sea or sand?", "answer": "sea"} for x in ("hot", "wet", "dry")]
    rows.append({"prompt": "What is 3 + 4?", "answer": 7, "check": "number"})
    task = tmp_path / "rows.jsonl"
    task.write_text("\n".join(json.dumps(row) for row in rows))
    runs, model = ["--runs", str(tmp_path / "runs")], ["--task", str(task), "--model", f"lm:{tiny}"]
    assert main(["prompts", "train", *model, "--name", "mine", "-n", "16", *runs]) == 0
    assert "4 prompts, 16 scores by task" in capsys.readouterr().out
    assert main(["prompts", "eval", "mine", *model, "--train-task", str(task), *runs]) == 0
    out = capsys.readouterr().out
    for name in ("the policy", "no change", "at random", "best single", "best of 24", "best sequence"):
        assert name in out
    assert main(["prompts", "improve", "Which is wet: sun or sea?", *model, "-n", "20", *runs]) == 0
    assert "Which is wet: sun or sea?" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["train"], "pass --task FILE or --prompts FILE"),
        (["train", "--task", "rows.jsonl", "--scorer", "lm"], "a task is scored by its answers"),
        (["improve", "a", "--task", "rows.jsonl", "--model", "gpt"], "--model gpt must be lm:MODEL"),
        (["improve", "a", "-n", "0"], "--evaluations is 0"),
    ],
)
def test_options_that_contradict_each_other_are_refused(tmp_path, monkeypatch, capsys, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"prompt": "a", "answer": "b"}\n')
    assert main(["prompts", *options]) == 64
    assert words in capsys.readouterr().err


def test_the_scorer_learns_from_people_first_if_there_are_scores(prompts, tmp_path, capsys):
    scores = tmp_path / "scores.jsonl"
    scores.write_text("\n".join(json.dumps({"prompt": p, "score": 1 + i % 5}) for i, p in enumerate(PROMPTS * 5)))
    args = ["--prompts", str(prompts), "--scores", str(scores), "--runs", str(tmp_path / "runs"), "--name", "mine"]
    assert main(["prompts", "train", *args, "-n", "20"]) == 0
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
