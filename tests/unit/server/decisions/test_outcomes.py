"""Rewards, and the outcomes that wait to be learned from."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from surefoot.server import schema
from surefoot.server.decisions.outcomes import ClientShares, PendingOutcomes, outcomes_of, value_of

from .service_cases import refused


def test_outcomes_are_taken_in_order_and_an_episode_as_a_whole():
    pending = PendingOutcomes()
    for position, name in ((1, "a"), (2, "b"), (2, "c"), (3, "d")):
        pending.put(position, SimpleNamespace(id=name), 1.0)
    pending.batch = 2
    assert [each.record.id for each in pending.finished(0)] == ["a", "b", "c"]
    assert [each.record.id for each in pending.finished(2)] == ["d"]
    assert len(pending) == 1


def test_a_step_is_worth_the_mean_of_the_rewards_from_it_on():
    steps = [("a", 0.0), ("b", 0.5), ("c", 1.0)]
    assert outcomes_of(steps) == [("c", 1.0), ("b", 0.75), ("a", 0.5)]


@pytest.mark.parametrize(
    ("clients", "share", "loud"),
    [(["loud"] * 100, 0.2, 1.0), (["loud"] * 9 + ["b"], 0.2, 0.5), (["loud"] * 6 + list("bcde"), 0.2, 0.2)],
)
def test_no_client_makes_up_more_than_its_share(clients, share, loud):
    shares, learned = ClientShares(), list[tuple[str, bool]]()
    for _ in range(2000 // len(clients)):
        learned += [(client, shares.take(client, share)) for client in clients]
    last = learned[-1000:]
    assert sum(counts for client, counts in last if client == "loud") / len(last) == pytest.approx(loud, abs=0.02)
    assert all(counts for client, counts in last if client != "loud")


def test_a_reward_is_a_value_or_the_sum_of_its_parts():
    assert value_of(schema.NewReward(parts={"a": 0.25, "b": 0.5}), (0.0, 1.0)) == 0.75
    with refused("invalid", "/value"):
        value_of(schema.NewReward(value=2.0), (0.0, 1.0))
