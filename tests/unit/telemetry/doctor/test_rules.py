"""Rule files."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctor_runs import record

from surefoot.errors import ConfigError
from surefoot.telemetry.doctor.doctor import Doctor
from surefoot.telemetry.doctor.rules import Rule, RuleLevel, read_rules, shipped_rules
from surefoot.telemetry.doctor.signals import SIGNS


def test_a_custom_rule_is_a_few_lines_of_yaml(tmp_path: Path):
    path = tmp_path / "rules.yaml"
    path.write_text(
        "rules:\n  JAM: {title: The queue is jammed, sign: above, levels: {warn: {metric: queue, limit: 5}}}\n"
    )
    doctor = Doctor(read_rules(path))
    for each in record(queue=lambda u: float(u)):
        doctor.observe(each)
    (finding,) = doctor.findings()
    assert (finding.rule, finding.since_update, finding.primary) == ("JAM", 10, True)


def test_a_custom_rule_is_a_few_lines_of_python():
    jam = Rule(
        id="JAM",
        title="The queue is jammed",
        sign=lambda history, limits: (
            {"queue": history.now("queue")} if history.now("queue") > limits["limit"] else None
        ),
        levels=(RuleLevel(severity="error", limits={"limit": 50}),),
    )
    doctor = Doctor([jam])
    for each in record(queue=lambda u: float(u)):
        doctor.observe(each)
    assert [f.evidence for f in doctor.findings()] == [{"queue": 51.0}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: {A: {title: t, sign: nonsense, levels: {warn: {}}}}", "no sign 'nonsense'"),
        ("rules: {A: {title: t, sign: above, levels: {bad: {}}}}", "not a severity"),
        ("rules: {A: {title: t, sign: above}}", "no levels"),
        ("rules: {A: {title: t, sign: above, levels: {warn: {needs: [3, 2]}}}}", "1 ≤ k ≤ n"),
        ("rules: {A: {title: t, sign: above, lvl: 1, levels: {warn: {}}}}", "'lvl'"),
        ("version: 9\nrules: {}", "version 9"),
        ("[1, 2]", "mapping"),
        ("a: [", "not YAML"),
    ],
)
def test_a_bad_rule_file_is_refused_with_the_reason(tmp_path: Path, text: str, message: str):
    (tmp_path / "r.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_rules(tmp_path / "r.yaml")


def test_the_shipped_rules_name_each_other_rightly_and_every_knob_exists():
    from surefoot.train.config import split_settings

    rules = shipped_rules()
    names = {rule.id for rule in rules}
    assert {f"R{n:02}" for n in range(1, 26)} <= names
    for rule in rules:
        assert set(rule.follows) <= names - {rule.id}
        for knob, target in rule.patch.items():
            value = 0.5 if isinstance(target, dict) and knob != "epochs" else 1 if isinstance(target, dict) else target
            split_settings({knob: str(value)})
    assert set(SIGNS.values()) - {SIGNS["below"]} <= {rule.sign for rule in rules}
