"""The trainer with inputs left out."""

from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template


def small(**changes) -> Graph:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"horizon_length": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path = 8 * 8 * 3, "torch"
    graph.nodes["trainer"].params |= changes
    return graph


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
