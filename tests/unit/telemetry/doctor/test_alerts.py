import math
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import TelemetryError
from surefoot.telemetry.doctor.alerts import AlertRule, Alerts, parse_rule, read_rules
from surefoot.telemetry.schema import EndRecord, Episodes, FindingRecord, UpdateRecord

COMMON: dict[str, Any] = {"v": "2.0.0", "run": "r", "seq": 1, "t": 1.0, "env_steps": 0}


def update(number: int, x: float | None, **fields: Any) -> UpdateRecord:
    return UpdateRecord(**COMMON, updates=number, m={"kl": x}, **fields)


def story(rule: AlertRule, values: list[float]) -> list[tuple[int, str, int]]:
    alerts = Alerts([rule])
    changed = [alert for i, x in enumerate(values, 1) for alert in alerts.take(update(i, x))]
    return [(alert.update, alert.status, alert.since_update) for alert in changed]


def test_an_alert_fires_once_and_resolves_once():
    rule = AlertRule(metric="kl", above=1.0, clear_after=2)
    assert story(rule, [0.5, 2.0, 3.0, 4.0, 0.5, 0.5, 0.5]) == [(2, "open", 2), (6, "resolved", 2)]


def test_a_breach_must_last():
    rule = AlertRule(metric="kl", above=1.0, lasting=3)
    assert story(rule, [2.0, 2.0, 0.5, 2.0, 2.0, 2.0]) == [(6, "open", 4)]


def test_hovering_at_the_threshold_neither_fires_again_nor_resolves():
    rule = AlertRule(metric="kl", above=1.0, clear=0.5, clear_after=1)
    assert story(rule, [1.1, 0.9, 1.1, 0.9, 1.1, 0.6, 0.5]) == [(1, "open", 1), (7, "resolved", 1)]


def test_without_a_clear_level_an_alert_clears_a_tenth_inside_the_threshold():
    rule = AlertRule(metric="kl", above=1.0, clear_after=1)
    assert story(rule, [1.1, 0.95, 0.9]) == [(1, "open", 1), (3, "resolved", 1)]
    low = AlertRule(metric="kl", below=-1.0, clear_after=1)
    assert story(low, [-1.1, -0.95, -0.9]) == [(1, "open", 1), (3, "resolved", 1)]


def test_a_rule_may_have_a_lower_threshold():
    assert story(AlertRule(metric="kl", below=1.0), [1.5, 0.5]) == [(2, "open", 2)]


def test_a_number_that_is_not_finite_breaks_its_rule_and_is_reported_without_a_rule():
    alerts = Alerts([AlertRule(metric="kl", below=-5.0)])
    changed = alerts.take(update(1, None, nonfinite={"m.kl": "nan"}))
    assert [alert.title for alert in changed] == ["kl below -5", "a number is not finite"]
    assert [alert.value for alert in changed] == [None, None]
    for number in (2, 3, 4):
        changed = alerts.take(update(number, 0.0))
    assert [alert.status for alert in changed] == ["resolved", "resolved"]
    assert alerts.open == {}


def test_a_missing_number_changes_nothing():
    assert story(AlertRule(metric="loss", above=0.0), [1.0, 2.0]) == []


def test_a_rule_whose_metric_never_occurred_is_named_with_the_nearest_metric():
    alerts = Alerts([parse_rule("apprx_kl>0.1"), parse_rule("approx_kl>0.1"), parse_rule("zzz<1 when mode=live")])
    assert alerts.unmeasured() == []  # nothing was read yet
    alerts.take(UpdateRecord(**COMMON, updates=1, m={"approx_kl": 0.01}))
    assert alerts.unmeasured() == [
        "the rule 'apprx_kl above 0.1' was never checked: no update has apprx_kl; did you mean approx_kl?",
        "the rule 'zzz below 1' was never checked: no update has zzz with the labels of its `when`",
    ]


def test_the_first_present_metric_of_several_is_used():
    assert story(AlertRule(metric="approx_kl|kl", above=1.0), [2.0]) == [(1, "open", 1)]


def test_a_line_for_several_updates_is_as_bad_as_its_worst():
    alerts = Alerts([AlertRule(metric="kl", above=1.0)])
    assert len(alerts.take(update(1, 0.5, m_max={"kl": 3.0}))) == 1


def test_episodes_have_rules_too():
    alerts = Alerts([AlertRule(metric="episodes.return_mean", below=10.0)])
    assert len(alerts.take(update(1, 0.0, episodes=Episodes.of([5.0], [3])))) == 1


def test_a_rule_may_apply_to_lines_with_a_label_only():
    rule = AlertRule(metric="kl", below=1.0, when={"data_mode": ["rollout", "mixed"]})
    for mode, fires in (("replay", 0), ("rollout", 1), ("mixed", 1)):
        assert len(Alerts([rule]).take(update(1, 0.0, labels={"data_mode": mode}))) == fires
    assert len(Alerts([rule]).take(update(1, 0.0))) == 1


def test_findings_open_and_resolve():
    alerts = Alerts([])
    finding = {"rule": "R03", "severity": "error", "title": "too far", "since_update": 2}
    (changed,) = alerts.take(FindingRecord(**COMMON, updates=3, **finding))
    assert str(changed) == "ERROR: R03: too far at update 3"
    assert list(alerts.open) == ["R03: too far"]
    alerts.take(FindingRecord(**COMMON, updates=9, **finding, status="resolved"))
    assert alerts.open == {}


@pytest.mark.parametrize(("reason", "fires"), [("finished", 0), ("interrupted", 0), ("error", 1), ("diverged", 1)])
def test_a_bad_end_is_fatal(reason: Any, fires: int):
    changed = Alerts([]).take(EndRecord(**COMMON, updates=3, reason=reason))
    assert [alert.severity for alert in changed] == ["fatal"] * fires


def test_rules_are_read_from_a_file(tmp_path: Path):
    file = tmp_path / "rules.yaml"
    file.write_text(
        "rules:\n"
        "  - {metric: approx_kl, above: 0.05, for: 3, clear: 0.02, clear_after: 5, severity: error, name: far}\n"
        "  - {metric: queue_conflict_events, below: 25, when: {data_mode: rollout}}\n"
    )
    first, second = read_rules(file)
    assert first == AlertRule(
        metric="approx_kl", above=0.05, lasting=3, clear=0.02, clear_after=5, severity="error", name="far"
    )
    assert (second.below, second.when, second.title) == (
        25,
        {"data_mode": ["rollout"]},
        "queue_conflict_events below 25",
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no list of rules"),
        ("rules: 3", "has no list of rules"),
        ("- 3", "rule 1 has no metric"),
        ("- {metric: kl}", "needs either above or below"),
        ("- {metric: kl, above: 1, below: 2}", "needs either above or below"),
        ("- {metric: kl, above: x}", "above is 'x'; it must be a number"),
        ("- {metric: kl, over: 1}", "over unknown; a rule has metric, above"),
        ("- {metric: kl, above: 1, severity: bad}", "one of info, warn, error, fatal"),
        ("- {metric: kl, above: 1, for: 0}", "count updates"),
        ("- {metric: kl, above: 1, clear: 2}", "clears at 2, outside its own threshold"),
        ("- {metric: kl, above: 1, when: rollout}", "when is 'rollout'; it must be labels"),
        ("a: [", "is not YAML"),
    ],
)
def test_an_invalid_rule_is_refused(tmp_path: Path, text: str, sentence: str):
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    with pytest.raises(TelemetryError) as error:
        read_rules(file)
    assert sentence in str(error.value)
    assert "rules.yaml" in str(error.value)


def test_a_missing_rules_file_is_reported(tmp_path: Path):
    with pytest.raises(TelemetryError, match="no rules at"):
        read_rules(tmp_path / "gone.yaml")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("approx_kl>0.05", AlertRule(metric="approx_kl", above=0.05)),
        ("entropy < -1e-3 :3", AlertRule(metric="entropy", below=-1e-3, lasting=3)),
        ("a|episodes.return_mean>10:1:error", AlertRule(metric="a|episodes.return_mean", above=10.0, severity="error")),
    ],
)
def test_a_rule_is_parsed_from_the_command_line(text: str, rule: AlertRule):
    assert parse_rule(text) == rule


@pytest.mark.parametrize("text", ["kl", "kl>", "kl>x", ">3", "kl=3"])
def test_a_text_that_is_no_rule_is_refused(text: str):
    with pytest.raises(TelemetryError, match="is not a rule"):
        parse_rule(text)


def test_infinity_is_beyond_every_threshold():
    assert AlertRule(metric="kl", above=1.0).is_breach(-math.inf)
