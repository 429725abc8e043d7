"""Tests of `surefoot.decide.rewards`: every term of the formula by arithmetic, and the precedence of feedback."""

from __future__ import annotations

import math

import pytest

from surefoot.decide.rewards import RewardConfig, RewardFacts, efficiency, potential, reward_of, shaped
from surefoot.errors import ConfigError


def test_a_confident_fast_run_earns_about_two_thirds():
    # 0.6 · 0.87 + 0.1 · (1 - d/1000)
    assert reward_of(RewardFacts(confidence=0.87, duration_ms=0.0)).value == pytest.approx(0.622)
    assert reward_of(RewardFacts(confidence=0.87, duration_ms=0.0)).value == pytest.approx(0.65, abs=0.03)


def test_a_missing_quality_adds_nothing_unless_quality_fallback_is_set():
    facts = RewardFacts(confidence=0.5, duration_ms=1000.0)
    assert reward_of(facts).value == pytest.approx(0.3)
    assert reward_of(facts, config=RewardConfig(quality_fallback=True)).value == pytest.approx(0.45)


def test_the_parts_add_up():
    facts = RewardFacts(confidence=0.8, quality=0.9, duration_ms=2500.0, errors=1, warnings=2)
    reward = reward_of(facts)
    assert reward.parts == pytest.approx(
        {"confidence": 0.48, "quality": 0.27, "efficiency": -0.05, "errors": -0.5, "warnings": -0.2, "timeout": -0.3}
    )
    assert reward.value == pytest.approx(sum(reward.parts.values()))


@pytest.mark.parametrize(
    ("duration", "expected"), [(0, 1.0), (500, 0.5), (1000, 0.0), (1500, -0.25), (2000, -0.5), (9000, -0.5)]
)
def test_efficiency_falls_from_one_to_minus_a_half(duration: float, expected: float):
    assert efficiency(duration, 1000.0) == pytest.approx(expected)


def test_a_timeout_is_more_than_twice_the_budget():
    assert reward_of(RewardFacts(confidence=0.0, duration_ms=2000.0)).parts["timeout"] == 0.0
    assert reward_of(RewardFacts(confidence=0.0, duration_ms=2001.0)).parts["timeout"] == -0.3


@pytest.mark.parametrize(("rating", "expected"), [(0, -1), (1, -0.6), (2, -0.2), (3, 0.2), (4, 0.6), (5, 1)])
def test_a_rating_replaces_the_reward(rating: int, expected: float):
    reward = reward_of(RewardFacts(confidence=0.9, errors=3), {"rating": rating, "helpful": False, "success": False})
    assert (reward.value, reward.said_by) == (pytest.approx(expected), "rating")


def test_helpful_replaces_the_reward():
    assert reward_of(RewardFacts(confidence=0.1), {"helpful": True, "success": False}).value == 1.0
    assert reward_of(RewardFacts(confidence=0.9), {"helpful": False}).value == -1.0
    assert reward_of(RewardFacts(confidence=0.9), {"helpful": 4}).value == pytest.approx(0.6)


def test_success_and_outcome_decide_without_a_rating():
    assert reward_of(RewardFacts(confidence=0.5), {"success": True, "outcome": "failed"}).value == 1.0
    assert reward_of(RewardFacts(confidence=0.5), {"outcome": "answered_question"}).value == 1.0
    assert reward_of(RewardFacts(confidence=0.5), {"outcome": "gave_up"}).value == -1.0


def test_relevance_and_selected_feed_quality_and_a_comment_changes_nothing():
    facts = RewardFacts(confidence=0.0, duration_ms=1000.0, sources=["a", "b"])
    assert reward_of(facts, {"relevance": 0.5}).value == pytest.approx(0.15)
    assert reward_of(facts, {"selected": ["a"]}).value == pytest.approx(0.15)
    assert reward_of(facts, {"relevance": 1.0, "selected": []}).value == pytest.approx(0.15)
    assert reward_of(facts, {"comment": "terrible"}) == reward_of(facts)


def test_rewards_stay_within_one_and_have_a_form_in_0_to_1():
    worst = reward_of(RewardFacts(confidence=0.0, errors=9))
    assert (worst.value, worst.unit) == (-1.0, 0.0)
    assert reward_of(RewardFacts(confidence=0.5), {"rating": 5}).unit == 1.0


@pytest.mark.parametrize("bad", [{"rating": "five"}, {"rating": math.nan}, {"success": 1}, {"selected": "a"}])
def test_feedback_that_cannot_be_read_is_named(bad: dict[str, object]):
    with pytest.raises(ConfigError, match=next(iter(bad))):
        reward_of(RewardFacts(confidence=0.5), bad)


@pytest.mark.parametrize("number", [1.0, 0.0])
def test_a_number_in_the_place_of_feedback_is_refused(number: float):
    """`agent.feedback(run, 1.0)`: the reward is the argument after it."""
    with pytest.raises(ConfigError, match="must be a dict such as"):
        reward_of(RewardFacts(confidence=0.5), number)  # pyright: ignore[reportArgumentType]


def test_shaping_telescopes_over_an_episode():
    phi = [0.4, 0.7, 0.2]
    gamma = 0.9
    total = sum(
        gamma**t * shaped(0.0, phi[t], phi[t + 1] if t < 2 else 9.0, gamma=gamma, terminated=t == 2) for t in range(3)
    )
    assert total == pytest.approx(-phi[0]), "the telescoping sum is -φ(s₀) for every sequence of actions"


def test_the_potential_by_hand():
    assert potential(0.5, 5, 0) == pytest.approx(0.45)
    assert potential(0.5, 50, 10) == pytest.approx(0.5)
