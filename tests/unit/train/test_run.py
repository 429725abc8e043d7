from __future__ import annotations

import errno
import json
import time

import numpy as np
import pytest
import torch

from surefoot import native
from surefoot.cli.drive import path_note
from surefoot.data.spaces import Discrete
from surefoot.envs.workers import placement
from surefoot.errors import ConfigError, RunLocked, RunNotFound, TelemetryError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint
from surefoot.learn.checkpoint.retention import best
from surefoot.telemetry.files import line_file
from surefoot.telemetry.reader import read_all
from surefoot.telemetry.schema import EndRecord, EvaluationRecord, HeaderRecord, MinibatchRecord, UpdateRecord
from surefoot.train.run import create_run, resume_run
from surefoot.train.rundir.recorder import RecordingOptions
from surefoot.train.rundir.resume_check import fingerprint, verify_resume
from surefoot.train.rundir.run_header import git_commit
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import RunSpec, make_spec

SMALL = {"envs": 2, "rollout_steps": 8, "epochs": 1, "minibatch_size": 8}


def a_spec(**fixed):
    values = {"total_steps": 64, "eval_every": 32, "eval_episodes": 2, "checkpoint_every": 16, **fixed}
    return make_spec(
        "surefoot/Bandit-v0", Discrete(3), preset_name="sb3", settings={**SMALL, **values.pop("settings", {})}, **values
    )


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    return RunDir(path)


def trained(directory, spec=None, **kwargs):
    run = create_run(directory, spec or a_spec(), command=["surefoot", "train"])
    moments = list(run.moments(**kwargs))
    run.close("finished")
    return run, moments


def test_a_run_trains_evaluates_and_saves_where_its_spec_says(directory):
    run, moments = trained(directory)
    assert [m.env_steps for m in moments] == [16, 32, 48, 64]
    assert [m.evaluation is not None for m in moments] == [False, True, False, True]
    assert [m.checkpoint for m in moments] == [1, 2, 3, 4]
    assert load_checkpoint(directory.checkpoints).step == 4
    assert best(directory.checkpoints) in (2, 4)
    assert run.saved_at == 4


@pytest.mark.parametrize("path", ["auto", "torch"])
def test_its_header_says_which_path_learns_and_why(directory, path):
    run, _ = trained(directory, a_spec(settings={"path": path}))
    header = read_all(directory.path).records[0]
    assert (header.path, header.path_reason) == (run.training.learner.path, run.training.learner.path_reason)
    if path == "torch":
        assert (header.path, header.path_reason) == ("torch", "path is set to torch")


def test_without_the_kernel_torch_learns_and_the_reason_is_in_the_record_and_on_the_screen(directory, monkeypatch):
    monkeypatch.setattr(native, "kernel", None)
    monkeypatch.setattr(native, "why_not", "the kernel was not built")
    run, moments = trained(directory)
    header = read_all(directory.path).records[0]
    assert (header.path, header.path_reason) == ("torch", "the kernel was not built")
    assert moments[0].report.path_reason == "the kernel was not built"
    assert path_note(run.training) == "torch path on cpu, 1 thread: the kernel was not built"


def test_its_record_begins_with_a_header_and_ends_with_an_end(directory):
    trained(directory)
    reading = read_all(directory.path)
    assert not reading.problems
    assert isinstance(reading.records[0], HeaderRecord)
    assert isinstance(reading.records[-1], EndRecord)
    assert sum(r.covers for r in reading.records if isinstance(r, UpdateRecord)) == 4
    assert [r.env_steps for r in reading.records if isinstance(r, EvaluationRecord)] == [32, 64]


def test_a_checkpoint_counts_only_once_its_record_is_on_the_disk(directory, monkeypatch):
    counted = []

    def slow(fd):
        time.sleep(0.05)
        counted.append(sorted(p.name for p in directory.checkpoints.glob("0*")))

    monkeypatch.setattr(line_file, "_sync", slow)
    trained(directory, a_spec(total_steps=32, eval_every=0))
    assert counted[:2] == [[], ["000001"]]


def test_a_record_that_does_not_reach_the_disk_leaves_no_checkpoint(directory, monkeypatch):
    def refuse(fd):
        raise OSError(errno.EIO, "Input/output error")

    run = create_run(directory, a_spec())
    with monkeypatch.context() as patch:
        patch.setattr(line_file, "_sync", refuse)
        with pytest.raises(TelemetryError, match="could not be synchronised to the disk"):
            list(run.moments())
    assert list(directory.checkpoints.glob("0*")) == []
    run.close("error")


def test_a_run_without_a_record_saves_resumes_and_says_so(directory):
    heard = []

    class Hears:
        def write(self, record):
            heard.append(record)

        def close(self):
            heard.append("closed")

    run = create_run(directory, a_spec(), mirrors=[Hears()], recording=RecordingOptions(record=False))
    moments = list(run.moments())
    run.close("finished")
    assert sorted(p.name for p in directory.path.iterdir()) == [".lock", "checkpoints", "run.json"]
    assert any("no telemetry is written" in note for note in moments[0].notes)
    assert [type(r).__name__ for r in heard if isinstance(r, HeaderRecord | UpdateRecord | EndRecord)][:2] == [
        "HeaderRecord",
        "UpdateRecord",
    ]
    assert heard[-1] == "closed"
    again, _ = resume_run(directory, total_steps=96)
    assert any("no telemetry is written" in note for note in next(again.moments()).notes)
    again.close("finished")
    assert not directory.telemetry.exists()
    third, _ = resume_run(directory, total_steps=128, recording=RecordingOptions(record=True))
    list(third.moments())
    third.close("finished")
    assert [r.updates for r in read_all(directory.path).records if isinstance(r, UpdateRecord)][-1] == 8
    assert json.loads(directory.header.read_text())["record"] is True


@pytest.mark.parametrize("path", ["torch", "native"])
def test_a_share_of_the_gradient_steps_is_written_down(directory, path):
    if path == "native" and native.unusable():
        pytest.skip("no kernel")
    spec = a_spec(settings={"path": path, "epochs": 3})
    run = create_run(directory, spec, recording=RecordingOptions(minibatch_rate=0.5))
    reports = [moment.report for moment in run.moments()]
    run.close("finished")
    records = read_all(directory.path).records
    steps = [r for r in records if isinstance(r, MinibatchRecord)]
    assert len(steps) == sum(report.minibatches for report in reports) // 2 == 12
    assert {(r.updates, r.epoch, r.minibatch) for r in steps} >= {(0, 0, 1), (0, 1, 3), (3, 2, 5)}
    table = reports[0].gradient_steps
    assert steps[0].m["policy_loss"] == table.column("policy_loss")[1]
    assert {"approx_kl", "grad_norm", "entropy", "clip_fraction"} <= set(steps[0].m)


def test_a_share_beyond_one_is_refused():
    with pytest.raises(ConfigError, match="minibatch_rate is 2; it must be a share"):
        RecordingOptions(minibatch_rate=2)


def test_a_stopped_run_saves_and_does_not_evaluate(directory):
    count = iter(range(100))
    _, moments = trained(directory, stop=lambda: next(count) > 1)
    assert moments[-1].checkpoint == moments[-1].report.update
    assert all(m.evaluation is None for m in moments if m.env_steps < 32)


def test_a_wish_to_stop_that_comes_between_two_looks_still_saves(directory):
    spec = a_spec(eval_every=0, checkpoint_every=1000)
    run = create_run(directory, spec)
    wishes = iter([False, False, True])  # before the first update, after it, before the second
    assert len(list(run.moments(lambda: next(wishes)))) == 1
    run.close("interrupted")
    assert load_checkpoint(directory.checkpoints).step == 1


def test_an_episode_that_never_ends_costs_the_evaluation_and_not_the_run(directory, monkeypatch):
    monkeypatch.setattr("surefoot.train.evaluate.LONGEST_EPISODE", 50)
    spec = make_spec(
        "surefoot/Endless-v0", Discrete(1), preset_name="sb3", settings=SMALL, total_steps=32, eval_every=16
    )
    run, moments = trained(directory, spec)
    assert all(m.evaluation is None for m in moments)
    assert "evaluation stopped" in moments[-1].notes[-1]
    assert run.saved_at == 2


def test_a_resumed_run_goes_on_and_can_be_made_longer(directory):
    trained(directory)
    run, checkpoint = resume_run(directory, total_steps=96)
    assert (checkpoint.step, run.training.env_steps) == (4, 64)
    assert [m.env_steps for m in run.moments()] == [80, 96]
    run.close("finished")
    assert RunSpec.from_json(directory.read_header()["spec"]).total_steps == 96


def test_two_processes_cannot_write_one_run(directory):
    run = create_run(directory, a_spec())
    with pytest.raises(RunLocked):
        resume_run(directory)
    run.close("interrupted")
    run.close("finished")  # the second close does nothing
    assert read_all(directory.path).records[-1].reason == "interrupted"


def test_a_run_that_could_not_be_made_leaves_no_lock(directory):
    with pytest.raises(ConfigError):
        create_run(directory, a_spec(settings={"gsde": True}))
    create_run(directory, a_spec()).close("finished")


def test_another_number_of_threads_is_said_to_change_the_digits(directory):
    run, _ = trained(directory)
    state = run.state()
    state["run"]["threads"] = torch.get_num_threads() + 1
    run.set_state(state)
    assert "digits will differ" in run.notes[-1]


def test_both_minibatch_knobs_are_weighed_up_aloud(directory):
    _, moments = trained(directory, a_spec(settings={"minibatches": 4, "minibatch_size": 8}))
    assert "the smaller minibatch counts" in moments[0].notes[0]
    assert moments[1].notes == ()


def test_the_header_says_what_the_run_was_made_from(directory):
    trained(directory)
    header = json.loads(directory.header.read_text())
    assert header["command"] == ["surefoot", "train"]
    assert header["spec"]["env"] == "surefoot/Bandit-v0"
    assert {"python", "torch", "numpy", "surefoot", "gymnasium"} <= set(header["versions"])


def test_a_directory_outside_git_has_no_commit(tmp_path):
    assert git_commit(tmp_path) is None


@pytest.mark.parametrize("name", ["total_steps", "eval_episodes", "checkpoint_every", "keep_checkpoints"])
def test_a_spec_that_cannot_work_names_the_field(name):
    with pytest.raises(ConfigError, match=name):
        RunSpec.from_json({**a_spec().to_json(), name: 0})


def test_a_spec_survives_json():
    spec = a_spec(settings={"lr": "lin_1e-3", "net_arch": [8, 8], "reward_range": (-1.0, 1.0)})
    assert RunSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


class TestVerify:
    def test_a_fingerprint_sees_every_bit_name_and_shape(self):
        base = {"a": np.zeros(4, np.float32), "b": [1, {"c": None}]}
        others = [
            {"a": np.zeros(4, np.float64), "b": [1, {"c": None}]},
            {"a": np.zeros((2, 2), np.float32), "b": [1, {"c": None}]},
            {"a": np.array([0, 0, 0, -0.0], np.float32), "b": [1, {"c": None}]},
            {"a": np.zeros(4, np.float32), "b": [2, {"c": None}]},
            {"a": np.zeros(4, np.float32), "b": [1, {"d": None}]},
        ]
        assert fingerprint(base) == fingerprint({"b": [1, {"c": None}], "a": torch.zeros(4)})
        assert len({fingerprint(tree) for tree in [base, *others]}) == 6

    def test_it_needs_an_update_on_each_side_of_the_restart(self, directory):
        with pytest.raises(ConfigError, match="at least 2"):
            verify_resume(directory, updates=1)

    def test_there_must_be_a_run(self, directory):
        with pytest.raises(RunNotFound):
            verify_resume(directory)


@pytest.mark.parametrize(("workers", "told"), [(0, None), ("auto", "envs in this process: only one core is available")])
def test_a_run_notes_where_its_envs_are_stepped(directory, workers, told, monkeypatch):
    monkeypatch.setattr(placement, "cores", lambda: 1)
    fixed = {"eval_every": 0, "total_steps": 16, "backend": "gymnasium"}
    spec = make_spec("CartPole-v1", Discrete(2), settings={**SMALL, "workers": workers}, preset_name="sb3", **fixed)
    _, moments = trained(directory, spec)
    assert moments[0].notes == (() if told is None else (told,))
    assert directory.read_header()["placement"] == told
    assert directory.read_header()["spec"]["collect"]["workers"] == workers
    assert read_all(directory.path).records[0].placement == (told or "")


def test_the_record_is_told_of_memory_and_the_report_is_not(directory):
    _, moments = trained(directory)
    told = [line.m for line in read_all(directory.path).records if isinstance(line, UpdateRecord)]
    assert any(m.get("rss_mb", 0.0) > 10.0 for m in told)
    assert not any("rss_mb" in moment.report.stats for moment in moments)
