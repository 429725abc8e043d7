"""Findings during training, and automatic recovery from them."""

from __future__ import annotations

import json

import pytest

from surefoot.data.spaces import Discrete
from surefoot.errors import Diverged
from surefoot.learn.checkpoint.checkpoint import load_checkpoint
from surefoot.telemetry.doctor.doctor import LiveDoctor
from surefoot.telemetry.doctor.findings import Finding, sentence
from surefoot.telemetry.reader import read_all
from surefoot.telemetry.schema import EventRecord
from surefoot.telemetry.schema import FindingRecord as FindingLine
from surefoot.train.diagnose.auto_recover import (
    MAX_RECOVERIES,
    RecoveringRun,
    Recovery,
    applicable,
    choose_recovery,
    patched,
)
from surefoot.train.run import create_run, resume_run
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import make_spec


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    return RunDir(path)


def a_run(directory, *, steps=8_000, **settings):
    fixed = {"total_steps": steps, "eval_every": 0, "checkpoint_every": 500, "keep_checkpoints": 30}
    spec = make_spec("CartPole-v1", Discrete(2), settings=settings, **fixed)
    return create_run(directory, spec, doctor=LiveDoctor())


def a_finding(**changes):
    known = {"rule": "R03", "severity": "error", "title": "too far", "primary": True, "patch": {"lr": 1e-4}}
    return Finding(**{**known, **changes})


def test_findings_are_in_the_record_and_in_the_moments(directory):
    run = a_run(directory, steps=4_000, lr=1.0)
    moments = list(run.moments())
    run.close("finished")
    lines = [r for r in read_all(directory.path).records if isinstance(r, FindingLine)]
    reported = [f for moment in moments for f in moment.findings]
    assert "R03X" in [line.rule for line in lines]
    assert [line.rule for line in lines] == [f.rule for f in reported]
    assert any("R03X" in note for moment in moments for note in moment.notes)


def test_a_resumed_run_does_not_report_the_same_finding_again(directory):
    run = a_run(directory, steps=4_000, lr=1.0)
    list(run.moments(lambda: run.training.env_steps >= 2_000))
    run.close("interrupted")
    before = {line.rule for line in read_all(directory.path).records if isinstance(line, FindingLine)}
    again, _ = resume_run(directory, doctor=LiveDoctor())
    opened = {f.rule for moment in again.moments() for f in moment.findings if f.status == "open"}
    again.close("finished")
    assert "R03X" in before
    assert "R03X" not in opened


def test_without_act_nothing_is_changed(directory):
    recovering = RecoveringRun(a_run(directory, steps=2_000, lr=1.0), act=False)
    run = recovering.run
    list(recovering.moments())
    assert recovering.run is run
    assert recovering.recoveries == []
    run.close("finished")


def test_with_act_the_run_returns_to_a_checkpoint_and_resumes_with_the_patch(directory):
    run = a_run(directory, lr=1.0)
    run.save()
    recovering = RecoveringRun(run, act=True)
    list(recovering.moments())
    recovering.run.close("finished")
    first = recovering.recoveries[0]
    assert (first.finding.rule, first.back_to) == ("R03X", 0)
    assert recovering.run.spec.ppo.lr == recovering.recoveries[-1].patch.get("lr", 0.1) < 1.0
    assert json.loads(directory.header.read_text())["spec"]["ppo"]["lr"] == recovering.run.spec.ppo.lr
    events = [r for r in read_all(directory.path).records if isinstance(r, EventRecord) and r.name == "treated"]
    assert events[-1].data["finding"]["rule"] == recovering.recoveries[-1].finding.rule


def test_a_finding_before_the_first_checkpoint_finds_one(directory):
    recovering = RecoveringRun(a_run(directory, lr=1.0, steps=3_000), act=True)
    list(recovering.moments())
    recovering.run.close("finished")
    assert recovering.recoveries[0].back_to == 0


@pytest.mark.parametrize(("scores", "lr", "word"), [((10.0, 20.0), 1e-4, "kept"), ((20.0, 10.0), 0.5, "undone")])
def test_a_change_that_did_not_help_is_taken_back(directory, monkeypatch, scores, lr, word):
    run = a_run(directory, steps=2_000, lr=0.5)
    run.live_doctor = None
    findings = [[], [a_finding(since_update=2)]]
    scores = iter(scores)
    monkeypatch.setattr("surefoot.train.diagnose.auto_recover.score", lambda run: next(scores))
    monkeypatch.setattr(type(run), "_examine", lambda self: tuple(findings.pop(0)) if findings else ())
    recovering = RecoveringRun(run, act=True)
    list(recovering.moments())
    recovering.run.close("finished")
    assert recovering.run.training.finished
    assert recovering.run.spec.ppo.lr == lr
    assert len(recovering.recoveries) == 1
    assert recovering.verdicts[0].startswith("--set lr=0.0001: score ")
    assert recovering.verdicts[0].endswith(word)


def test_a_diverged_run_recovers_too(directory, monkeypatch):
    run = a_run(directory, steps=2_000)
    run.save()
    update, count = run.training.update, [0]

    def fails():
        count[0] += 1
        if count[0] == 5:
            raise Diverged("10 gradient steps in a row were not finite")
        return update()

    monkeypatch.setattr(run.training, "update", fails)
    recovering = RecoveringRun(run, act=True)
    list(recovering.moments())
    assert recovering.recoveries[0].finding.rule == "R01"
    assert recovering.run.training.finished
    recovering.run.close("finished")


def test_a_finding_that_no_setting_fixes_stops_the_run(directory):
    run = a_run(directory, steps=8_000)
    initial = {name: x.clone() for name, x in run.training.policy.state_dict().items()}
    collect = run.training.collector.collect

    def again(version=0):
        run.training.policy.load_state_dict(initial)
        return collect(version)

    run.training.collector.collect = again
    recovering = RecoveringRun(run, act=True)
    list(recovering.moments())
    assert recovering.stop_reason is not None
    assert "R28" in recovering.stop_reason
    assert not run.training.finished
    run.close("interrupted")


@pytest.mark.parametrize(
    "finding",
    [
        a_finding(severity="warn", patch={}),
        a_finding(severity="warn", patch={"hidden": [64, 64]}),
        a_finding(severity="warn", patch={"rollout_steps": 64}),
        a_finding(severity="info"),
        a_finding(primary=False),
        a_finding(status="resolved"),
    ],
)
def test_a_recovery_needs_an_open_finding_that_nothing_explains_and_for_a_warning_a_setting(directory, finding):
    run = a_run(directory)
    assert choose_recovery(run, [finding]) is None
    run.close("finished")


def test_the_checkpoint_is_from_before_the_finding(directory):
    run = a_run(directory, steps=4_000)
    list(run.moments())
    saved = load_checkpoint(directory.checkpoints).step
    recovery = choose_recovery(run, [a_finding(since_update=saved)])
    run.close("finished")
    assert recovery is not None
    assert 0 < recovery.back_to <= 0.9 * saved


def test_after_three_recoveries_the_run_stops(directory):
    run = a_run(directory)
    run.save()
    before = [Recovery(finding=a_finding(), patch={"lr": 1e-4}, back_to=0)] * MAX_RECOVERIES
    recovery = choose_recovery(run, [a_finding()], before)
    run.close("finished")
    assert recovery is not None
    assert recovery.patch == {}


def test_only_settings_that_can_change_during_a_run_are_applied(directory):
    run = a_run(directory)
    spec = run.spec
    run.close("finished")
    patch = {"lr": 1e-4, "normalize_obs": True, "activation": "relu", "target_kl": 0.02, "no_such_knob": 1}
    assert applicable(spec, patch) == {"lr": 1e-4, "target_kl": 0.02}
    assert patched(spec, {"lr": 1e-4, "normalize_reward": True}).collect.normalize_reward is True


def test_a_finding_is_reported_in_a_sentence_with_its_remedy():
    reported = sentence(a_finding(evidence={"approx_kl": 0.5}))
    assert reported == "doctor: error R03: too far (approx_kl 0.5); try --set lr=0.0001"
    assert sentence(a_finding(status="resolved")) == "doctor: R03 is resolved: too far"
    assert "; possible causes: lr, or luck; try" in sentence(a_finding(causes=["lr", "luck"]), causes=True)
