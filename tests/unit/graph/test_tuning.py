"""A search over a graph: ranges on its nodes, trials of several seeds, the best graph written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.cli.main import main
from surefoot.errors import GraphError
from surefoot.graph import load_graph, save_graph, template
from surefoot.graph.tuning import GraphTask
from surefoot.learn.search_ranges import Choice, Range

RANGES = {"lr": {"low": 1e-5, "high": 1e-2, "log": True}, "epochs": {"choices": [2, 4]}}


def with_ranges(tmp_path: Path, ranges=RANGES) -> Path:
    graph = template("cartpole")
    graph.nodes["env"].params["num_envs"] = 4
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "minibatch_size": 16}
    graph.nodes["trainer"].ranges = dict(ranges)
    graph.run.total_steps = 1600
    save_graph(graph, tmp_path / "g.json")
    return tmp_path / "g.json"


def test_the_space_is_what_the_nodes_declare(tmp_path: Path):
    task = GraphTask(load_graph(with_ranges(tmp_path)), "g.json")
    result = task.space["trainer.lr"]
    assert isinstance(result, Range)
    assert (result.low, result.high, result.log) == (1e-5, 1e-2, True)
    chosen = task.space["trainer.epochs"]
    assert isinstance(chosen, Choice)
    assert set(chosen.values) >= {2, 4}
    assert task.base["trainer.epochs"] in chosen.values  # the graph as it is can be a trial too


def test_a_graph_without_ranges_says_how_to_give_some(tmp_path: Path):
    with pytest.raises(GraphError, match="ranges"):
        GraphTask(load_graph(with_ranges(tmp_path, {})), "g.json")


def test_every_seed_is_taken_forward_and_judged(tmp_path: Path):
    task = GraphTask(load_graph(with_ranges(tmp_path)), "g.json")
    trial_run = task.trial_run(task.base, [0, 1])
    try:
        half, whole = trial_run.advance(0.5, lambda: False), trial_run.advance(1.0, lambda: False)
        assert half is not None
        assert whole is not None
        assert len(half) == len(whole) == 2
        assert all(score > 5.0 for score in whole)
        assert [engine.finished for engine in trial_run.engines] == [True, True]
        assert trial_run.advance(1.0, lambda: True) is None
    finally:
        trial_run.close()


def test_a_trial_goes_on_from_its_state_with_settings_that_may_move(tmp_path: Path):
    task = GraphTask(load_graph(with_ranges(tmp_path)), "g.json")
    assert task.moving == {"trainer.lr", "trainer.epochs"}
    straight, broken = task.trial_run(task.base, [0]), task.trial_run(task.base, [0])
    resumed, other = task.trial_run(task.base, [0]), task.trial_run({**task.base, "trainer.lr": 1e-5}, [0])
    trial_runs = (straight, broken, resumed, other)
    try:
        straight.advance(0.5, lambda: False)
        broken.advance(0.5, lambda: False)
        for trial_run in (resumed, other):
            trial_run.set_state(broken.state())
        assert straight.advance(1.0, lambda: False) == resumed.advance(1.0, lambda: False)
        assert straight.engines[0].sha256() == resumed.engines[0].sha256()
        other.advance(1.0, lambda: False)
        assert other.engines[0].sha256() != straight.engines[0].sha256()
    finally:
        for trial_run in trial_runs:
            trial_run.close()


def test_a_search_leaves_the_best_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("optuna")
    path = with_ranges(tmp_path)
    command = [
        "tune",
        str(path),
        "--trials",
        "2",
        "--seeds",
        "1",
        "--search",
        "rungs=1",
        "--search",
        "finalists=0",
        "--name",
        "s",
    ]
    command += ["--json"]
    assert main([*command, "--runs", str(tmp_path)]) == 0
    message = json.loads(capsys.readouterr().out)
    best = load_graph(tmp_path / "s" / "best.json")
    assert best.nodes["trainer"].params["epochs"] == message["settings"]["trainer.epochs"]
    assert "surefoot graph run best.json" in (tmp_path / "s" / "best.yaml").read_text()
    path.write_text("edited in between")
    resumed = [*command, "--trials", "3", "--resume", "--runs", str(tmp_path)]
    assert main(resumed) == 0  # with the graph it was begun with
    assert json.loads(capsys.readouterr().out)["trials"] == 3
