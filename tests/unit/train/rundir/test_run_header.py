"""What differs between the run that was saved and the run that resumes it is noted."""

from __future__ import annotations

import json

import pytest

from surefoot.data.spaces import Discrete
from surefoot.errors import RunError
from surefoot.learn.checkpoint.typed_state import RunProgress
from surefoot.train import run as run_module
from surefoot.train.run import create_run, resume_run
from surefoot.train.rundir import run_header
from surefoot.train.rundir.run_header import kernel_name, next_after, resume_notes, versions
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import RunSpec, make_spec


def a_spec() -> RunSpec:
    settings = {"envs": 2, "rollout_steps": 8, "epochs": 1, "minibatch_size": 8}
    fixed = {"total_steps": 16, "eval_every": 0, "checkpoint_every": 16}
    return make_spec("surefoot/Bandit-v0", Discrete(3), preset_name="sb3", settings=settings, **fixed)


def progress(**changes) -> RunProgress:
    values = {"best_mean": 0.0, "next_eval": 0.0, "next_checkpoint": 0, "threads": 1, "spec": a_spec().to_json()}
    return RunProgress(**{**values, "versions": versions(), "kernel": kernel_name(), **changes})


def test_the_same_run_has_no_notes_and_neither_has_one_of_an_earlier_version():
    assert resume_notes(progress(), a_spec()) == []
    assert resume_notes(progress(spec={}, versions={}, kernel=""), a_spec()) == []


def test_another_numpy_or_kernel_is_noted():
    notes = resume_notes(progress(versions={**versions(), "numpy": "1.0"}, kernel="avx9"), a_spec())
    assert ["numpy 1.0" in notes[0], "kernel avx9" in notes[1]] == [True, True]
    assert all("digits may differ" in note for note in notes)


@pytest.mark.parametrize(("point", "steps", "after"), [(16, 16, 32), (16, 15, 16), (0, 47, 48), (-(10**15), 5, 8)])
def test_the_next_point_is_the_first_after_the_step(point, steps, after):
    assert next_after(point, 8 if after == 8 else 16, steps) == after


def test_a_setting_edited_in_the_file_is_used_with_a_note(tmp_path):
    directory = RunDir(tmp_path)
    run = create_run(directory, a_spec())
    list(run.moments())
    run.close("finished")
    header = json.loads(directory.header.read_text())
    header["spec"]["ppo"]["lr"] = 0.125
    directory.header.write_text(json.dumps(header))
    run, _ = resume_run(directory)
    run.close("finished")
    assert [note for note in run.notes if "ppo.lr was" in note and "0.125" in note]
    assert run.training.learner.config.lr == 0.125


def test_a_disk_that_fails_at_the_first_write_is_a_sentence(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(run_header, "replace_file", fail)
    with pytest.raises(RunError, match="run.json cannot be written: Input/output error"):
        run_module.create_run(RunDir(tmp_path), a_spec())


@pytest.mark.parametrize(
    "wrong", [{"total_steps": "many"}, {"ppo": 3}, {"backend": "none"}, {"env": None}, {"overlap": 7}]
)
def test_a_spec_with_values_of_another_type_is_refused(wrong):
    from surefoot.errors import ConfigError

    assert RunSpec.from_json(a_spec().to_json()) == a_spec()
    with pytest.raises(ConfigError, match=f"the spec of the run has a bad value: .*{next(iter(wrong))}"):
        RunSpec.from_json({**a_spec().to_json(), **wrong})
    with pytest.raises(ConfigError, match="missing required field `preset`"):
        RunSpec.from_json({name: x for name, x in a_spec().to_json().items() if name != "preset"})
