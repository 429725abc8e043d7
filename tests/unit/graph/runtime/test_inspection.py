"""Evaluation, recording, checkpoints, plots and printing."""

import json

import pytest

from surefoot.graph.runtime.agent import PPOAgentNode
from surefoot.graph.runtime.inspection import EvaluationNode, PlotNode, PrintNode, RecorderNode, one_line
from surefoot.graph.runtime.worlds import EnvironmentNode
from surefoot.train.collect.episodes import Episode


def test_print_shows_every_nth_value_with_its_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    node = PrintNode(every=2, prefix="x: ")
    for value in (1, 2, 3, 4000):
        node(value)
    assert capsys.readouterr().out == "x: 2\nx: 4,000\n"


def test_the_metrics_of_an_update_are_one_line_with_the_important_ones() -> None:
    assert one_line({"zzz": 1.0, "loss": 0.12345, "update": 1000}) == "update 1,000  loss 0.1235"
    assert one_line({"a": "text"}) == "a text"


def test_a_plot_has_the_last_values_and_restores_them() -> None:
    plot = PlotNode(points=2)
    for value in (1.0, 2.0, 3.0):
        plot(value)
    assert plot.snapshot() == {"values": [2.0, 3.0]}
    other = PlotNode(points=2)
    other.restore(plot.snapshot())
    assert list(other.values) == [2.0, 3.0]


def test_an_evaluation_acts_on_every_nth_trigger_and_counts_over_a_restart() -> None:
    _, policy = PPOAgentNode(input_size=4, output_size=2, action_space="discrete", path="torch")(
        EnvironmentNode(env_id="CartPole-v1", num_envs=2)()[1]
    )
    node = EvaluationNode(env_id="CartPole-v1", episodes=2, every=2, path="torch")
    assert node("complete", policy) == (None, None)
    again = EvaluationNode(env_id="CartPole-v1", episodes=2, every=2, path="torch")
    again.restore(node.snapshot())
    mean, std = again("complete", policy)
    assert mean is not None
    assert 1.0 <= mean <= 500.0
    assert std is not None


def test_a_recorder_writes_one_line_per_episode_and_per_update(tmp_path) -> None:
    node = RecorderNode(into=tmp_path, folder="record")
    episode = Episode(stream=0, return_=5.0, length=7, success=None, truncated=False)
    node({"update": 1, "env_steps": 64, "return": 5.0, "length": 7.0, "loss": 0.5}, [episode])
    node.close()
    text = (tmp_path / "record" / "telemetry.ndjson").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["return"] for row in rows if "return" in row and "length" in row][:1] == [5.0]
    assert any(row.get("env_steps") == 64 for row in rows)
