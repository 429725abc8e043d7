"""The doctor on records with known faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from doctor_runs import HEALTHY, findings_of, primary_of, record

from surefoot.telemetry.doctor.doctor import Doctor, LiveDoctor, consequences, examine, patch_for, primary, seed_spread
from surefoot.telemetry.doctor.findings import Finding
from surefoot.telemetry.doctor.metric_history import MetricHistory
from surefoot.telemetry.doctor.rules import Rule
from surefoot.telemetry.doctor.signals import SIGNS
from surefoot.telemetry.schema import VERSION, EndRecord


def test_a_healthy_run_has_no_finding():
    assert findings_of(record()) == {}


def test_a_run_that_ended_with_nan_is_a_fatal_finding_during_warm_up():
    end = EndRecord(
        v=VERSION, run="r", seq=1, t=0, env_steps=0, updates=0, reason="error", message="NonFiniteValue: reward is nan"
    )
    assert primary_of(record(updates=3, end=end)).severity == "fatal"


def test_consequences_are_listed_below_their_cause():
    doctor = Doctor()
    for each in record(approx_kl=0.6, clip_fraction=0.8, returns=lambda share: 20.0):
        doctor.observe(each)
    tree = consequences(doctor.findings(), doctor.rules)
    assert {f.rule for f in tree["R03"]} >= {"R05", "R11"}
    assert doctor.findings()[0].rule == "R03"


def test_a_finding_opens_and_is_resolved_and_knows_since_when():
    doctor, changes = Doctor(), list[Finding]()
    for each in record(first_ratio_error=lambda u: 0.02 if 20 <= u < 40 else 0.0):
        changes += doctor.observe(each)
    assert [(f.rule, f.status) for f in changes] == [("R02", "open"), ("R02", "resolved")]
    assert changes[0].since_update == 22, "three of five"
    assert changes[0].since_env_steps == 2200
    assert not doctor.findings()[0].primary, "a resolved finding is never the primary one"


def test_one_odd_update_is_no_finding():
    assert findings_of(record(first_ratio_error=lambda u: 0.02 if u == 20 else 0.0)) == {}


def test_a_resolved_cause_still_explains_an_open_finding():
    """The learning rate ruined the policy at the start; later the only sign is that it does not move."""
    run = record(
        approx_kl=lambda u: 0.9 if u < 15 else 0.0,
        entropy=lambda u: 0.5 if u < 10 else 0.0001,
        returns=lambda share: 20.0,
    )
    one = primary_of(run)
    assert (one.rule, one.status) == ("R03", "resolved")


def test_the_patch_is_in_the_units_of_the_run():
    history = MetricHistory()
    for each in record(updates=2):
        history.add(each)
    assert patch_for({"lr": {"times": 0.3}}, history) == {"lr": 9e-5}
    assert patch_for({"ent_coef": {"times": 3, "least": 0.01}}, history) == {"ent_coef": 0.01}
    assert patch_for({"max_grad_norm": 0.5, "target_kl": 0.02}, history) == {"target_kl": 0.02}, (
        "the first is set already"
    )
    assert patch_for({"unheard_of": {"times": 2}}, history) == {}


def test_a_cycle_of_rules_that_explain_each_other_ends():
    loop = [
        Rule(id=a, title=a, sign=SIGNS["above"], levels=(), follows=(b,))
        for a, b in (("A", "B"), ("B", "A"), ("C", "A"))
    ]
    findings = [Finding(rule=name, severity="error", title=name) for name in "ABC"]
    assert sum(len(below) for below in consequences(findings, loop).values()) <= 3
    assert primary(findings, loop) in {"A", "B", "C"}


def test_the_record_of_a_file_is_examined(open_recorder: Callable[..., Any], tmp_path: Path, clock: Any):
    recorder = open_recorder()
    recorder.header(env="X-v0", seed=0, config={}, total_steps=3000)
    for update in range(1, 31):
        clock.now += 1
        m = {**HEALTHY, "first_ratio_error": 0.5, "policy_loss": 0.1 * update}
        recorder.update(env_steps=100 * update, updates=update, m=m)
    recorder.close("finished")
    result = examine(tmp_path)
    assert [f.rule for f in result.findings if f.primary] == ["R02"]
    assert (result.updates, result.env_steps, result.final_return) == (30, 3000, None)


def test_seeds_that_differ_widely_are_a_finding():
    assert seed_spread([100.0, 101.0, 99.0, 100.0]) is None
    finding = seed_spread([100.0, 10.0, 200.0, 120.0])
    assert finding is not None
    assert finding.rule == "R25"
    assert seed_spread([1.0, 500.0]) is None, "two seeds are too few"


def test_a_live_doctor_reports_only_what_is_new_after_a_resume(
    open_recorder: Callable[..., Any], tmp_path: Path, clock: Any
):
    recorder = open_recorder()
    recorder.header(env="X-v0", seed=0, config={}, total_steps=3000)
    for update in range(1, 11):
        clock.now += 1
        recorder.update(env_steps=100 * update, updates=update, m={**HEALTHY, "first_ratio_error": 0.5})
    recorder.close()
    live = LiveDoctor()
    live.catch_up(tmp_path)
    assert live.take() == []
    assert "R02" in {f.rule for f in live.doctor.findings()}
    for each in record(first_ratio_error=0.5):
        live.write(each)
    assert live.take() != []
    assert live.take() == []
