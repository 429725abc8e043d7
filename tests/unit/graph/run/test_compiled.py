"""Code nodes need trust in every engine."""

import pytest

from surefoot.errors import FiringError, GraphError
from surefoot.graph.run.compiled import Compiled
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template


def small(**changes) -> Graph:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path = 8 * 8 * 3, "torch"
    graph.nodes["trainer"].params |= changes
    return graph


def test_code_that_fails_is_named_with_its_line() -> None:
    graph = small()
    graph.add("mine", "Code", source="y = 1 / (len(r) - 8)", inputs=["r"], outputs=["y"])
    graph.connect("step.rewards", "mine.r")
    compiled = Compiled(graph, trust=True)
    number = 1 + next(n for n, line in enumerate(compiled.source.splitlines()) if "len(" in line)
    with pytest.raises(FiringError, match=rf"line {number}, `.* 1 / .*`: ZeroDivisionError: division by zero"):
        compiled.run()


def test_code_in_a_graph_runs_only_when_it_is_trusted() -> None:
    graph = small()
    graph.add("mine", "Code", source="y = 2 * len(r)", inputs=["r"], outputs=["y"])
    graph.connect("step.rewards", "mine.r")
    for engine in (Interpreter, Compiled):
        with pytest.raises(GraphError, match="--trust"):
            engine(graph)
    with Interpreter(graph, trust=True) as run:
        run.tick()
        assert run.value_summary("mine.y") == {"kind": "value", "value": 16}
    compiled = Compiled(graph, trust=True)
    compiled.run()
    plain = Interpreter(small())
    plain.run()
    assert compiled.sha256() == plain.sha256()
