"""The doctor, shown records whose illness is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.telemetry.doctor.doctor import Doctor, consequences, examine, patch_for, primary, seed_spread
from surefoot.telemetry.doctor.findings import Finding
from surefoot.telemetry.doctor.metric_history import Chart, Returns
from surefoot.telemetry.doctor.rules import Rule, RuleLevel, read_rules, shipped_rules
from surefoot.telemetry.doctor.signals import SIGNS, slope_interval
from surefoot.telemetry.schema import (
    VERSION,
    EndRecord,
    EpisodeRecord,
    Episodes,
    EventRecord,
    HeaderRecord,
    Record,
    UpdateRecord,
)

HEALTHY: dict[str, float] = {
    "policy_loss": -0.01,
    "value_loss": 1.0,
    "entropy": 0.5,
    "entropy_max": math.log(2),
    "approx_kl": 0.01,
    "clip_fraction": 0.1,
    "first_ratio_error": 0.0,
    "policy_lag": 0.0,
    "explained_variance": 0.6,
    "grad_norm": 0.4,
    "target_mean": 10.0,
    "target_std": 5.0,
    "advantage_std": 1.0,
    "zero_std_minibatches": 0.0,
    "reward_mean": 1.0,
    "reward_std": 0.5,
    "lr": 3e-4,
    "ent_coef": 0.0,
    "minibatches": 40.0,
    "nonfinite_steps": 0.0,
}


def record(
    *,
    updates: int = 100,
    returns: Callable[[float], float] = lambda share: 20.0 + 400.0 * share,
    end: EndRecord | None = None,
    **changes: Any,
) -> Iterator[Record]:
    """A run of 100 updates; a change is a number, or a function of the update's number."""
    seq = 0

    def common(update: int) -> dict[str, Any]:
        nonlocal seq
        seq += 1
        return {"v": VERSION, "run": "r", "seq": seq, "t": 1e9 + update, "env_steps": 100 * update, "updates": update}

    config = {"ppo": {"lr": 3e-4, "ent_coef": 0.0, "max_grad_norm": 0.5, "target_kl": None}}
    yield HeaderRecord(**common(0), env="X-v0", seed=0, config=config, session="s", total_steps=100 * updates)
    noise = np.random.default_rng(0)
    for update in range(1, updates + 1):
        m = {name: x + 1e-3 * abs(x) * noise.standard_normal() for name, x in HEALTHY.items()}
        m |= {name: HEALTHY[name] for name in ("lr", "ent_coef", "minibatches", "entropy_max", "policy_lag")}
        m |= {name: x(update) if callable(x) else x for name, x in changes.items()}
        mean = returns(update / updates) + noise.standard_normal()
        for _ in range(2):
            yield EpisodeRecord(
                **common(update), return_=mean + noise.standard_normal(), length=int(abs(mean)) + 1, env=0
            )
        yield UpdateRecord(**common(update), m=m, episodes=Episodes(count=10, return_mean=mean))
    if end is not None:
        yield EndRecord(**common(updates), reason=end.reason, message=end.message)


def found(records: Iterator[Record]) -> dict[str, Finding]:
    doctor = Doctor()
    for each in records:
        doctor.see(each)
    return {f.rule: f for f in doctor.findings()}


def first(records: Iterator[Record]) -> Finding:
    (one,) = [f for f in found(records).values() if f.primary]
    return one


def test_a_healthy_run_has_no_finding():
    assert found(record()) == {}


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("R02", {"first_ratio_error": 0.02}),
        ("R10", {"reward_std": 0.0, "reward_mean": 0.0, "returns": lambda share: 0.0}),
        ("R24", {"target_mean": 3e5, "value_loss": 1e10}),
        ("R27", {"frozen_share": 0.4}),
        ("R28", {"weight_jump": 0.3}),
        ("R21B", {"bootstrap_zero_share": 1.0}),
        ("R26", {"returns": lambda share: 30.0 - 20.0 * min(1.0, 5 * share)}),
        ("R03", {"approx_kl": 0.6, "returns": lambda share: 20.0}),
        ("R07", {"entropy": 0.69, "ent_coef": 0.5, "returns": lambda share: 20.0}),
        ("R06", {"entropy": lambda u: 0.5 if u < 8 else 0.001, "returns": lambda share: 20.0}),
        ("R09", {"explained_variance": -9.0, "returns": lambda share: 20.0}),
        ("R16", {"policy_lag": 9.0, "effective_sample_size": 0.05}),
        ("R01", {"nonfinite_steps": lambda u: float(u > 50)}),
    ],
)
def test_each_illness_is_named_by_its_rule(rule: str, changes: dict[str, Any]):
    assert first(record(**changes)).rule == rule


def test_a_run_that_ended_on_a_nan_says_so_though_no_update_came_of_it():
    end = EndRecord(
        v=VERSION, run="r", seq=1, t=0, env_steps=0, updates=0, reason="error", message="NonFiniteValue: reward is nan"
    )
    assert first(record(updates=3, end=end)).severity == "fatal"


def test_what_follows_from_another_finding_is_folded_below_it():
    doctor = Doctor()
    for each in record(approx_kl=0.6, clip_fraction=0.8, returns=lambda share: 20.0):
        doctor.see(each)
    tree = consequences(doctor.findings(), doctor.rules)
    assert {f.rule for f in tree["R03"]} >= {"R05", "R11"}
    assert doctor.findings()[0].rule == "R03"


def test_a_finding_opens_and_is_resolved_and_knows_since_when():
    doctor, told = Doctor(), list[Finding]()
    for each in record(first_ratio_error=lambda u: 0.02 if 20 <= u < 40 else 0.0):
        told += doctor.see(each)
    assert [(f.rule, f.status) for f in told] == [("R02", "open"), ("R02", "resolved")]
    assert told[0].since_update == 22, "three of five"
    assert told[0].since_env_steps == 2200
    assert not doctor.findings()[0].primary, "what is over is nowhere to begin"


def test_one_odd_update_is_no_finding():
    assert found(record(first_ratio_error=lambda u: 0.02 if u == 20 else 0.0)) == {}


def test_a_cause_that_is_over_still_explains_what_is_not():
    """The learning rate wrecked the policy at the start; all that is left to see is that it does not move."""
    run = record(
        approx_kl=lambda u: 0.9 if u < 15 else 0.0,
        entropy=lambda u: 0.5 if u < 10 else 0.0001,
        returns=lambda share: 20.0,
    )
    one = first(run)
    assert (one.rule, one.status) == ("R03", "resolved")


def test_the_patch_is_in_the_units_of_the_run():
    chart = Chart()
    for each in record(updates=2):
        chart.add(each)
    assert patch_for({"lr": {"times": 0.3}}, chart) == {"lr": 9e-5}
    assert patch_for({"ent_coef": {"times": 3, "least": 0.01}}, chart) == {"ent_coef": 0.01}
    assert patch_for({"max_grad_norm": 0.5, "target_kl": 0.02}, chart) == {"target_kl": 0.02}, "the first is so already"
    assert patch_for({"unheard_of": {"times": 2}}, chart) == {}


def test_two_writers_in_one_record_are_seen():
    doctor = Doctor()
    for mine, other in zip(record(updates=5), record(updates=5), strict=True):
        doctor.see(mine)
        doctor.see(other)
    (finding,) = [f for f in doctor.findings() if f.rule == "R19"]
    assert finding.severity == "error"


def test_a_resumed_run_is_no_gap():
    doctor = Doctor()
    records = list(record(updates=6))
    head = records[0]
    assert isinstance(head, HeaderRecord)
    for each in records:
        doctor.see(each)
    again = {"v": VERSION, "run": "r", "t": 2e9, "env_steps": 300, "updates": 3}
    doctor.see(EventRecord(**again, seq=records[-1].seq + 1, name="resumed"))
    doctor.see(HeaderRecord(**again, seq=records[-1].seq + 2, env="X", seed=0, config=head.config, session="another"))
    doctor.see(UpdateRecord(**again | {"env_steps": 400}, seq=records[-1].seq + 3, m=dict(HEALTHY)))
    assert doctor.chart.odd_lines == 0


def test_updates_that_repeat_to_the_last_digit_are_no_learning():
    run = [each for each in record(updates=30) if not isinstance(each, EpisodeRecord)]
    doctor = Doctor()
    for each in run:
        if isinstance(each, UpdateRecord):
            each.m.update({name: round(HEALTHY[name], 9) for name in ("policy_loss", "value_loss", "entropy")})
            each.m.update({n: HEALTHY[n] for n in ("approx_kl", "grad_norm", "explained_variance", "advantage_std")})
        doctor.see(each)
    assert "R17" in {f.rule for f in doctor.findings()}


def test_a_time_limit_that_counts_as_an_end_is_seen():
    doctor = Doctor()
    for each in record():
        if isinstance(each, EpisodeRecord):
            each.length = min(each.length, 200)
        doctor.see(each)
    assert "R21" in {f.rule for f in doctor.findings()}
    assert "R21" not in found(record())


def test_a_rule_of_ones_own_is_a_few_lines_of_yaml(tmp_path: Path):
    own = tmp_path / "rules.yaml"
    own.write_text(
        "rules:\n  JAM: {title: The queue is jammed, sign: above, levels: {warn: {metric: queue, limit: 5}}}\n"
    )
    doctor = Doctor(read_rules(own))
    for each in record(queue=lambda u: float(u)):
        doctor.see(each)
    (finding,) = doctor.findings()
    assert (finding.rule, finding.since_update, finding.primary) == ("JAM", 10, True)


def test_a_rule_of_ones_own_is_a_few_lines_of_python():
    jam = Rule(
        id="JAM",
        title="The queue is jammed",
        sign=lambda chart, limits: {"queue": chart.now("queue")} if chart.now("queue") > limits["limit"] else None,
        levels=(RuleLevel(severity="error", limits={"limit": 50}),),
    )
    doctor = Doctor([jam])
    for each in record(queue=lambda u: float(u)):
        doctor.see(each)
    assert [f.evidence for f in doctor.findings()] == [{"queue": 51.0}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules: {A: {title: t, sign: nonsense, levels: {warn: {}}}}", "no sign 'nonsense'"),
        ("rules: {A: {title: t, sign: above, levels: {bad: {}}}}", "no severity"),
        ("rules: {A: {title: t, sign: above}}", "no levels"),
        ("rules: {A: {title: t, sign: above, levels: {warn: {needs: [3, 2]}}}}", "1 ≤ k ≤ n"),
        ("rules: {A: {title: t, sign: above, lvl: 1, levels: {warn: {}}}}", "'lvl'"),
        ("version: 9\nrules: {}", "version 9"),
        ("[1, 2]", "mapping"),
        ("a: [", "not YAML"),
    ],
)
def test_a_bad_rule_file_says_what_would_be_right(tmp_path: Path, text: str, said: str):
    (tmp_path / "r.yaml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_rules(tmp_path / "r.yaml")


def test_the_shipped_rules_name_each_other_rightly_and_every_knob_exists():
    from surefoot.train.config import split_settings

    rules = shipped_rules()
    names = {rule.id for rule in rules}
    assert {f"R{n:02}" for n in range(1, 26)} <= names
    for rule in rules:
        assert set(rule.follows) <= names - {rule.id}
        for knob, wish in rule.patch.items():
            value = 0.5 if isinstance(wish, dict) and knob != "epochs" else 1 if isinstance(wish, dict) else wish
            split_settings({knob: str(value)})
    assert set(SIGNS.values()) - {SIGNS["below"]} <= {rule.sign for rule in rules}


def test_folding_ends_where_rules_explain_each_other():
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
    looked = examine(tmp_path)
    assert [f.rule for f in looked.findings if f.primary] == ["R02"]
    assert (looked.updates, looked.env_steps, looked.final_return) == (30, 3000, None)


def test_a_finding_goes_to_json_and_back():
    finding = Finding(rule="R02", severity="error", title="t", evidence={"x": 1.0}, causes=["c"], patch={"lr": 1e-4})
    assert Finding.from_json(finding.to_json()) == finding


def test_seeds_that_differ_widely_are_told():
    assert seed_spread([100.0, 101.0, 99.0, 100.0]) is None
    finding = seed_spread([100.0, 10.0, 200.0, 120.0])
    assert finding is not None
    assert finding.rule == "R25"
    assert seed_spread([1.0, 500.0]) is None, "two say nothing"


def test_theil_and_sen_find_a_line_among_outliers():
    x = np.arange(20.0)
    y = 3.0 * x
    y[5] = 1e6
    low, high = slope_interval(x, y)
    assert low <= 3.0 <= high
    assert high < 10.0


def test_returns_keep_their_means_when_they_are_thinned():
    returns = Returns()
    for i in range(5000):
        returns.add(i, float(i), 1)
    assert len(returns.means) <= Returns.LENGTH
    assert np.average(returns.means, weights=returns.counts) == pytest.approx(2499.5)
    assert returns.steps[-1] == 4999


@pytest.mark.parametrize(
    ("rule", "ill", "well"),
    [
        ("R20M", {"rss_mb": lambda u: 300.0 + 20.0 * u}, {"rss_mb": 300.0}),
        ("R22S", {"obs_std_max": 1e-5}, {"obs_std_max": 0.5}),
        ("R15", {"dormant_share": 0.6, "returns": lambda share: 20.0}, {"dormant_share": 0.1}),
    ],
)
def test_advice_is_given_where_it_fits_and_nowhere_else(rule: str, ill: dict[str, Any], well: dict[str, Any]):
    assert rule in found(record(**ill))
    assert rule not in found(record(**well))


def test_a_long_silence_is_told():
    def silent() -> Iterator[Record]:
        for each in record():
            if each.updates >= 60:
                each.t += 1000.0
            yield each

    assert found(silent())["R19G"].since_update == 60


def test_episodes_of_one_step_are_told():
    def short() -> Iterator[Record]:
        for each in record():
            yield msgspec.structs.replace(each, length=1) if isinstance(each, EpisodeRecord) else each

    assert "R21S" in found(short())
