"""A run on disk: what is written, what a full disk costs, what a resumed one is refused."""

from __future__ import annotations

import errno
import json
from types import SimpleNamespace

import pytest
from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.errors import CheckpointError, ConfigError
from surefoot.lm.config import LMConfig
from surefoot.lm.data import PreferencePair
from surefoot.lm.dpo import DPOTraining
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.run import create, language_rules, resume
from surefoot.lm.training import LMTraining
from surefoot.telemetry.doctor.findings import Finding
from surefoot.telemetry.validate import validate
from surefoot.train.rundir.rundir import RunDir

ABOUT = {"model": "tiny", "prompts": "p.txt"}


def training(**how):
    config = LMConfig(**{"max_new_tokens": 4, "prompts": 3, "steps": 3, "checkpoint_every": 1, **how})
    backbone = Backbone(tiny(vocabulary=VOCABULARY))
    return LMTraining(backbone, char_tokenizer(), ["a", "b", "c"], lambda p, r: float(len(set(r))), config)


def test_a_run_leaves_a_valid_record_samples_and_checkpoints(tmp_path):
    run = create(RunDir(tmp_path), training(), about=ABOUT)
    steps = [step for step, _ in run.steps()]
    run.close("finished")
    assert len(steps) == 3
    assert [verdict.mistakes for verdict in validate(tmp_path / "telemetry.ndjson")] == [[]]
    lines = (tmp_path / "samples.ndjson").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3]
    assert (tmp_path / "checkpoints" / "latest").exists()


def test_a_full_disk_is_one_error_and_the_earlier_checkpoint_stays(tmp_path, monkeypatch):
    run = create(RunDir(tmp_path), training(), about=ABOUT)
    going = run.steps()
    next(going)
    from surefoot.learn.checkpoint import atomic_files

    def full(self, path, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic_files.RealFs, "write", full)
    with pytest.raises(CheckpointError, match="No space left on device; earlier checkpoints are untouched"):
        list(going)
    run.close("error")
    monkeypatch.undo()
    again = resume(RunDir(tmp_path), training(), about=ABOUT)
    assert again.training.steps == 1
    assert len(list(again.steps())) == 2
    again.close("finished")


def test_another_model_or_another_config_is_refused(tmp_path):
    run = create(RunDir(tmp_path), training(), about=ABOUT)
    list(run.steps())
    run.close("finished")
    with pytest.raises(ConfigError, match="model is 'other' but the run was started with 'tiny'"):
        resume(RunDir(tmp_path), training(), about={**ABOUT, "model": "other"})
    with pytest.raises(ConfigError, match="beta is 0.5 but the run was started with 0.05"):
        resume(RunDir(tmp_path), training(beta=0.5), about=ABOUT)
    longer = resume(RunDir(tmp_path), training(steps=4), about=ABOUT)
    assert len(list(longer.steps())) == 1
    longer.close("finished")


def test_a_language_run_is_not_examined_as_a_game():
    titles = {rule.title for rule in language_rules()}
    assert not {"The run has only a few updates", "The learning rate is far outside of published settings"} & titles
    assert not titles & {"No episode ends", "The policy stays random", "The return does not improve"}
    assert {"Responses repeat themselves", "Numbers are NaN or infinite"} <= titles


def test_findings_that_are_only_information_are_recorded_and_not_printed(tmp_path):
    run = create(RunDir(tmp_path), training(), about=ABOUT)
    findings = [Finding(rule="L01", severity=severity, title=severity) for severity in ("info", "warning")]
    run.doctor = SimpleNamespace(take=lambda: findings)
    notes = run._examine()
    run.close("finished")
    assert [("warning" in note, "info" in note) for note in notes] == [(True, False)]


def test_a_run_of_dpo_has_no_findings_about_what_it_does_not_measure(tmp_path):
    pairs = [PreferencePair(f"ask {letter}", "aaaa bbb", "zzzz yy") for letter in "abcdefgh"]
    config = LMConfig(algorithm="dpo", steps=12, prompts=4, judge_every=4)
    learning = DPOTraining(Backbone(tiny(vocabulary=VOCABULARY)), char_tokenizer(), pairs, config)
    run = create(RunDir(tmp_path), learning, about=ABOUT)
    notes = [note for _, notes in run.steps() for note in notes]
    run.close("finished")
    assert notes == []
    assert [verdict.mistakes for verdict in validate(tmp_path / "telemetry.ndjson")] == [[]]
