"""Summaries of values on edges, and how often they are taken."""

import json
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


def test_a_value_that_is_not_there_in_a_tick_is_taken_in_the_next_one_that_has_it() -> None:
    """A trainer has metrics in one tick of eight."""
    live = Live(per_second=10, clock=lambda: 0.0)
    with Interpreter(small(), live=live) as run:
        run.run(2)
        live.watch("trainer.loss_info")
        live.watch("step.rewards")
        run.run(14)
    assert [each["tick"] for each in live.summaries("step.rewards")] == [3]
    assert [each["tick"] for each in live.summaries("trainer.loss_info")] == [8]


def test_a_watched_loop_runs_by_whole_rollouts_but_for_those_with_a_summary(tmp_path) -> None:
    """Of nine rollouts, the first builds the network; two others are run tick by tick, for a summary each."""
    now, fused = [0.0], list[int]()
    graph = template("cartpole")
    graph.remove("print")
    graph.run.total_steps = 9 * 256
    live = Live(per_second=10, clock=lambda: now[0])
    live.watch("step.rewards")
    live.watch("trainer.loss_info")
    with Interpreter(graph, live=live, into=tmp_path) as run:
        whole = run._whole
        original = whole.run

        def counted() -> None:
            fused.append(run.ticks)
            original()
            # Time passes within the second and the fifth rollout: the next one has the summaries.
            now[0] += 0.2 if run.ticks in (64, 160) else 0.0

        whole.run = counted
        run.run()
        watched = run.sha256()
    assert fused == [32, 96, 128, 192, 224, 256]
    assert [each["tick"] for each in live.summaries("step.rewards")] == [1, 65, 161]
    assert [each["tick"] for each in live.summaries("trainer.loss_info")] == [32, 96, 192]
    with Interpreter(graph, fuse=False, into=tmp_path) as run:
        run.run()
        assert run.sha256() == watched


def test_a_watched_loop_with_long_rollouts_is_watched_less_often_and_its_nodes_are_measured(tmp_path) -> None:
    """A rollout that is fired node by node takes 0.1 s here; the next one follows after 2 s, the most that there is."""
    now, fused = [0.0], list[int]()
    graph = template("cartpole")
    graph.remove("print")
    graph.run.total_steps = 9 * 256
    live = Live(per_second=10, clock=lambda: now[0])
    with Interpreter(graph, live=live, into=tmp_path) as run:
        run.run(64)
        live.watch("step.rewards")
        fire, whole = run.step_node, run._whole.run

        def fired() -> bool:
            now[0] += 0.001
            return fire()

        def counted() -> None:
            fused.append(run.ticks)
            now[0] += 0.5
            whole()

        run.step_node, run._whole.run = fired, counted
        run.run()
        assert run.shares()["trainer"] > 0.0
    assert [each["tick"] for each in live.summaries("step.rewards")] == [65, 225]
    assert fused == [96, 128, 160, 192, 256]


@pytest.mark.parametrize("values", [[3.0], [2, 2, 2], [True, False, True], [-1.5, 0.0, 0.25, 7.0, 7.0]])
def test_the_histogram_is_numpys(values: list) -> None:
    found = summary(np.array(values))
    counts, edges = np.histogram(np.array(values, float), bins=16)
    assert found["histogram"] == counts.tolist()
    assert found["edges"] == pytest.approx([edges[0], edges[-1]])


def test_numbers_whose_range_overflows_are_summed_up_too() -> None:
    found = summary(np.array([1e308, -1e308, 1e308, 5.0]))
    assert (found["min"], found["max"], found["std"]) == (-1e308, 1e308, "inf")
    assert (found["histogram"][0], found["histogram"][8], found["histogram"][15]) == (1, 1, 2)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


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
