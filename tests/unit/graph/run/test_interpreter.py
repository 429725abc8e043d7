"""Engines: one schedule, nothing lost, and a stop wherever one is wanted."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.run.interpreter import Break, Interpreter
from surefoot.graph.spec.model import End, Graph
from surefoot.graph.templates import template


def small(**changes) -> Graph:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path = 8 * 8 * 3, "torch"
    graph.nodes["trainer"].params |= changes
    return graph


def test_training_complete_comes_with_updates_and_never_in_between() -> None:
    with Interpreter(small()) as run:
        seen = []
        while not run.finished:
            run.tick()
            seen.append(run.machine.value(End("trainer", "training_complete")))
    assert [k for k, message in enumerate(seen) if message is not None] == [7, 15, 23]
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
    with pytest.raises(GraphError, match="the test of a breakpoint"):
        Break("a.b", "!=", 1)


def test_pause_stops_at_the_end_of_a_tick() -> None:
    with Interpreter(small()) as run:
        assert run.run(stop=lambda: run.ticks == 5) == 5
        assert [info["update"] for info in run] == [1, 2, 3]
