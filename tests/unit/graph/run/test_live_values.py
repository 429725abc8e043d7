"""Summaries of values on edges, and how often they are taken."""

from collections import deque

import numpy as np
import pytest

from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.run.live_values import Live, summary
from surefoot.graph.spec.model import Graph, as_end
from surefoot.graph.templates import template


def small(**changes) -> Graph:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path = 8 * 8 * 3, "torch"
    graph.nodes["trainer"].params |= changes
    return graph


def test_live_values_are_taken_only_where_somebody_looks_and_not_too_often() -> None:
    now = [0.0]
    live = Live(per_second=10, clock=lambda: now[0])
    with Interpreter(small(), live=live) as run:
        run.run(3)
        assert live.rings == {}
        live.watch("step.rewards")
        live.watch("agent.policy_output")
        run.run(2)
        now[0] += 0.2
        run.run(2)
        rewards = live.summaries("step.rewards")
        assert [each["tick"] for each in rewards] == [4, 6]
        assert rewards[0]["shape"] == [8]
        assert rewards[0]["mean"] == 1.0
        assert set(live.summaries("agent.policy_output")[0]["parts"]) == {"action", "value", "log_prob"}
        assert run.look("trainer.loss_info") == {"kind": "value", "value": None}
    live.forget("step.rewards")
    assert live.summaries("step.rewards") == []


def test_a_summary_counts_what_is_not_finite() -> None:
    content = summary(np.array([1.0, np.nan, 3.0]))
    assert (content["mean"], content["nonfinite"], sum(content["histogram"])) == (2.0, 1, 2)
    assert summary({"a": 1, "b": float("inf")})["entries"] == {"a": 1, "b": "inf"}


def test_the_old_name_of_summaries_works_with_a_warning() -> None:
    live = Live()
    live.rings[as_end("step.rewards")] = deque([{"tick": 3}])
    with pytest.warns(DeprecationWarning, match=r"Live\.summaries"):
        assert live.seen("step.rewards") == [{"tick": 3}]
    with pytest.raises(AttributeError, match="summary_list"):
        _ = live.summary_list
