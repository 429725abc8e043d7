"""What is searched of an env, and what a trial trains."""

from __future__ import annotations

import pytest

from surefoot.envs.make import make_world
from surefoot.errors import ConfigError
from surefoot.learn.schedule import Linear
from surefoot.learn.search import Choice, Range
from surefoot.train.spec import make_spec
from surefoot.train.training import world_maker
from surefoot.train.tune_env import EnvTask


def task(env="CartPole-v1", *, preset="sb3", held=None, space=None, steps=256, **settings):
    world = make_world(env)
    spec = make_spec(env, world.action, preset_name=preset, settings={**settings, **(held or {})}, total_steps=steps)
    return EnvTask(spec, world_maker(spec), world.action, held=held, space=space)


def test_the_base_is_within_what_is_searched():
    found = task()
    assert found.base["steps"] == 2048
    assert found.base["envs"] == 1
    assert 1 in found.space["envs"].values
    assert found.spec_of(found.base, 0).ppo.replace(ent_coef=0.0) == found.spec.ppo


def test_what_the_user_holds_is_not_searched_whatever_it_is_called():
    found = task(held={"learning_rate": "1e-4", "net_arch": "32"})
    assert not {"lr", "hidden"} & set(found.space)
    assert found.spec_of(found.base, 3).ppo.lr == 1e-4
    assert found.spec_of(found.base, 3).seed == 3


def test_real_actions_have_their_noise_searched_too():
    assert "log_std_init" in task("Pendulum-v1").space
    assert "log_std_init" not in task().space


def test_a_number_stands_for_the_start_of_the_base_s_schedule():
    found = task(lr=Linear(1e-3, 1e-4))
    assert found.base["lr"] == 1e-3
    assert found.spec_of({"lr": 2e-3}, 0).ppo.lr == Linear(2e-3, 2e-4)


def test_a_space_of_ones_own_changes_the_usual_one():
    found = task(space={"lr": None, "vf_coef": {"low": 0.1, "high": 1.0}, "activation": ["tanh", "relu"]})
    assert "lr" not in found.space
    assert found.space["vf_coef"] == Range(0.1, 1.0)
    assert found.space["activation"] == Choice(("tanh", "relu"))
    assert found.spec_of({"activation": "relu"}, 0).net.activation == "relu"


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({"learning_rat": [1, 2]}, "no setting that can be searched"),
        ({"gamma": [0.9, 7.0]}, "gamma is 7.0"),
        ({"activation": {"low": 0, "high": 1}}, "range is of numbers"),
    ],
)
def test_a_space_that_cannot_be_is_refused_before_the_first_trial(space, said):
    with pytest.raises(ConfigError, match=said):
        task(space=space)


def test_the_settings_written_are_those_that_differ_and_make_the_same_run():
    found = task(preset="cartpole", held={"vf_coef": 0.7})
    params = {**found.base, "lr": 2e-4, "hidden": (128, 128)}
    settings = found.settings(params)
    again = make_spec(
        "CartPole-v1",
        found.action,
        preset_name=settings.pop("preset"),
        total_steps=settings.pop("total_steps"),
        settings=settings,
    )
    wanted = found.spec_of(params, 0)
    assert (again.ppo, again.net) == (wanted.ppo, wanted.net)
    assert settings["vf_coef"] == 0.7
    assert "adam_eps" not in settings


def test_a_contest_trains_every_seed_in_lockstep_and_judges_each():
    found = task(steps=512, held={"steps": 64, "envs": 2, "epochs": 1})
    contest = found.contest(found.base, [0, 1])
    half = contest.advance(0.5, lambda: False)
    assert [training.env_steps for training in contest.trainings] == [256, 256]
    contest.advance(1.0, lambda: False)
    assert [training.env_steps for training in contest.trainings] == [512, 512]
    contest.close()
    assert half is not None
    assert len(half) == 2
    assert half[0] != half[1]


def test_a_contest_that_is_stopped_says_nothing():
    found = task(held={"steps": 64, "envs": 2})
    contest = found.contest(found.base, [0])
    assert contest.advance(1.0, lambda: True) is None
    contest.close()
