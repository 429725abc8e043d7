"""Errors of a firing node."""

import numpy as np
import pytest

from surefoot.errors import FiringError
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


def test_code_that_exits_is_a_failure_of_its_node() -> None:
    graph = template("cartpole")
    graph.add("mine", "Code", source="raise SystemExit(3)", inputs=["r"])
    graph.connect("step.rewards", "mine.r")
    with (
        Interpreter(graph, trust=True) as run,
        pytest.raises(FiringError, match=r"mine \(Code\) failed.*SystemExit: 3"),
    ):
        run.tick()


def test_a_node_that_fails_is_named_with_what_it_was_given() -> None:
    with Interpreter(small()) as run:
        run.nodes["action"].params.mode = "clip"
        run.nodes["action"].low = np.zeros(3)
        with pytest.raises(
            FiringError, match=r"action \(ActionProcessor\) failed in tick 0: .*policy_output ActionRecord"
        ) as error:
            run.run()
    assert error.value.node == "action"
