"""Specs of runs: towns, ticks and settings."""

import pytest

from surefoot.errors import ConfigError
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.training.spec import town_spec


def test_envs_count_agents_and_settings_override_the_scenario():
    scenario = load_scenario("queue_conflict")
    spec = town_spec(scenario, towns=4, rollout_ticks=5, steps=600, settings={"lr": 1e-3})
    assert (spec.ppo.envs, spec.ppo.batch_size, spec.total_steps) == (12, 60, 600)
    assert spec.ppo.lr.at(0) == pytest.approx(1e-3) if hasattr(spec.ppo.lr, "at") else spec.ppo.lr == 1e-3
    assert spec.env_kwargs["scenario"]["name"] == "queue_conflict"


def test_part_of_a_town_is_refused():
    with pytest.raises(ConfigError, match="multiple of the 3"):
        town_spec(load_scenario("queue_conflict"), settings={"envs": 10})
