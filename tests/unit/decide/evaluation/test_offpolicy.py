"""Estimates against a world whose truth is known by its own definition."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.evaluation.offpolicy import evaluate, interval, sample_size, student
from surefoot.decide.promotion import GateConfig, Side, judge
from surefoot.errors import DecisionError

WORTH = np.array([[0.2, 0.7, 0.5], [0.8, 0.1, 0.4]])
"""Reward of 3 actions in 2 contexts."""
MU = np.array([[0.4, 0.3, 0.3], [0.3, 0.3, 0.4]])
PI = np.array([[0.1, 0.8, 0.1], [0.7, 0.1, 0.2]])
TRUTH = float((PI * WORTH).sum(axis=1).mean())
WRONG = WORTH[:, ::-1] * 0.5 + 0.3
"""A model that is wrong everywhere."""


def log(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, n)
    a = (rng.random(n)[:, None] > MU[x].cumsum(axis=1)).sum(axis=1)
    r = (rng.random(n) < WORTH[x, a]).astype(float)
    return {"x": x, "a": a, "reward": r, "logged": MU[x, a], "target": PI[x, a]}


def evaluated(n: int, seed: int, model: np.ndarray):
    d = log(n, seed)
    expected = (PI[d["x"]] * model[d["x"]]).sum(axis=1)
    return evaluate(d["reward"], d["logged"], d["target"], model[d["x"], d["a"]], expected)


@pytest.mark.parametrize("name", ["ips", "snips", "dr"])
@pytest.mark.parametrize("model", ["right", "wrong"])
def test_the_95_percent_intervals_hold_the_truth_in_about_95_of_100_replications(name: str, model: str):
    inside = 0
    for seed in range(200):
        found = getattr(evaluated(400, seed, WORTH if model == "right" else WRONG), name)
        inside += found.low <= TRUTH <= found.high
    assert 0.90 <= inside / 200 <= 0.99


def test_the_direct_method_is_only_as_good_as_its_model():
    assert evaluated(20_000, 0, WORTH).dm.value == pytest.approx(TRUTH, abs=0.01)
    assert abs(evaluated(20_000, 0, WRONG).dm.value - TRUTH) > 0.05


def test_a_good_model_makes_dr_narrower_than_ips():
    found = evaluated(2000, 1, WORTH)
    assert found.dr.high - found.dr.low < 0.8 * (found.ips.high - found.ips.low)


def test_the_same_policy_has_weights_of_one_and_its_own_mean():
    d = log(500, 3)
    found = evaluate(d["reward"], d["logged"], d["logged"], np.zeros(500), np.zeros(500))
    assert found.effective_sample_size == pytest.approx(500)
    assert found.ips.value == pytest.approx(d["reward"].mean())


def test_the_sample_size_is_kishs():
    assert sample_size(np.array([1.0, 1.0, 2.0])) == pytest.approx(16 / 6)


@pytest.mark.parametrize(("freedom", "table"), [(5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)])
def test_students_quantiles_are_those_of_the_tables(freedom: float, table: float):
    assert student(0.975, freedom) == pytest.approx(table, abs=0.01)


def test_a_log_without_propensities_is_refused():
    with pytest.raises(DecisionError, match="not above 0"):
        evaluate(np.ones(2), np.array([0.5, np.nan]), np.ones(2), np.ones(2), np.ones(2))
    with pytest.raises(DecisionError, match="empty"):
        evaluate(*(np.zeros(0),) * 5)


def test_one_decision_has_an_interval_without_bounds():
    assert interval(np.array([0.3]), 0.95).high == np.inf


def judged(new: np.ndarray, n: int = 4000, **config: float):
    d = log(n, 5)
    x, a = d["x"], d["a"]

    def side(policy: np.ndarray) -> Side:
        return Side(target=policy[x, a], expected=(policy[x] * WORTH[x]).sum(axis=1))

    return judge(d["reward"], d["logged"], WORTH[x, a], side(MU), side(new), GateConfig(**config))


def test_a_better_policy_is_promoted_and_a_worse_one_fails():
    assert judged(PI).verdict == "promote"
    worse = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    assert judged(worse).verdict == "fail"


def test_an_equal_policy_is_promoted_within_the_margin_and_held_without_one():
    almost = 0.99 * MU + 0.01 * MU[::-1]
    assert judged(almost).verdict == "promote"


def test_too_few_decisions_wait_whatever_they_say():
    found = judged(PI, n=200)
    assert found.verdict == "hold"
    assert "effective sample size" in found.reason
