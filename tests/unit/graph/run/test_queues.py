"""Queues between processes."""

import multiprocessing

import pytest

from surefoot.errors import FiringError
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.run.queues import QueueEngine, channels
from surefoot.graph.schedule import process_groups, schedule
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template


def small() -> Graph:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path = 8 * 8 * 2, "torch"
    return graph


def test_two_processes_have_the_digits_of_one() -> None:
    engine = QueueEngine(small())
    assert engine.processes == 2
    assert engine.run() == 16
    with Interpreter(small()) as run:
        run.run()
        assert engine.sha256() == run.sha256()
    engine.close()


def test_there_is_one_queue_per_node_and_reading_process() -> None:
    plan = schedule(small())
    routes = channels(plan, process_groups(plan), multiprocessing.get_context("spawn"))
    assert set(routes) == {("env", 0), ("step", 0), ("action", 1), ("trainer", 1)}
    assert routes["action", 1].early
    assert not routes["trainer", 1].early


def test_an_error_of_a_worker_is_raised_here() -> None:
    graph = small()
    graph.add("mine", "Code", source="raise ValueError('broken')", inputs=["x"])
    graph.connect("env.sim_handle", "mine.x")
    with pytest.raises(FiringError, match="mine .*broken"):
        QueueEngine(graph, trust=True).run()
