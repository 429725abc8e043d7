"""Towns by id."""

import pytest

from surefoot.errors import ConfigError
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.worlds import env_maker, single_env


def test_streams_are_agents_and_there_is_at_least_one_town():
    make = env_maker("town/queue_conflict")
    assert make(9).num_envs == 9
    assert make(8).num_envs == 6
    assert make(1).num_envs == 3
    assert make(1).name == "town/queue_conflict"


def test_a_scenario_in_the_arguments_replaces_the_shipped_one():
    values = {**load_scenario("queue_conflict").to_json(), "ticks": 7}
    world = env_maker("town/mine", {"scenario": values, "central": True})(3)
    assert world.scenario.ticks == 7  # type: ignore[attr-defined]
    assert "state" in world.observation


def test_unknown_arguments_are_named():
    with pytest.raises(ConfigError, match="env_kwargs has colour"):
        env_maker("town/queue_conflict", {"colour": "red"})


def test_a_single_env_has_the_agents_of_its_scenario():
    assert single_env("town/queue_conflict").possible_agents == ["anna", "ben", "cara"]
