"""Which nodes share a process."""

from surefoot.graph.schedule import process_groups, schedule
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template


def small(**changes) -> Graph:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path = 8 * 8 * 3, "torch"
    graph.nodes["trainer"].params |= changes
    return graph


def test_nodes_that_share_a_handle_share_a_process() -> None:
    assert [sorted(ids) for ids in process_groups(schedule(small()))] == [
        ["action", "agent", "either", "print", "trainer"],
        ["env", "step"],
    ]
    assert len(process_groups(schedule(template("multi_env")))) == 4
