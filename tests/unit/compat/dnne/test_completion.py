"""What the import of a workflow adds to it."""

import pytest

from surefoot.compat.dnne.completion import complete
from surefoot.graph.spec.check import check
from surefoot.graph.templates import template


def workflow_of(copies: int, steps: int):
    graph = template("cartpole_ppo")
    graph.nodes["env"].params["num_envs"] = copies
    graph.nodes["trainer"].params |= {"rollout_steps": steps, "minibatch_size": 32}
    return graph


@pytest.mark.parametrize(("copies", "steps"), [(1, 256), (4, 64), (15, 18), (16, 16), (64, 16)])
def test_an_update_has_at_least_256_steps(copies: int, steps: int) -> None:
    """From 16 steps of one copy, policies that had learned drifted away again: of seeds 1, 4, 5 and 6, three at 1,500,000 steps."""
    graph = workflow_of(copies, 16)
    notes = complete(graph)
    assert graph.nodes["trainer"].params["rollout_steps"] == steps
    assert any(f"horizon_length is {steps} instead of 16" in note for note in notes) == (steps != 16)
    assert check(graph).errors == []


def test_a_run_is_longer_with_more_copies() -> None:
    for copies, total in ((1, 500_000), (500, 500_000), (512, 512_000)):
        complete(graph := workflow_of(copies, 64))
        assert graph.run.total_steps == total


def test_a_print_and_a_recorder_are_added_once() -> None:
    graph = workflow_of(64, 16)
    types = [node.type for node in graph.nodes.values()]
    complete(graph)
    added = sorted(node.type for node in graph.nodes.values())
    assert added == sorted([*types, "Recorder"])  # the template has a Print
    before = list(graph.nodes)
    complete(graph)
    assert list(graph.nodes) == before
