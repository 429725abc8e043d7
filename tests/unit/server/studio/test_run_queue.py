"""The queue of runs: seeds, sweeps, batches."""

import pytest

from surefoot.errors import ConfigError, GraphError
from surefoot.graph.templates import template
from surefoot.server.studio.run_queue import MOST_RUNS, RunQueue, variants


def test_a_sweep_is_a_run_per_combination_and_seed() -> None:
    graph = template("cartpole")
    graph.run.seed = 5
    runs = variants(graph, 2, {"trainer.lr": [0.1, 0.2], "trainer.epochs": [3]})
    assert [label for _, label in runs] == [
        "lr = 0.1, epochs = 3, seed 5",
        "lr = 0.1, epochs = 3, seed 6",
        "lr = 0.2, epochs = 3, seed 5",
        "lr = 0.2, epochs = 3, seed 6",
    ]
    assert [(g.nodes["trainer"].params["epochs"], g.run.seed) for g, _ in runs] == [(3, 5), (3, 6), (3, 5), (3, 6)]
    assert graph.nodes["trainer"].params["epochs"] != 3


@pytest.mark.parametrize(
    "sweep",
    [
        *({"trainer.lr": []}, {"ghost.lr": [1]}, {"trainer.gamma": [2]}, {"agent.output_size": [3]}, {"lr": [1]}),
        *({"trainer.lr": 5}, {"trainer.lr": "0.1"}, ["trainer.lr"]),
    ],
)
def test_a_sweep_that_cannot_run_is_refused_whole(sweep) -> None:
    queue = RunQueue()
    with pytest.raises((GraphError, ConfigError)):
        queue.add("doc", template("cartpole"), sweep=sweep)
    with pytest.raises(GraphError, match="seeds is 'two'"):
        queue.add("doc", template("cartpole"), seeds="two")  # type: ignore[arg-type]
    assert queue.waiting == []


def test_runs_leave_in_order_and_are_dropped_alone_by_batch_or_all() -> None:
    queue = RunQueue()
    queue.add("a", template("cartpole"), seeds=3)
    queue.add("b", template("cartpole"), seeds=2)
    first = queue.take()
    assert first is not None
    assert (first.doc, first.label) == ("a", "seed 0")
    queue.drop(batch=first.batch)
    assert [each["doc"] for each in queue.to_json()] == ["b", "b"]
    queue.drop(id=queue.waiting[0].id)
    assert [each.label for each in queue.waiting] == ["seed 1"]
    queue.drop()
    assert queue.take() is None
    with pytest.raises(GraphError, match="51 runs; one click starts"):
        queue.add("a", template("cartpole"), seeds=MOST_RUNS + 1)
