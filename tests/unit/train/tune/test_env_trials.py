"""What is searched of an env, and what a trial trains."""

from __future__ import annotations

import pytest

from surefoot.envs.make import make_world
from surefoot.errors import ConfigError, RenamedWarning
from surefoot.learn.schedule import Linear
from surefoot.learn.search_ranges import Choice, Range
from surefoot.train.spec import make_spec
from surefoot.train.spec_worlds import world_maker
from surefoot.train.tune.env_trials import EnvTask, start_of


def task(env="CartPole-v1", *, preset="sb3", held=None, space=None, steps=256, **settings):
    world = make_world(env)
    spec = make_spec(env, world.action, preset_name=preset, settings={**settings, **(held or {})}, total_steps=steps)
    return EnvTask(spec, world_maker(spec), world.action, held=held, space=space)


def test_the_base_is_within_what_is_searched():
    found = task()
    assert found.base["rollout_steps"] == 2048
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
        ({"learning_rat": [1, 2]}, "not a setting that can be searched"),
        ({"gamma": [0.9, 7.0]}, "gamma is 7.0"),
        ({"activation": {"low": 0, "high": 1}}, "range is numeric"),
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
    found = task(steps=512, held={"rollout_steps": 64, "envs": 2, "epochs": 1})
    trial_run = found.trial_run(found.base, [0, 1])
    half = trial_run.advance(0.5, lambda: False)
    assert [training.env_steps for training in trial_run.trainings] == [256, 256]
    trial_run.advance(1.0, lambda: False)
    assert [training.env_steps for training in trial_run.trainings] == [512, 512]
    trial_run.close()
    assert half is not None
    assert len(half) == 2
    assert half[0] != half[1]


def test_a_contest_that_is_stopped_says_nothing():
    found = task(held={"rollout_steps": 64, "envs": 2})
    trial_run = found.trial_run(found.base, [0])
    assert trial_run.advance(1.0, lambda: True) is None
    trial_run.close()


def never() -> bool:
    return False


def test_a_contest_goes_on_from_its_state_to_the_last_digit():
    found = task(steps=512, held={"rollout_steps": 32, "envs": 4, "normalize_obs": True})
    straight, broken, resumed = (found.trial_run(found.base, [0, 1]) for _ in range(3))
    straight.advance(0.5, never)
    broken.advance(0.5, never)
    resumed.set_state(broken.state())
    assert straight.advance(1.0, never) == resumed.advance(1.0, never)
    assert [t.env_steps for t in resumed.trainings] == [512, 512]


def test_a_space_may_use_the_former_name_of_a_setting():
    with pytest.warns(RenamedWarning, match="rollout_steps"):
        assert task(space={"steps": [16, 32]}).space["rollout_steps"].values == (16, 32, 2048)


@pytest.mark.parametrize(
    ("name", "other"), [("lr", 1e-4), ("gamma", 0.9), ("rollout_steps", 16), ("minibatch_size", 32), ("epochs", 3)]
)
def test_settings_that_move_go_on_with_the_weights_of_others(name, other):
    found = task(steps=512, held={"envs": 4}, space={"rollout_steps": [16, 32]}, preset="cartpole")
    assert name in found.moving
    first, second = found.trial_run(found.base, [0]), found.trial_run({**found.base, name: other}, [0])
    first.advance(0.5, never)
    second.set_state(first.state())
    assert second.trainings[0].env_steps == first.trainings[0].env_steps
    assert start_of(getattr(second.trainings[0].learner.config, name)) == other
    assert second.advance(1.0, never) is not None


def test_what_has_a_shape_does_not_move():
    assert not {"hidden", "envs", "normalize_obs", "normalize_reward", "log_std_init"} & task("Pendulum-v1").moving
