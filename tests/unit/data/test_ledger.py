"""Outcomes find their decisions by id, and finished episodes become one dense rollout."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.data.experience import Decision, Outcome
from surefoot.data.ledger import Ledger
from surefoot.errors import DecisionError, NonFiniteValue, UnknownDecision


def decision(id: str, episode: str = "", candidates: int = 2, value: float = 0.5) -> Decision:
    obs = {"x": np.arange(candidates, dtype=np.float32)}
    mask = np.ones(candidates, bool)
    return Decision(
        id=id, episode=episode or id, obs=obs, action=1, log_prob=-0.5, value=value, policy_version=3, action_mask=mask
    )


def test_a_decision_that_stands_alone_is_ready_with_its_outcome():
    ledger = Ledger()
    ledger.open(decision("a"))
    assert (ledger.waiting, len(ledger)) == (1, 0)
    ledger.close(Outcome(decision="a", reward=1.0))
    rollout = ledger.drain()
    assert rollout is not None
    assert rollout.reward.tolist() == [[1.0]]
    assert rollout.terminated.all()
    assert ledger.drain() is None


def test_an_episode_waits_for_all_its_outcomes_in_whatever_order_they_come():
    ledger = Ledger()
    for id, value in (("a", 0.1), ("b", 0.2)):
        ledger.open(decision(id, "e", value=value))
    ledger.close(Outcome(decision="b", reward=2.0))
    assert len(ledger) == 0
    ledger.close(Outcome(decision="a", reward=1.0, terminated=False))
    rollout = ledger.drain()
    assert rollout is not None
    assert rollout.reward[:, 0].tolist() == [1.0, 2.0]
    assert rollout.start[:, 0].tolist() == [True, False]
    assert rollout.next_value[0, 0] == pytest.approx(0.2), "the successor's value"


def test_a_truncated_episode_is_worth_its_bootstrap():
    ledger = Ledger()
    ledger.open(decision("a"))
    ledger.close(Outcome(decision="a", reward=0.0, terminated=False, truncated=True, bootstrap=0.7))
    rollout = ledger.drain()
    assert rollout is not None
    assert rollout.next_value[0, 0] == pytest.approx(0.7)
    assert rollout.truncated[0, 0]


def test_rows_of_candidates_are_padded_and_masked_at_their_end():
    ledger = Ledger()
    for id, candidates in (("a", 2), ("b", 3)):
        ledger.open(decision(id, candidates=candidates))
        ledger.close(Outcome(decision=id, reward=0.0))
    rollout = ledger.drain()
    assert rollout is not None
    assert rollout.action_mask is not None
    assert rollout.action_mask[0].tolist() == [[True, True, False], [True, True, True]]
    assert rollout.obs["x"][0].tolist() == [[0, 1, 0], [0, 1, 2]]


def test_an_outcome_for_nobody_a_second_one_and_one_that_is_no_number_are_refused():
    ledger = Ledger()
    ledger.open(decision("a"))
    with pytest.raises(NonFiniteValue, match="nan"):
        ledger.close(Outcome(decision="a", reward=float("nan")))
    ledger.close(Outcome(decision="a", reward=0.0))
    for id in ("a", "b"):
        with pytest.raises(UnknownDecision, match=f"no open decision '{id}'"):
            ledger.close(Outcome(decision=id, reward=0.0))


def test_the_same_id_twice_is_refused_and_too_many_open_ones_expire():
    ledger = Ledger(capacity=2)
    ledger.open(decision("a"))
    with pytest.raises(DecisionError, match="already exists"):
        ledger.open(decision("a"))
    ledger.open(decision("b"))
    ledger.open(decision("c"))
    assert (ledger.waiting, ledger.expired) == (2, 1)
    with pytest.raises(UnknownDecision):
        ledger.find("a")
