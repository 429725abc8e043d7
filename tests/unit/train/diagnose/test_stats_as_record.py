"""The doctor's rules on numbers that have no record."""

from surefoot.data.spaces import Discrete
from surefoot.telemetry.doctor.rules import shipped_rules
from surefoot.train.diagnose.stats_as_record import findings_of_stats
from surefoot.train.spec import make_spec


def rules_of(stats: dict[str, float], first_letter: str, **settings: str) -> list[str]:
    spec = make_spec("CartPole-v1", Discrete(2), settings=settings)
    rules = [rule for rule in shipped_rules() if rule.id.startswith(first_letter)]
    return [finding.rule for finding in findings_of_stats(spec, stats, rules, longest=500)]


def test_settings_are_judged_without_any_number():
    assert rules_of({}, "S") == []
    assert rules_of({}, "S", lr="1e-6") == ["S01"]


def test_a_number_beyond_a_limit_in_every_update_is_a_finding():
    usual = rules_of({"approx_kl": 0.01, "clip_fraction": 0.1}, "R")
    assert set(rules_of({"approx_kl": 5.0, "clip_fraction": 0.9}, "R")) - set(usual)
