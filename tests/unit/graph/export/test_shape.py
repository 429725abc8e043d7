"""Which graphs can be standalone."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.export.shape import levels_of, own_task, shape_of
from surefoot.graph.schedule import schedule
from surefoot.graph.templates import template


def test_the_roles_of_one_and_of_several_environments() -> None:
    one = shape_of(schedule(template("cartpole")))
    assert ([each.id for each in one.worlds], one.trainer.id) == (["env"], "trainer")
    several = shape_of(schedule(template("multi_env")))
    assert len(several.worlds) == 3
    assert len({each.id for each in several.plumbing}) == len(several.plumbing)


def test_two_levels_are_found_only_with_a_manager() -> None:
    assert levels_of(schedule(template("cartpole"))) is None
    levels = levels_of(schedule(template("hierarchical")))
    assert levels is not None
    assert levels.maze.rooms == 9


def test_two_prints_are_one_too_many() -> None:
    graph = template("cartpole")
    graph.add("again", "Print")
    graph.connect("trainer.loss_info", "again.value")
    with pytest.raises(GraphError, match="remove the node, or export this graph as a script"):
        shape_of(schedule(graph))


def test_a_built_in_environment_is_its_task_and_gymnasiums_is_none() -> None:
    assert type(own_task("surefoot/CartPoleContinuous-v0", "auto", "env")).__name__ == "CartPoleContinuous"
    assert own_task("CartPole-v1", "gymnasium", "env") is None
    with pytest.raises(GraphError, match="env: backend='envpool' needs surefoot"):
        own_task("HalfCheetah-v5", "envpool", "env")
