"""Summaries of values on edges, and how often they are taken."""

from collections import deque

import numpy as np
import pytest

from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.run.live_values import Live, run_and_print, summary, value_line
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
        assert set(live.summaries("agent.policy_output")[0]["parts"]) == {"action", "value", "log_prob", "probs"}
        assert run.value_summary("trainer.loss_info") == {"kind": "value", "value": None}
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


def test_a_value_is_one_line() -> None:
    assert value_line({"loss": 0.123456, "update": 3}) == "loss 0.1235  update 3"
    assert value_line({"obs": np.ones((2, 3)), "mask": np.ones(2, bool)}) == "obs [2, 3] mean 1  mask [2] mean 1"
    assert (value_line("ready"), value_line([1, 2]), value_line(object())) == ("ready", "2 items", "object")


def test_an_output_is_printed_whenever_it_has_a_new_value(capsys) -> None:
    with Interpreter(small()) as run:
        assert run_and_print(run, ["trainer.loss_info", "step.rewards"]) == run.plan.ticks
    lines = capsys.readouterr().out.splitlines()
    losses = [line for line in lines if "trainer.loss_info" in line]
    assert len(losses) == len(set(losses)) == run.updates
    assert "approx_kl" in losses[0]
    assert lines[0].endswith("step.rewards  [8] mean 1")
