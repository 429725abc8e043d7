"""Searches on a real Ray cluster of this machine: a worker that is killed, a population, Ctrl-C and going on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from surefoot.envs.make import make_world
from surefoot.graph import template
from surefoot.graph.tuning import GraphTask, GraphTrialRun
from surefoot.train.spec import make_spec
from surefoot.train.spec_worlds import world_maker
from surefoot.train.tune.env_trials import EnvTask, EnvTrialRun
from surefoot.train.tune.final_round import compare_finalists
from surefoot.train.tune.plan import Plan
from surefoot.train.tune.report import search_result
from surefoot.train.tune.search import begin, open_study

ray: Any = pytest.importorskip("ray")
pytest.importorskip("ray.tune")
pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from surefoot.scale.tune_ray import Cluster

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        yield Cluster("")
    finally:
        ray.shutdown()


def a_task(marks: Path, kind: str) -> EnvTask | GraphTask:
    """CartPole by its id, or drawn."""
    marks.mkdir()
    return _drawn(marks) if kind == "graph" else _by_id(marks)


def _drawn(marks: Path) -> GraphTask:
    class Marked(GraphTask):
        def trial_run(self, params: dict[str, Any], seeds: Sequence[int]) -> GraphTrialRun:
            (marks / str(os.getpid())).touch()
            return super().trial_run(params, seeds)

    graph = template("cartpole")
    graph.nodes["trainer"].ranges = {"lr": {"low": 1e-4, "high": 1e-2, "log": True}}
    graph.run.total_steps = 4096
    return Marked(graph, "drawn.json")


def _by_id(marks: Path) -> EnvTask:
    class Marked(EnvTask):
        """Leaves the process id of whoever trains."""

        def trial_run(self, params: dict[str, Any], seeds: Sequence[int]) -> EnvTrialRun:
            (marks / str(os.getpid())).touch()
            return super().trial_run(params, seeds)

    action = make_world("CartPole-v1").action
    held = {"envs": 4, "rollout_steps": 32, "hidden": (8,), "normalize_obs": False, "normalize_reward": False}
    spec = make_spec("CartPole-v1", action, settings=held, total_steps=1536, eval_episodes=3)
    return Marked(spec, world_maker(spec), action, held=held)


@pytest.mark.parametrize("kind", ["env", "graph"])
def test_a_search_goes_on_when_the_worker_of_a_trial_is_killed(kind: str, cluster: Any, tmp_path: Path):
    task, plan = a_task(tmp_path / "marks", kind), Plan(trials=5, seeds=1, rungs=4, finalists=1, scheduler="asha")
    study = open_study(tmp_path, plan)
    begin(study, task)
    told: list[tuple[int, int]] = []

    def tell(number: int, rung: int, score: float) -> None:
        told.append((number, rung))
        if len(told) == 3:
            os.kill(int(next((tmp_path / "marks").iterdir()).name), signal.SIGKILL)

    cluster.search(task, study, plan, tmp_path, on_score=tell)
    assert {t.state.name for t in study.get_trials()} <= {"COMPLETE", "PRUNED"}
    assert len(study.get_trials()) == 5
    assert len(told) == len(set(told))  # no rung counted twice
    assert len(list((tmp_path / "marks").iterdir())) > 1  # who was killed did not do it all
    assert not (tmp_path / "ray").exists()  # nothing is left of Ray's own files
    finals = compare_finalists(task, study, plan, evaluate=cluster.play)
    assert 0 in {one.number for one in finals}


@pytest.mark.parametrize("kind", ["env", "graph"])
def test_a_population_goes_on_with_the_weights_of_the_best_also_after_a_stop(kind: str, cluster: Any, tmp_path: Path):
    task, plan = a_task(tmp_path / "marks", kind), Plan(trials=4, seeds=1, rungs=4, finalists=0, scheduler="pbt")
    study = open_study(tmp_path, plan)
    begin(study, task)

    def all_can_go_on() -> bool:
        under_way = [t for t in study.get_trials(deepcopy=False) if t.state.name == "RUNNING"]
        return len(under_way) == 4 and all("checkpoint" in t.user_attrs for t in under_way)

    cluster.search(task, study, plan, tmp_path, stop=all_can_go_on)
    stopped = [t for t in study.get_trials() if t.state.name == "WAITING"]
    assert len(stopped) == 4
    assert all((tmp_path / t.user_attrs["checkpoint"]).is_dir() for t in stopped)
    assert not list((tmp_path / "ray").rglob("*.pkl"))

    begin(study, task)
    cluster.search(task, study, plan, tmp_path)
    found = search_result(study, task.space, [])
    assert len(found.ranked) == 4
    # Whether one is given up for another is up to who reports when: rungs are short here, and a worker takes seconds to start.
    heirs = [t for t in found.trials if t["parent"] is not None and t["rungs"]]
    assert all(min(map(int, t["rungs"])) == t["from_rung"] + 1 > 1 for t in heirs)
    assert not (tmp_path / "ray").exists()
