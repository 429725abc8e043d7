"""Curiosity and schedules as nodes."""

import pytest

from surefoot.graph.run.compiled import Compiled
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
