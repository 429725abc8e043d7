"""Causes come before their symptoms: what the environment does, and settings beyond all published ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from doctor_runs import findings_of, primary_of, record

from surefoot.telemetry.doctor.cause_signals import setting_value
from surefoot.telemetry.doctor.metric_history import MetricHistory
from surefoot.telemetry.doctor.rules import shipped_rules
from surefoot.telemetry.schema import EpisodeRecord, HeaderRecord, MinibatchRecord, Record


def flat(share: float) -> float:
    return 20.0


def with_header(records: Iterator[Record], *, env: str = "X-v0", **ppo: Any) -> Iterator[Record]:
    for each in records:
        if isinstance(each, HeaderRecord):
            each = msgspec.structs.replace(each, env=env, config={"ppo": {**each.config["ppo"], **ppo}})
        yield each


@pytest.mark.parametrize(
    ("rule", "measured"),
    [
        ("E01", {"obs_constant_share": 1.0, "frozen_share": 0.3}),
        (
            "E02",
            {"obs_repeat_share": 0.75, "obs_distinct_share": 0.25, "action_effect_recent": 0.5, "action_effect": 0.01},
        ),
        ("E04", {"obs_clock_share": 0.2, "obs_mean_max": 5e4, "obs_std_max": 5e4}),
        ("E06", {"obs_saturated_share": 0.5, "obs_repeat_share": 0.6, "obs_distinct_share": 0.05}),
        ("E07", {"obs_explained": 0.02, "action_effect": 0.0, "action_effect_late": 0.0}),
        ("E08", {"obs_explained": 0.9, "action_effect": 0.001, "action_effect_late": 0.002}),
        ("E09", {"obs_explained": 0.9, "action_effect": 0.01, "action_effect_late": 0.8}),
        ("E10", {"reward_explained": 0.02, "reward_roughness": 1.0}),
        ("E11", {"reward_lag": 5.0}),
        ("E12", {"reward_at_end_share": 1.0}),
        # What a probe measures.
        ("E07", {"obs_explained": 0.9, "replay_view_correlation": 0.2, "effect_by_episode": 0.9}),
        ("E08", {"action_effect": 0.9, "action_share": 0.5, "branch_effect": 0.0, "branch_leak": 1.0}),
        ("E08", {"action_effect": 1.0, "action_share": 0.5, "branch_effect": 1.0, "branch_size": 0.003}),
        ("E08", {"branch_gain": 0.02}),
        ("E09", {"branch_effect": 1.0, "branch_size": 1.0, "branch_lag": 2.0}),
        ("E10", {"replay_reward_random": 0.5}),
        ("E10", {"branch_effect": 1.0, "branch_reward": 0.0, "reward_varied_share": 0.9}),
        ("E11", {"branch_effect": 1.0, "branch_reward_lag": 3.0, "reward_varied_share": 0.9}),
        ("E22", {"reset_ignored_share": 1.0}),
        ("E17", {"obs_dropout_share": 0.5, "obs_explained": 0.2, "action_effect": 0.02, "action_effect_late": 0.0}),
        ("E18", {"stream_difference": 0.97, "obs_explained": 0.9, "action_effect": 0.02, "action_effect_late": 0.3}),
    ],
)
def test_a_fault_of_the_environment_is_named_before_what_follows_from_it(rule: str, measured: dict[str, float]):
    stuck = {"entropy": 0.69, "ent_coef": 0.03, "explained_variance": -0.1}
    assert primary_of(record(returns=flat, **stuck, **measured)).rule == rule


@pytest.mark.parametrize("name", ["end_random_share", "replay_end_random"])
def test_ends_at_random_are_a_cause_unless_they_are_all_at_a_time_limit(name: str):
    measured: dict[str, Any] = {name: lambda update: 0.8 if update > 20 else 0.0}
    at_random = ended(lambda number: 3 + 7 * number % 97, terminated=True, **measured)
    assert primary_of(at_random).rule == "E13"
    at_limit = ended(lambda number: 40, terminated=True, **measured)
    assert primary_of(at_limit).rule == "R21"


def test_where_a_probe_changed_single_actions_estimates_of_their_effect_do_not_count():
    vague = {"action_effect": 0.01, "action_share": 0.001, "action_effect_late": 0.8}
    exact = {"branch_effect": 1.0, "branch_size": 0.7, "branch_lag": 0.0}
    assert {"E08", "E09"}.isdisjoint(findings_of(record(returns=flat, **vague, **exact)))


def ended(lengths: Callable[[int], int], *, terminated: bool, **measured: Any) -> Iterator[Record]:
    for number, each in enumerate(record(returns=flat, **measured)):
        if isinstance(each, EpisodeRecord):
            each = msgspec.structs.replace(each, length=lengths(number), terminated=terminated)
        yield each


def test_ends_at_different_lengths_that_are_all_truncated_are_named():
    assert primary_of(ended(lambda n: 10 + n % 40, terminated=False)).rule == "E16"
    assert "E16" not in findings_of(ended(lambda n: 10 + n % 40, terminated=True))
    assert "E16" not in findings_of(ended(lambda n: 200, terminated=False))


def test_a_learning_rate_that_ends_early_is_named_and_one_that_falls_to_the_end_is_not():
    early = record(returns=flat, lr=lambda n: 3e-4 if n < 5 else 1e-9)
    assert primary_of(early).rule == "S18"
    assert "S18" not in findings_of(record(lr=lambda n: 3e-4 * (1 - n / 101)))


def test_places_on_a_map_may_stay_the_same():
    assert "E02" not in findings_of(record(obs_repeat_share=0.6, obs_distinct_share=0.01))


def test_a_reward_that_changes_slowly_is_not_noise():
    assert "E10" not in findings_of(record(reward_explained=0.02, reward_roughness=0.01))


def test_a_run_that_thrives_may_pay_at_the_end():
    assert "E12" not in findings_of(record(reward_at_end_share=1.0))


@pytest.mark.parametrize(
    ("rule", "knob", "value"),
    [
        ("S01", "lr", 0.3),
        ("S01", "lr", {"kind": "linear", "start": 0.3, "end": 0.0}),
        ("S02", "gamma", 0.5),
        ("S03", "ent_coef", 1.0),
        ("S04", "clip", 5.0),
        ("S05", "lam", 0.0),
        ("S06", "vf_coef", 100.0),
        ("S07", "max_grad_norm", 1e-4),
        ("S08", "epochs", 100),
        ("S13", "hidden", [1]),
        ("S14", "target_kl", 1e-6),
    ],
)
def test_a_setting_beyond_all_published_ones_is_a_cause_even_while_returns_rise(rule: str, knob: str, value: Any):
    finding = primary_of(with_header(record(**({"lr": 0.3} if knob == "lr" else {})), **{knob: value}))
    assert finding.rule == rule
    assert knob in finding.patch


def test_ordinary_settings_are_no_finding():
    from surefoot.learn.config import PPOConfig
    from surefoot.learn.presets import PRESETS

    for preset in PRESETS.values():
        config = PPOConfig.make(preset=preset.name).to_json()
        findings = findings_of(with_header(record(updates=30), **config))
        # S12 is about the number of updates, which is that of this made-up record.
        assert not [rule for rule in findings if rule.startswith("S") and rule != "S12"], preset.name


def test_the_reward_of_a_known_environment_has_a_known_sign():
    def falls(share: float) -> float:
        return -20.0 + 10.0 * share

    assert primary_of(with_header(record(returns=falls), env="CartPole-v1")).rule == "E14"
    assert "E14" not in findings_of(with_header(record(returns=falls), env="Acrobot-v1"))


def test_derived_settings_are_computed():
    history = MetricHistory()
    history.config = {"ppo": {"envs": 8, "rollout_steps": 32, "minibatch_size": None, "minibatches": 4}}
    history.total_steps = 2560
    assert [setting_value(history, name) for name in ("batch", "planned_updates", "minibatch")] == [256.0, 10.0, 64.0]


def test_a_factor_applies_to_the_start_of_a_schedule():
    """Under a schedule the learning rate of now is small; a factor of it would be far too small."""
    schedule = {"kind": "linear", "start": 1e-3, "end": 0.0}

    def falling(update: int) -> float:
        return 1e-3 * (1.0 - update / 100)

    (finding,) = [
        f for f in findings_of(with_header(record(approx_kl=0.5, lr=falling), lr=schedule)).values() if f.primary
    ]
    assert finding.rule == "R03"
    assert finding.patch["lr"] == "lin_0.0003"


def test_one_gradient_step_has_no_kl_divergence_to_measure():
    findings = findings_of(record(returns=flat, approx_kl=0.0, minibatches=1.0))
    assert "R04" not in findings
    assert "S09" in findings


def test_lines_of_minibatches_do_not_look_like_a_second_writer():
    def mixed() -> Iterator[Record]:
        seq, before = 0, 0
        for each in record(updates=30):
            if each.env_steps > before and each.updates > 1:
                seq += 1
                common = {
                    "v": each.v,
                    "run": "r",
                    "seq": seq,
                    "t": each.t,
                    "env_steps": before,
                    "updates": each.updates - 1,
                }
                yield MinibatchRecord(**common, epoch=1, minibatch=1, m={}, sample_rate=0.1, dropped=0)
            seq += 1
            before = max(before, each.env_steps) if type(each).__name__ == "UpdateRecord" else before
            yield msgspec.structs.replace(each, seq=seq)

    assert "R19" not in findings_of(mixed())


def test_every_pattern_of_follows_was_replaced_by_ids():
    ids = {rule.id for rule in shipped_rules()}
    assert all(name in ids for rule in shipped_rules() for name in rule.follows)
