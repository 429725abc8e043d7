"""Tests of `surefoot.decide.prompts.runs`."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.decide.prompts.examples import Examples
from surefoot.decide.prompts.policy import PromptConfig, PromptPolicy
from surefoot.decide.prompts.runs import PromptRun, read_prompts, read_scores
from surefoot.decide.prompts.scorers import RidgeScorer
from surefoot.decide.prompts.tasks import TaskRow
from surefoot.errors import ConfigError, RunError
from surefoot.train.rundir.rundir import RunDir, find_run

PROMPT = "Which of these is heavy: iron, air or wood?"


def test_a_run_is_saved_and_loaded_with_its_policy_and_scorer(tmp_path: Path):
    scorer = RidgeScorer(strength=2.0)
    scorer.fit(["a b", "c d", "e f", "g h"], [0.1, 0.4, 0.6, 0.9])
    examples = Examples([TaskRow(prompt=PROMPT, answer="iron")])
    policy = PromptPolicy(PromptConfig(max_steps=2, max_tokens=30), seed=4, examples=examples)
    for _ in range(20):
        policy.learn(PROMPT, [], "answer-cue", 1.0)
        policy.learn(PROMPT, [], "answer-form", -1.0)
    run = PromptRun(
        policy=policy,
        prompts=("Why?", "Schön"),
        curve=[(10, 0.5)],
        evaluations=10,
        scorer=scorer,
        measured="a test",
    )
    run.save(RunDir(tmp_path))
    loaded = PromptRun.load(find_run(tmp_path, tmp_path))
    assert (loaded.prompts, loaded.curve, loaded.measured) == (run.prompts, run.curve, run.measured)
    assert loaded.policy.config == policy.config
    assert loaded.policy.examples.rows == examples.rows
    assert loaded.policy.steps(PROMPT) == policy.steps(PROMPT)
    assert loaded.policy.steps(PROMPT)[0][0] == "answer-cue"
    assert isinstance(loaded.scorer, RidgeScorer)
    assert loaded.scorer.weights.tolist() == scorer.weights.tolist()


def test_other_directories_are_refused(tmp_path: Path):
    with pytest.raises(RunError, match=r"no prompts\.json"):
        PromptRun.load(RunDir(tmp_path))
    (tmp_path / "prompts.json").write_text('{"format": 1}')
    with pytest.raises(RunError, match="earlier version"):
        PromptRun.load(RunDir(tmp_path))


def test_prompts_are_read_from_text_and_json_lines(tmp_path: Path):
    text, lines = tmp_path / "p.txt", tmp_path / "p.jsonl"
    text.write_text("one\n\n two \n")
    lines.write_text('{"prompt": "one"}\n{"text": "two"}\n"three"\n')
    assert read_prompts(text) == ["one", "two"]
    assert read_prompts(lines) == ["one", "two", "three"]
    lines.write_text('{"prompt": "one"}\n{"prompt": 7}\n')
    with pytest.raises(ConfigError, match=r"p\.jsonl:2 has no text"):
        read_prompts(lines)
    text.write_text("\n")
    with pytest.raises(ConfigError, match="has no prompt"):
        read_prompts(text)


def test_scores_of_1_to_5_become_0_to_1(tmp_path: Path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"prompt": "a", "score": 1}\n{"prompt": "b", "score": 4}\n')
    assert read_scores(path) == (["a", "b"], [0.0, 0.75])
    path.write_text('{"prompt": "a", "score": 9}\n')
    with pytest.raises(ConfigError, match=r"s\.jsonl:1 has score 9"):
        read_scores(path)
