"""Observation statistics as a node."""

from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.spec.model import Delay, Graph
from surefoot.graph.templates import template


def small(**changes) -> Graph:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"horizon_length": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path = 8 * 8 * 3, "torch"
    graph.nodes["trainer"].params |= changes
    return graph


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
