"""Snapshots and resumed runs."""

from pathlib import Path

import pytest

from surefoot.errors import CheckpointIncompatible, RunError
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.run.snapshot import restore, run_and_keep, snapshot, why_not
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template


def small(seed: int = 0) -> Graph:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path, graph.run.seed = 8 * 8 * 2, "torch", seed
    return graph


def test_a_restored_run_ends_with_the_same_weights() -> None:
    with Interpreter(small()) as run:
        run.run(11)
        saved = snapshot(run)
        run.run()
        expected = run.sha256()
    with Interpreter(small()) as again:
        restore(again, saved)
        assert again.ticks == 11
        again.run()
        assert again.sha256() == expected


def test_a_kept_run_resumes_from_its_folder_and_refuses_another_graph(tmp_path: Path) -> None:
    lines: list[str] = []
    with Interpreter(small()) as first:
        first.run(5)
        first.pause()
        assert run_and_keep(first, tmp_path, 4, say=lines.append) == 16
    with Interpreter(small()) as second:
        assert run_and_keep(second, tmp_path, 4, say=lines.append) == 16
        assert second.sha256() == first.sha256()
    assert lines == ["resumes from tick 16"]
    with Interpreter(small(seed=1)) as other, pytest.raises(CheckpointIncompatible, match="choose another directory"):
        run_and_keep(other, tmp_path, 4, say=lines.append)


def test_a_node_with_a_state_that_cannot_be_saved_is_named() -> None:
    with Interpreter(small()) as run:
        run.nodes["step"] = lambda *inputs: None
        assert why_not(run) == "step (Step) has no snapshot and restore methods"
        with pytest.raises(RunError, match="start it again"):
            restore(run, {})
