"""Searches as the studio tells of them, made by the search itself."""

import json
import shutil
from pathlib import Path

import pytest

from surefoot.errors import RunError, RunNotFound
from surefoot.graph import load_graph, save_graph, template
from surefoot.graph.tuning import GraphTask
from surefoot.learn.checkpoint.atomic_files import RunLock
from surefoot.server.studio.tuning import Searches
from surefoot.train.tune.plan import Plan, write_plan
from surefoot.train.tune.report import search_result, write_result
from surefoot.train.tune.search import begin, open_study, search

pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def searched(tmp_path_factory) -> Path:
    """A search of three trials over a graph, done and written down."""
    root = tmp_path_factory.mktemp("runs")
    directory = root / "poles"
    directory.mkdir()
    graph = template("cartpole")
    graph.nodes["env"].params["num_envs"] = 4
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "minibatch_size": 16}
    graph.nodes["trainer"].ranges = {"lr": {"low": 1e-5, "high": 1e-2}, "epochs": {"choices": [2, 4]}}
    graph.run.total_steps = 800
    save_graph(graph, directory / "graph.json")
    task, plan = GraphTask(graph, "poles.json"), Plan(trials=3, seeds=1, rungs=2, finalists=0, pruner="none")
    write_plan(directory, plan, {"env": "somewhere/poles.json"})
    study = open_study(directory, plan)
    begin(study, task)
    search(task, study, plan, directory)
    write_result(directory, search_result(study, task.space, []), task, plan)
    return root


@pytest.fixture
def root(searched: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(searched, tmp_path / "runs"))


def test_a_search_is_one_line(root: Path) -> None:
    (row,) = Searches(root).rows()
    told = json.loads((root / "poles" / "trials.json").read_text())["trials"]
    assert row["search"] == "poles"
    assert row["of"] == "poles.json"
    assert row["state"] == "ended"
    assert (row["begun"], row["planned"]) == (3, 3)
    assert row["score"] == pytest.approx(max(trial["value"] for trial in told), rel=1e-5)
    assert row["base"] == pytest.approx(told[0]["value"], rel=1e-5)


def test_its_page_has_every_trial_and_the_best_so_far(root: Path) -> None:
    found = Searches(root).get("poles")
    json.dumps(found, allow_nan=False)
    assert found["names"] == ["trainer.lr", "trainer.epochs"]
    assert [trial["state"] for trial in found["trials"]] == ["done"] * 3
    assert all(trial["params"]["trainer.epochs"] in (2, 4, 20) for trial in found["trials"])
    scores = [trial["score"] for trial in found["trials"]]
    assert found["so_far"] == [max(scores[: n + 1]) for n in range(3)]
    assert found["settings"] == (root / "poles" / "best.yaml").read_text()


def test_the_winner_is_a_graph_with_its_values(root: Path) -> None:
    searches = Searches(root)
    best = searches.get("poles")["best"]
    params = searches.get("poles")["trials"][best]["params"]
    won = searches.best_graph("poles").nodes["trainer"].params
    assert won["epochs"] == params["trainer.epochs"]
    assert won["lr"].start == pytest.approx(params["trainer.lr"])
    assert load_graph(root / "poles" / "graph.json").nodes["trainer"].params["epochs"] == 20


def test_a_search_that_goes_on_is_read_as_it_grows(root: Path) -> None:
    directory, searches = root / "poles", Searches(root)
    task = GraphTask(load_graph(directory / "graph.json"), "poles.json")
    plan = Plan(trials=4, seeds=1, rungs=2, finalists=0, pruner="none")
    assert searches.rows()[0]["begun"] == 3
    with RunLock(directory):
        search(task, open_study(directory, plan, worker=1), plan, directory)
        (row,) = searches.rows()
        assert row["begun"] == 4
        assert row["state"] == "running"
        assert searches.get("poles")["settings"].startswith(f"# trial {row['best']}, so far")
    assert searches.rows()[0]["state"] == "stopped"  # nobody wrote down what came of it


def test_a_search_that_was_killed_leaves_no_trial_running(root: Path) -> None:
    open_study(root / "poles", Plan()).ask().suggest_float("trainer.lr", 1e-5, 1e-2)
    assert Searches(root).get("poles")["trials"][-1]["state"] == "stopped"


def test_what_is_broken_or_elsewhere_is_said(root: Path) -> None:
    searches = Searches(root)
    with pytest.raises(RunNotFound, match="unknown search"):
        searches.get("../poles")
    (root / "empty").mkdir()
    (root / "empty" / "tune.json").write_text("{")
    row = next(row for row in searches.rows() if row["search"] == "empty")
    assert row["state"] == "unreadable"
    assert "cannot be read" in row["why"]
    write_plan(root / "empty", Plan(), {"env": "CartPole-v1"})
    with pytest.raises(RunError, match="no trials yet"):
        searches.get("empty")
