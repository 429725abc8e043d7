"""The directory of a constitution run; `tests/e2e/test_lm.py` runs the stages."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from surefoot.errors import ConfigError, DataError
from surefoot.lm.constitution.pipeline import STAGES, Pipeline
from surefoot.lm.constitution.pipeline_config import PipelineConfig


@pytest.fixture
def config(tmp_path):
    (tmp_path / "p.txt").write_text("one\ntwo\n")
    (tmp_path / "h.txt").write_text("three\n")
    return PipelineConfig(model="m", prompts=str(tmp_path / "p.txt"), held_out=str(tmp_path / "h.txt"), judge="rules")


def test_a_new_directory_has_no_finished_stage(tmp_path, config):
    assert Pipeline(config, tmp_path / "run").done == []


def test_a_prompt_in_both_files_is_refused(tmp_path, config):
    (tmp_path / "h.txt").write_text("two\n")
    with pytest.raises(DataError, match="1 prompts are in both files, such as 'two'"):
        Pipeline(config, tmp_path / "run")


def test_a_directory_of_another_config_is_refused(tmp_path, config):
    Pipeline(config, tmp_path / "run")
    with pytest.raises(ConfigError, match="started with another config"):
        Pipeline(dataclasses.replace(config, rounds=2), tmp_path / "run")


def test_unknown_stages_and_stages_without_those_before_them_are_refused(tmp_path, config):
    pipeline = Pipeline(config, tmp_path / "run")
    with pytest.raises(ConfigError, match="there is no stage 'polish'"):
        pipeline.run(only=["polish"])
    with pytest.raises(ConfigError, match=f"the stage sft needs {STAGES[0]}"):
        pipeline.run(only=["sft"])


def test_finished_stages_are_read_and_not_run(tmp_path, config):
    pipeline = Pipeline(config, tmp_path / "run")
    (tmp_path / "run" / "stages.json").write_text('["revise"]')
    (tmp_path / "run" / "revise.json").write_text('{"prompts": 2}')
    assert pipeline.run(only=["revise"]) == {"revise": {"prompts": 2}}


def test_dpo_replaces_reward_model_and_ppo(tmp_path, config):
    pipeline = Pipeline(dataclasses.replace(config, algorithm="dpo"), tmp_path / "run")
    assert pipeline.stages == ("revise", "sft", "preferences", "dpo", "evaluate")
    with pytest.raises(ConfigError, match="there is no stage 'ppo'"):
        pipeline.run(only=["ppo"])


def test_the_shipped_principles_are_judged_by_the_classifier_and_own_ones_by_their_signs(tmp_path, config, monkeypatch):
    made = []
    monkeypatch.setattr(
        "surefoot.lm.constitution.pipeline.PrincipleClassifier",
        lambda labelled: made.append(labelled) or SimpleNamespace(features=None),
    )
    (tmp_path / "own.yaml").write_text("principles: {plain: {description: should be plain}}\n")
    config = dataclasses.replace(config, judge=None)
    assert Pipeline(config, tmp_path / "shipped").config.judge == "classifier"
    own = dataclasses.replace(config, principles=str(tmp_path / "own.yaml"))
    assert Pipeline(own, tmp_path / "own").config.judge == "rules"
    assert Pipeline(dataclasses.replace(own, labelled="x.yaml"), tmp_path / "labelled").config.judge == "classifier"
    assert made == [None, "x.yaml"]
