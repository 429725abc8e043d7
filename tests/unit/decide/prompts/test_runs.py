"""Tests of `surefoot.decide.prompts.runs`."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.decide.prompts.runs import PromptTask, read_prompts, read_scores
from surefoot.decide.prompts.scorers import CallableScorer, RidgeScorer
from surefoot.decide.prompts.world import PromptConfig
from surefoot.errors import ConfigError, RunError


def test_a_task_is_saved_and_loaded_with_its_scorer(tmp_path: Path):
    scorer = RidgeScorer(strength=2.0)
    scorer.fit(["a b", "c d", "e f", "g h"], [0.1, 0.4, 0.6, 0.9])
    task = PromptTask(
        prompts=("Why?", "Schön"), encoder="hashing-1-16", config=PromptConfig(max_steps=2), scorer=scorer
    )
    task.save(tmp_path)
    loaded = PromptTask.load(tmp_path)
    assert (loaded.prompts, loaded.encoder, loaded.config) == (task.prompts, task.encoder, task.config)
    assert isinstance(loaded.scorer, RidgeScorer)
    assert loaded.scorer.weights.tolist() == scorer.weights.tolist()


def test_a_user_defined_scorer_cannot_be_saved(tmp_path: Path):
    with pytest.raises(ConfigError, match="--scorer"):
        PromptTask(prompts=("a",), scorer=CallableScorer(lambda prompt: 0.5)).save(tmp_path)
    with pytest.raises(RunError, match=r"no prompts\.json"):
        PromptTask.load(tmp_path)


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
