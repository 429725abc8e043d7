"""Specs of runs: towns, ticks and settings."""

import dataclasses

import pytest

from surefoot.errors import ConfigError
from surefoot.town.scenarios.scenario import TrainingRules, load_scenario
from surefoot.town.training.spec import town_spec, town_training


def test_envs_count_agents_and_settings_override_the_scenario():
    scenario = load_scenario("queue_conflict")
    spec = town_spec(scenario, towns=4, rollout_ticks=5, steps=600, settings={"lr": 1e-3})
    assert (spec.ppo.envs, spec.ppo.batch_size, spec.total_steps) == (12, 60, 600)
    assert spec.ppo.lr.at(0) == pytest.approx(1e-3) if hasattr(spec.ppo.lr, "at") else spec.ppo.lr == 1e-3
    assert spec.env_kwargs["scenario"]["name"] == "queue_conflict"


def test_part_of_a_town_is_refused():
    with pytest.raises(ConfigError, match="multiple of the 3"):
        town_spec(load_scenario("queue_conflict"), settings={"envs": 10})


def test_towns_in_training_are_at_different_times_of_the_day():
    spec = town_spec(load_scenario("queue_conflict"), towns=4, rollout_ticks=10, steps=120, eval_every=0)
    training = town_training(spec)
    # Four towns of 80 ticks: a quarter of an episode apart.
    assert training.world.now.tick.tolist() == [0, 20, 40, 60]
    assert training.make(12).now.tick.tolist() == [0, 0, 0, 0]


def test_a_scenario_without_towns_gets_as_many_as_have_192_agents():
    scenario = dataclasses.replace(load_scenario("market_town"), training=TrainingRules())
    assert town_spec(scenario, eval_every=0).ppo.envs == 16 * 12
