"""Whole rollouts and single ticks give the same digits, also if they alternate."""

from pathlib import Path

import numpy as np
import pytest

from surefoot.errors import FiringError
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.run.snapshot import restore, snapshot
from surefoot.graph.run.whole_rollouts import whole_rollouts
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template
from surefoot.telemetry.reader import load_curves


def graph_of(name: str, **trainer: object) -> Graph:
    graph = template(name)
    graph.remove("print")
    graph.add("record", "Recorder")
    graph.connect("trainer.loss_info", "record.loss_info")
    graph.connect("trainer.episodes", "record.episodes")
    graph.nodes["trainer"].params |= {"rollout_steps": 16, "minibatch_size": 32, "epochs": 2, **trainer}
    graph.run.total_steps = 5 * 16 * next(n.params["num_envs"] for n in graph.nodes.values() if "num_envs" in n.params)
    return graph


@pytest.mark.parametrize("name", ["cartpole", "cartpole_ppo", "pendulum"])
def test_the_digits_are_those_of_the_nodes_fired_one_after_the_other(name: str, tmp_path: Path) -> None:
    """The second run alternates: a value is watched in its third rollout. The continuous ones clip their actions."""
    results = []
    for number in range(3):
        graph = graph_of(name, normalize_reward=name == "pendulum")
        with Interpreter(graph, fuse=number > 0, into=tmp_path / str(number)) as run:
            run.run(32)
            if number == 2:
                run.live.watch("step.rewards")
                run.run(16)
                run.live.forget("step.rewards")
            metrics = list(run)
            assert run.finished
            results.append((run.sha256(), metrics[-1], run.ticks, run.value_summary("step.observations")))
    assert results[0] == results[1] == results[2]
    # Updates that follow each other within a tenth of a second share a line, so only the last one is known.
    assert [load_curves(next((tmp_path / str(n)).glob("**/*.ndjson"))).updates.updates[-1] for n in range(3)] == [
        5,
        5,
        5,
    ]


@pytest.mark.parametrize("fuse", [False, True])
def test_a_snapshot_between_two_rollouts_is_continued_either_way(fuse: bool, tmp_path: Path) -> None:
    graph = graph_of("cartpole")
    with (
        Interpreter(graph, into=tmp_path / "a") as whole,
        Interpreter(graph, into=tmp_path / "b", fuse=fuse) as single,
    ):
        whole.run(48)
        restore(single, snapshot(whole))
        whole.run()
        single.run()
        assert whole.sha256() == single.sha256()


def test_only_a_plain_loop_of_a_native_environment_is_run_by_rollouts(tmp_path: Path) -> None:
    for name, possible in (("cartpole", True), ("multi_env", False), ("hierarchical", False)):
        with Interpreter(template(name), into=tmp_path) as run:
            assert (whole_rollouts(run.machine) is not None) == possible
    with Interpreter(template("cartpole"), into=tmp_path, path="torch") as run:
        assert whole_rollouts(run.machine) is None


def test_a_failure_inside_a_rollout_names_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Interpreter(graph_of("cartpole"), into=tmp_path) as run:
        run.run(16)
        trainer = run.nodes["trainer"]
        monkeypatch.setattr(trainer.learner, "update", lambda *a, **k: np.array([1]).reshape(2))
        with pytest.raises(FiringError, match=r"trainer \(PPOTrainerNode\) failed in tick 31: ValueError"):
            run.run()
