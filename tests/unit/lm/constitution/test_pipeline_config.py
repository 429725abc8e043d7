"""The YAML file of a constitution run."""

from __future__ import annotations

import dataclasses

import pytest

from surefoot.errors import DataError
from surefoot.lm.constitution.pipeline_config import PipelineConfig


def write(folder, text):
    path = folder / "run.yaml"
    path.write_text(text)
    return path


def test_paths_are_relative_to_the_file(tmp_path):
    config = PipelineConfig.read(write(tmp_path, "{model: hub/name, prompts: p.txt, held_out: h.txt, rounds: 2}"))
    assert (config.model, config.prompts, config.rounds) == ("hub/name", str(tmp_path / "p.txt"), 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "must be a mapping"),
        ("{model: m, prompts: p}", "has no held_out"),
        ("{model: m, prompts: p, held_out: h, colour: red}", "has 'colour'"),
        ("{model: m, prompts: p, held_out: h, judge: me}", "judge is 'me'; it must be rules, model, classifier or"),
        ("{model: m, prompts: p, held_out: h, algorithm: sac}", "algorithm is 'sac'; it must be ppo or dpo"),
        ("{model: [", "cannot read"),
        ("{model: m, prompts: p, held_out: h, ppo_steps: many}", "ppo_steps: expected `int"),
        ("{model: m, prompts: p, held_out: h, ppo: 3}", "ppo: expected `object`, got `int`"),
    ],
)
def test_a_bad_file_is_named_with_its_fault(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        PipelineConfig.read(write(tmp_path, text))


def test_a_number_that_yaml_reads_as_text_is_a_number(tmp_path):
    assert PipelineConfig.read(write(tmp_path, "{model: m, prompts: p, held_out: h, ppo_lr: 4e-4}")).ppo_lr == 4e-4


def test_steps_and_learning_rate_follow_the_algorithm_unless_they_are_set():
    config = PipelineConfig(model="m", prompts="p", held_out="h")
    dpo = dataclasses.replace(config, algorithm="dpo")
    own = dataclasses.replace(dpo, ppo_steps=3, ppo_lr=1e-3)
    assert [(c.stage_steps, c.stage_lr) for c in (config, dpo, own)] == [(20, 1e-4), (50, 4e-4), (3, 1e-3)]
