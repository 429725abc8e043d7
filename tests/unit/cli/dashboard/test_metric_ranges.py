import math
from typing import Any

import pytest

from surefoot.cli.dashboard.metric_ranges import MetricReading, Surroundings, out_of_range, readings
from surefoot.learn.report import UpdateReport

# A healthy update in the middle of a run; each test spoils one number.
HEALTHY: dict[str, Any] = {
    "update": 50,
    "policy_version": 50,
    "samples": 1024,
    "path": "torch",
    "path_reason": "",
    "approx_kl": 0.008,
    "clip_fraction": 0.1,
    "entropy": 0.5,
    "explained_variance": 0.6,
    "value_loss": 1.0,
    "target_std": 2.0,
    "grad_norm": 0.4,
    "first_ratio_error": 1e-7,
    "lr": 3e-4,
}


def report(**changes: Any) -> UpdateReport:
    return UpdateReport(**(HEALTHY | changes))


def read(key: str, reports: list[UpdateReport], **around: Any) -> MetricReading:
    known: dict[str, Any] = {"progress": 0.5, "first": report(), "usual_value_loss": 1.0, "max_entropy": math.log(2)}
    found = readings(reports, Surroundings(**(known | {"max_grad_norm": 0.5} | around)))
    return next(r for r in found if r.key == key)


def test_a_healthy_update_is_ok_throughout():
    found = readings([report()], Surroundings(progress=0.5, first=report(), usual_value_loss=1.0))
    assert out_of_range(found) == []
    assert {r.word for r in found} <= {"ok", ""}


@pytest.mark.parametrize(
    ("key", "value", "word", "level"),
    [
        ("approx_kl", 0.03, "high", "warn"),  # R03
        ("approx_kl", 0.2, "high", "bad"),
        ("approx_kl", 0.0, "low", "warn"),  # R04
        ("clip_fraction", 0.35, "high", "warn"),  # R05
        ("clip_fraction", 0.6, "high", "bad"),
        ("entropy", 0.01, "low", "warn"),  # R06: below 5 % of ln 2
        ("entropy", 0.69, "high", "warn"),  # R07: above 95 % of ln 2
        ("explained_variance", -0.2, "low", "warn"),  # R08
        ("value_loss", 3.5, "high", "warn"),  # R09: half the squared error against a variance of 4
        ("grad_norm", 6.0, "high", "warn"),  # R13: ten times the clip
        ("first_ratio_error", 5e-4, "high", "warn"),  # R02
        ("first_ratio_error", 2e-3, "high", "bad"),
    ],
)
def test_a_number_out_of_its_range_gets_a_word(key: str, value: float, word: str, level: str):
    reading = read(key, [report(**{key: value})] * 5)
    assert (reading.word, reading.level) == (word, level)


def test_two_odd_updates_of_five_raise_no_alarm_but_three_do():
    calm, wild = report(), report(approx_kl=0.05)
    assert read("approx_kl", [calm, wild, calm, wild, calm]).word == "ok"
    assert read("approx_kl", [wild, calm, wild, calm, wild]).word == "high"


def test_one_mismatched_ratio_is_enough():
    assert read("first_ratio_error", [report(first_ratio_error=0.01), *[report()] * 4]).level == "bad"


def test_a_target_kl_sets_its_own_limit():
    assert read("approx_kl", [report(approx_kl=0.025)], target_kl=0.02).word == "ok"
    assert read("approx_kl", [report(approx_kl=0.013)], target_kl=0.008).word == "high"


def test_nothing_moves_when_the_learning_rate_was_annealed_away():
    still = report(approx_kl=1e-7, clip_fraction=0.0, lr=1e-6)
    assert read("approx_kl", [still]).word == "ok"
    assert read("clip_fraction", [still]).word == "ok"


def test_a_critic_gets_time_to_warm_up():
    assert read("explained_variance", [report(explained_variance=-0.5, update=4)]).word == "wait"
    assert read("explained_variance", [report(explained_variance=-0.5)], progress=0.01).word == "wait"


def test_targets_that_hardly_vary_accuse_no_critic():
    # Numbers of a CartPole run after it was solved.
    solved = report(explained_variance=-4.84, value_loss=1e-4, target_std=0.004, target_mean=50.01)
    assert read("explained_variance", [solved], usual_value_loss=1e-4).level == "none"
    assert read("value_loss", [solved], usual_value_loss=1e-4).word == "ok"


def test_a_policy_that_reached_its_target_may_be_sure():
    sure = [report(entropy=0.01)]
    assert read("entropy", sure, target_reached=True).word == "ok"
    assert read("entropy", sure, target_reached=True, progress=0.25).word == "low"


def test_a_uniform_policy_is_fine_at_the_start():
    assert read("entropy", [report(entropy=math.log(2))], progress=0.1).word == "ok"


def test_what_is_not_a_number_is_bad():
    reading = read("value_loss", [report(), report(value_loss=math.nan), report()])
    assert (reading.word, reading.level) == ("nan", "bad")


def test_an_update_that_learned_nothing_is_not_judged():
    skipped = report(approx_kl=0.0, skipped_reason="every step was padding")
    assert read("approx_kl", [report(), skipped, skipped, skipped]).value == 0.008


def test_the_spread_of_actions_is_read_only_where_there_is_one():
    def keys(**changes: Any) -> set[str]:
        first = report(**changes)
        return {r.key for r in readings([first], Surroundings(progress=0.5, first=first, usual_value_loss=1.0))}

    assert "action_std" not in keys()
    assert "action_std" in keys(action_std=0.8)


def test_the_worst_comes_first():
    found = readings(
        [report(explained_variance=-1.0, first_ratio_error=0.1)],
        Surroundings(progress=0.5, first=report(), usual_value_loss=1.0),
    )
    assert [r.key for r in out_of_range(found)] == ["first_ratio_error", "explained_variance"]


def test_ranges_fit_their_column():
    wide = Surroundings(
        progress=0.5, first=report(action_std=55.0), usual_value_loss=123456.0, max_grad_norm=40.0, max_entropy=17.3
    )
    small = Surroundings(
        progress=0.5, first=report(), usual_value_loss=1.82e-6, max_grad_norm=0.000123, target_kl=0.00123
    )
    found = readings([report(action_std=1.0, target_std=1e5)], wide)
    assert max(len(r.healthy) for r in found + readings([report()], small)) <= 7
    assert max(len(r.label) for r in found) <= 10
