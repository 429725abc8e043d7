"""Fields of the Config of a standalone program."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.export.fields import Fields, one_line
from surefoot.graph.schedule import schedule
from surefoot.graph.spec.model import make_node
from surefoot.graph.templates import template


def fields(**trainer: object) -> tuple[Fields, dict]:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= make_node("PPOTrainerNode", **trainer).params
    plan = schedule(graph)
    by_id = {each.id: each for each in plan.firings}
    return Fields(plan, (by_id["trainer"], by_id["agent"]), (by_id["print"],)), by_id


def test_a_name_that_is_used_already_gets_the_id_as_prefix() -> None:
    config, nodes = fields(lr=0.01)
    assert config.read(nodes["trainer"], "lr") == "config.lr"
    assert config.read(nodes["agent"], "lr") == "config.agent_lr"
    assert config.read(nodes["print"], "every") == "config.print_every"


def test_a_linear_schedule_has_a_start_and_an_end() -> None:
    config, nodes = fields(lr="lin_1e-3")
    assert config.read(nodes["trainer"], "lr") == "(1.0 - progress) * config.lr + progress * config.lr_end"
    values = config.values(nodes["trainer"])
    assert (values["lr"], values["lr_end"]) == (("lr", "start", 0.001), ("lr", "end", 0.0))


def test_only_fields_that_the_program_reads_are_written() -> None:
    config, nodes = fields(lr=0.01)
    text = config.config((nodes["trainer"],), "x = config.lr")
    assert "    lr: float = 0.01" in text
    assert "epochs" not in text
    assert "# [node trainer] PPOTrainerNode" in text


def test_schedules_of_points_are_refused_and_titles_are_one_line() -> None:
    config, nodes = fields(lr=lambda left: left)
    with pytest.raises(GraphError, match="linear and cosine schedules only"):
        config.read(nodes["trainer"], "lr")
    assert one_line('a "quoted"\nname') == "a 'quoted' name"
