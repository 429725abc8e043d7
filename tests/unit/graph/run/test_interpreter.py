"""Engines: one schedule, nothing lost, and a stop wherever one is wanted."""

import numpy as np
import pytest

from surefoot.errors import FiringError, GraphError
from surefoot.graph.run.compiled import Compiled
from surefoot.graph.run.interpreter import Break, Interpreter
from surefoot.graph.run.live_values import Live, summary
from surefoot.graph.runtime.base import node_seed, ticks_for
from surefoot.graph.runtime.flow import BatchNode, ORNode, SplitNode
from surefoot.graph.schedule import islands, schedule
from surefoot.graph.spec.model import Delay, End, Graph
from surefoot.graph.templates import template


def small(**changes) -> Graph:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"horizon_length": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path = 8 * 8 * 3, "torch"
    graph.nodes["trainer"].params |= changes
    return graph


def test_ticks_are_whole_rollouts() -> None:
    assert ticks_for(100, 8, 32) == 32
    assert ticks_for(257, 8, 32) == 64
    assert ticks_for(10, 1, 4, 6) == 12
    assert ticks_for(5, 0) == 5
    assert node_seed("a", 0) != node_seed("b", 0) < 2**31


def test_fby_gives_the_first_value_and_then_the_loop() -> None:
    either = ORNode()
    assert [either("a"), either("x", "b"), either("x", "c")] == ["a", "b", "c"]


def test_nothing_is_lost_in_an_or_with_a_queue_and_two_at_once_without_one_are_an_error() -> None:
    either = ORNode(mode="priority", queue=True)
    out = [either(1, 2), either(None, None), either(None, 3), either()]
    assert out == [1, 2, 3, None]
    with pytest.raises(GraphError, match="queue"):
        ORNode(mode="priority")(1, 2)
    assert ORNode(mode="priority")(None, 5) == 5


def test_a_batch_and_its_split_are_inverse() -> None:
    a, b = {"obs": np.arange(6.0).reshape(2, 3)}, {"obs": np.ones((1, 3))}
    parts = SplitNode(sizes=(2, 1))(BatchNode()(a, b))
    assert np.array_equal(parts[0]["obs"], a["obs"])
    assert np.array_equal(parts[1]["obs"], b["obs"])


def test_training_complete_comes_with_updates_and_never_in_between() -> None:
    with Interpreter(small()) as run:
        seen = []
        while not run.finished:
            run.tick()
            seen.append(run.machine.value(End("trainer", "training_complete")))
    assert [k for k, said in enumerate(seen) if said is not None] == [7, 15, 23]
    assert set(seen) == {None, "complete"}


def test_a_tick_can_be_walked_node_by_node_with_the_same_digits() -> None:
    with Interpreter(small()) as whole, Interpreter(small()) as steps:
        whole.run()
        fired = []
        while not steps.finished:
            fired.append(steps.next_node)
            steps.step_node()
        assert whole.sha256() == steps.sha256()
    assert fired[:6] == ["env", "either", "agent", "action", "step", "trainer"]


def test_one_can_run_to_the_next_update_and_break_on_a_number() -> None:
    with Interpreter(small(), profile=True) as run:
        assert run.run_to_update()
        assert (run.ticks, run.updates) == (8, 1)
        assert sum(run.shares().values()) == pytest.approx(1.0)
        run.breaks.append(Break("trainer.loss_info", ">", 1, key="update"))
        run.run()
        assert run.ticks == 16
        assert run.stopped_by is run.breaks[0]
    with pytest.raises(GraphError, match="tests with"):
        Break("a.b", "!=", 1)


def test_pause_stops_at_the_end_of_a_tick() -> None:
    with Interpreter(small()) as run:
        assert run.run(stop=lambda: run.ticks == 5) == 5
        assert [info["update"] for info in run] == [1, 2, 3]


def test_a_node_that_fails_is_named_with_what_it_was_given() -> None:
    with Interpreter(small()) as run:
        run.nodes["action"].params.mode = "clip"
        run.nodes["action"].low = np.zeros(3)
        with pytest.raises(
            FiringError, match=r"action \(ActionProcessor\) failed in tick 0: .*policy_output Chosen"
        ) as error:
            run.run()
    assert error.value.node == "action"


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
        rewards = live.seen("step.rewards")
        assert [each["tick"] for each in rewards] == [4, 6]
        assert rewards[0]["shape"] == [8]
        assert rewards[0]["mean"] == 1.0
        assert set(live.seen("agent.policy_output")[0]["parts"]) == {"action", "value", "log_prob"}
        assert run.look("trainer.loss_info") == {"kind": "value", "value": None}
    live.forget("step.rewards")
    assert live.seen("step.rewards") == []


def test_a_summary_counts_what_is_not_finite() -> None:
    told = summary(np.array([1.0, np.nan, 3.0]))
    assert (told["mean"], told["nonfinite"], sum(told["histogram"])) == (2.0, 1, 2)
    assert summary({"a": 1, "b": float("inf")})["entries"] == {"a": 1, "b": "inf"}


def test_what_shares_a_handle_shares_a_process() -> None:
    assert [sorted(ids) for ids in islands(schedule(small()))] == [
        ["action", "agent", "either", "print", "trainer"],
        ["env", "step"],
    ]
    assert len(islands(schedule(template("multi_env")))) == 4


def test_code_in_a_graph_runs_only_when_it_is_trusted() -> None:
    graph = small()
    graph.add("mine", "Code", source="y = 2 * len(r)", inputs=["r"], outputs=["y"])
    graph.connect("step.rewards", "mine.r")
    for engine in (Interpreter, Compiled):
        with pytest.raises(GraphError, match="--trust"):
            engine(graph)
    with Interpreter(graph, trust=True) as run:
        run.tick()
        assert run.look("mine.y") == {"kind": "value", "value": 16}
    compiled = Compiled(graph, trust=True)
    compiled.run()
    plain = Interpreter(small())
    plain.run()
    assert compiled.sha256() == plain.sha256()


def test_what_dones_alone_and_no_next_states_cost_is_steps_left_out() -> None:
    graph = small()
    for port in ("terminated", "truncated", "next_states"):
        graph.disconnect(f"trainer.{port}")
    graph.connect("step.dones", "trainer.dones")
    with Interpreter(graph) as run:
        assert run.run_to_update()
        assert run.nodes["trainer"].report.samples == 8 * 7
    with Interpreter(small()) as run:
        assert run.run_to_update()
        assert run.nodes["trainer"].report.samples == 8 * 8


def test_memory_and_curiosity_and_a_schedule_can_be_drawn() -> None:
    graph = small()
    graph.nodes["agent"].params |= {"network": "gru", "memory_size": 8}
    graph.connect("step.dones", "agent.starts", True)
    graph.add("new", "RNDCuriosity", hidden_sizes=[8])
    graph.connect("new.curiosity", "trainer.curiosity")
    graph.add("rate", "Schedule", start=1e-3)
    graph.connect("rate.schedule", "trainer.schedule")
    with Interpreter(graph) as run:
        infos = list(run)
        assert infos[-1]["bonus_mean"] >= 0.0
        assert infos[0]["lr"] == pytest.approx(1e-3)
        assert infos[-1]["lr"] < infos[0]["lr"]
        assert infos[0]["first_ratio_error"] < 1e-5
        digits = run.sha256()
    compiled = Compiled(graph)
    compiled.run()
    assert compiled.sha256() == digits


def test_a_normaliser_of_its_own_moves_between_updates_only() -> None:
    graph = small()
    graph.add("norm", "ObservationNormalizer")
    graph.add("same", "Normalize")
    graph.disconnect("agent.observations")
    graph.disconnect("trainer.states")
    graph.disconnect("trainer.next_states")
    graph.connect("either.output", "norm.observations")
    graph.connect("trainer.training_complete", "norm.update", Delay())
    graph.connect("norm.observations", "agent.observations")
    graph.connect("norm.observations", "trainer.states")
    graph.connect("step.next_observations", "same.observations")
    graph.connect("norm.normalizer", "same.normalizer")
    graph.connect("same.observations", "trainer.next_states")
    with Interpreter(graph) as run:
        assert all(info["first_ratio_error"] < 1e-5 for info in run)
        assert float(run.nodes["norm"].parts["obs"].count) == 8 * 8 * 2
