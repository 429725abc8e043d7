"""The facade: what is left unset, what comes back from predict, what survives a save, what SB3's names become."""

from __future__ import annotations

import logging
import os
import random
import signal
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from surefoot.data.spaces import Discrete
from surefoot.envs.make import backend_of, make_world
from surefoot.errors import (
    AllActionsMasked,
    CheckpointIncompatible,
    CheckpointMissing,
    ConfigError,
    EnvError,
    NonFiniteValue,
    PolicyError,
    ShapeError,
    SurefootError,
)
from surefoot.learn.checkpoint.checkpoint import save_checkpoint
from surefoot.nets.actor_critic import ActorCritic
from surefoot.train.facade import PPO
from surefoot.train.interop.sb3_functions import evaluate_policy, make_vec_env
from surefoot.train.interop.sb3_names import VecNormalize, set_random_seed
from surefoot.train.run import create_run
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import make_spec

SMALL: dict[str, Any] = {"n_steps": 8, "n_envs": 2, "batch_size": 8, "n_epochs": 1, "policy_kwargs": {"net_arch": [8]}}


class Countdown(gym.Env[Any, Any]):
    """Episodes of 5 steps that pay 1 each, whatever is done: every return is 5."""

    def __init__(self, observation: Any = None, action: Any = None) -> None:
        self.observation_space = observation or spaces.Box(-1, 1, (3,), np.float32)
        self.action_space = action or spaces.Discrete(2)
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self.look(), {}

    def look(self) -> Any:
        self.last = self.observation_space.sample()
        return self.last

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.steps += 1
        return self.look(), 1.0, self.steps == 5, False, {}


def small(env: Any = "CartPole-v1", **settings: Any) -> PPO:
    chosen = {**SMALL, **settings}
    if not isinstance(env, str) and not callable(env):
        del chosen["n_envs"]
    return PPO("MlpPolicy", env, **chosen)


def weights(model: PPO) -> dict[str, torch.Tensor]:
    return {name: x.clone() for name, x in model.policy.state_dict().items()}


def same_weights(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return set(a) == set(b) and all(torch.equal(a[name], b[name]) for name in a)


# What is left unset


def test_what_is_left_unset_is_the_preset_of_the_family_and_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    ppo = PPO("MlpPolicy", "CartPole-v1", verbose=1, gamma=0.5).spec.ppo
    assert (ppo.envs, ppo.rollout_steps, ppo.epochs, ppo.gamma) == (8, 32, 20, 0.5)
    said = capsys.readouterr().out.splitlines()[0]
    assert "preset 'cartpole'" in said
    assert "epochs=20" in said
    assert "gamma=" not in said


def test_preset_sb3_has_the_defaults_of_stable_baselines3() -> None:
    ppo = PPO("MlpPolicy", "CartPole-v1", preset="sb3").spec.ppo
    assert (ppo.lr, ppo.rollout_steps, ppo.minibatch_size, ppo.epochs) == (3e-4, 2048, 64, 10)
    assert (ppo.envs, ppo.gamma, ppo.lam, ppo.clip, ppo.ent_coef, ppo.target_kl) == (1, 0.99, 0.95, 0.2, 0.0, None)


@pytest.mark.parametrize(
    ("settings", "envs", "steps"),
    [({}, 8, 32), ({"n_steps": 2048}, 1, 2048), ({"n_envs": 4}, 4, 64), ({"n_steps": 5, "n_envs": 3}, 3, 5)],
)
def test_steps_and_envs_follow_each_other_so_that_the_rollout_keeps_its_size(
    settings: dict[str, int], envs: int, steps: int
) -> None:
    ppo = PPO("MlpPolicy", "CartPole-v1", **settings).spec.ppo
    assert (ppo.envs, ppo.rollout_steps) == (envs, steps)


def test_an_env_that_was_given_keeps_its_number_and_the_rollout_its_size() -> None:
    assert PPO("MlpPolicy", gym.make("CartPole-v1")).spec.ppo.rollout_steps == 256  # 8 envs of 32 in the preset
    assert PPO("MlpPolicy", make_world("CartPole-v1", 2)).spec.ppo.rollout_steps == 128
    assert PPO("MlpPolicy", make_world("CartPole-v1", 2), preset="sb3").spec.ppo.rollout_steps == 2048
    with pytest.raises(ConfigError, match="n_envs is 3 but the env that you passed has 2"):
        PPO("MlpPolicy", make_world("CartPole-v1", 2), n_envs=3)


def test_every_kind_of_env_works() -> None:
    for env in (
        "CartPole-v1",
        gym.make("CartPole-v1"),
        gym.make_vec("CartPole-v1", 2, "sync"),
        make_world("CartPole-v1", 2),
        lambda: gym.make("CartPole-v1"),
        Countdown,
    ):
        assert small(env).learn(1).num_timesteps >= 8


def test_any_name_of_a_knob_works_but_not_two_for_one() -> None:
    assert small(clip_coef=0.3).spec.ppo.clip == 0.3
    with pytest.raises(ConfigError, match="clip_range and clip_coef both set clip"):
        small(clip_range=0.2, clip_coef=0.3)


def test_one_thread_is_used() -> None:
    torch.set_num_threads(2)
    small()
    assert torch.get_num_threads() == 1


# The policy


@pytest.mark.parametrize(
    ("policy", "error", "says"),
    [
        ("CnnGruPolicy", ConfigError, "MlpLstmPolicy"),
        ("LstmPolicy", ConfigError, "or a policy that you built"),
        (ActorCritic, ConfigError, "the class ActorCritic; pass an instance"),
        (nn.Linear(4, 2), PolicyError, "ActorCritic"),
        (7, ConfigError, "policy is a int"),
    ],
)
def test_a_policy_that_cannot_be_used_gets_one_sentence(policy: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        PPO(policy, "CartPole-v1")


def test_arguments_of_sb3_name_the_class_that_has_them() -> None:
    for settings in ({"policy_kwargs": {"features_extractor_class": nn.Module}}, {"stats_window_size": 10}):
        with pytest.raises(ConfigError, match=r"surefoot\.sb3\.PPO has it"):
            small(**settings)


class Torso(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 6)

    def forward(self, obs: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.layer(obs["obs"]).relu()


def own_net() -> ActorCritic:
    world = make_world("CartPole-v1")
    return ActorCritic(world.observation, world.action, torso=Torso())


def test_a_policy_of_your_own_is_trained_and_needs_itself_to_be_loaded(tmp_path: Path) -> None:
    model = PPO(own_net(), "CartPole-v1", n_steps=8, n_envs=2, n_epochs=1)
    before = weights(model)["network.torso.layer.weight"]
    model.learn(16).save(tmp_path)
    assert not torch.equal(before, weights(model)["network.torso.layer.weight"])
    with pytest.raises(CheckpointIncompatible, match="pass it as policy="):
        PPO.load(tmp_path)
    assert same_weights(weights(PPO.load(tmp_path, policy=own_net())), weights(model))


def test_settings_of_a_network_that_is_built_already_are_refused() -> None:
    with pytest.raises(ConfigError, match="hidden"):
        PPO(own_net(), "CartPole-v1", policy_kwargs={"net_arch": [32]})


def test_a_policy_for_another_env_is_refused() -> None:
    with pytest.raises(ConfigError, match="shows"):
        PPO(own_net(), "Acrobot-v1")


# Learning


def test_learning_goes_on_for_whole_rollouts_and_returns_the_model() -> None:
    model = small()
    assert model.learn(17) is model
    assert model.num_timesteps == 32  # rollouts of 8 steps in 2 envs
    assert model.learn(16).num_timesteps == 16
    assert model.learn(1e1, reset_num_timesteps=False).num_timesteps == 32
    with pytest.raises(ConfigError, match="total_timesteps is 0"):
        model.learn(0)


def test_a_callback_sees_every_report_and_false_ends_the_training() -> None:
    seen: list[int] = []
    also: list[int] = []
    model = small()
    model.learn(64, callback=[lambda report: seen.append(report.update), lambda report: also.append(report.update)])
    assert seen == also == [1, 2, 3, 4]
    model.learn(1000, callback=lambda report: np.bool_(report.update < 2))
    assert model.num_timesteps == 32


def test_a_schedule_runs_over_the_call_and_is_stretched_when_the_counters_go_on() -> None:
    model, rates = small(learning_rate="lin_0.1", clip_range=lambda remaining: 0.2 * remaining), []
    look = lambda report: rates.append((report.lr, report.clip))  # noqa: E731
    model.learn(32, look)
    assert np.allclose(rates, [(0.1, 0.2), (0.05, 0.1)])
    rates.clear()
    model.learn(32, look, reset_num_timesteps=False)
    assert np.allclose(rates, [(0.05, 0.1), (0.025, 0.05)])
    rates.clear()
    model.learn(32, look)
    assert np.allclose(rates, [(0.1, 0.2), (0.05, 0.1)])


def test_training_in_two_pieces_is_training_in_one() -> None:
    constant = {"learning_rate": 1e-3, "clip_range": 0.2}
    whole, pieces = small(**constant).learn(64), small(**constant)
    pieces.learn(32).learn(32, reset_num_timesteps=False)
    assert same_weights(weights(whole), weights(pieces))


def test_a_training_that_was_stopped_goes_on_along_its_schedule() -> None:
    whole, stopped = small(learning_rate="lin_0.01").learn(64), small(learning_rate="lin_0.01")
    stopped.learn(64, callback=lambda report: report.update < 2)
    assert stopped.num_timesteps == 32
    stopped.learn(32, reset_num_timesteps=False)
    assert same_weights(weights(whole), weights(stopped))


def test_another_seed_is_another_run_and_none_is_0() -> None:
    assert same_weights(weights(small().learn(16)), weights(small(seed=0).learn(16)))
    assert not same_weights(weights(small().learn(16)), weights(small(seed=1).learn(16)))


def test_control_c_lets_the_update_finish_and_leaves_a_model_that_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    model = small()
    model.learn(1000, callback=lambda report: os.kill(os.getpid(), signal.SIGINT), on_interrupt="stop")
    assert model.num_timesteps == 16
    assert "stopped after 16 steps" in capsys.readouterr().err
    assert model.learn(16, reset_num_timesteps=False).num_timesteps == 32


def sb3_class(name: str) -> type:
    return type(name, (), {"__module__": "stable_baselines3.common.callbacks", "__call__": lambda self, x: True})


@pytest.mark.parametrize(
    ("callback", "says"),
    [
        (sb3_class("EvalCallback")(), r"EvalCallback is a callback .* surefoot\.sb3\.PPO"),
        ([sb3_class("EvalCallback")], "EvalCallback .*one UpdateReport"),
        (type("Mine", (sb3_class("BaseCallback"),), {})(), "Mine is a callback of Stable-Baselines3"),
        (lambda locals_, globals_: True, "one UpdateReport"),
        ("print", "one UpdateReport"),
    ],
)
def test_a_callback_of_sb3_is_told_what_replaces_it(callback: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        small().learn(16, callback=callback)


def test_lines_are_printed_every_so_many_updates(capsys: pytest.CaptureFixture[str]) -> None:
    small(verbose=1).learn(64, log_interval=2, progress_bar=True)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("update ")]
    assert [line.split("  ")[:2] for line in lines] == [["update 2", "steps 32/64"], ["update 4", "steps 64/64"]]


def test_curves_go_to_numbered_directories(tmp_path: Path) -> None:
    model = small(tensorboard_log=tmp_path)
    model.learn(16).learn(16, reset_num_timesteps=False).learn(16)
    files = {path.name: len(list(path.glob("events.*"))) for path in tmp_path.iterdir()}
    assert set(files) == {"PPO_1", "PPO_2"}
    events = b"".join(path.read_bytes() for path in (tmp_path / "PPO_1").iterdir())
    assert b"train/approx_kl" in events


# Predicting


def test_one_observation_gives_a_single_choice_and_a_batch_an_array() -> None:
    model = small()
    rows = np.array([[0.1, 0, 0.2, 0], [-2, 0.5, -0.1, 1]], np.float32)
    actions, state = model.predict(rows, deterministic=True)
    assert actions.shape == (2,)
    assert actions.dtype == np.int64
    assert state is None
    for row, action in zip(rows, actions, strict=True):
        single, _ = model.predict(row.tolist(), deterministic=True)
        assert isinstance(single, np.integer)
        assert single.shape == ()
        assert single == action
    with pytest.raises(NonFiniteValue, match="NaN"):
        model.predict(np.full(4, np.nan, np.float32))


def test_a_deterministic_choice_is_the_likeliest_and_a_random_one_is_drawn() -> None:
    model, obs = small(), np.zeros((4000, 4), np.float32)
    with torch.no_grad():
        model.policy.get_parameter("network.policy_out.bias").copy_(torch.tensor([0.0, np.log(3.0)]))
        model.policy.get_parameter("network.policy_out.weight").zero_()
    assert (model.predict(obs, deterministic=True)[0] == 1).all()
    assert abs(model.predict(obs)[0].mean() - 0.75) < 0.03  # e^0 : e^log 3; four deviations of a mean of 4000


@pytest.mark.parametrize(
    "observation",
    [
        spaces.Discrete(4, start=2),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(3),
        spaces.Box(0, 255, (2, 3), np.uint8),
        spaces.Box(-1, 1, (), np.float32),
        spaces.Dict({"a": spaces.Box(-1, 1, (2,), np.float32), "b": spaces.Discrete(3)}),
    ],
)
def test_observations_are_taken_as_the_env_shows_them(observation: Any, tmp_path: Path) -> None:
    model = small(lambda: Countdown(observation=observation)).learn(16)
    model.save(tmp_path)
    loaded = PPO.load(tmp_path)
    for _ in range(5):
        obs = observation.sample()
        action, _ = model.predict(obs, deterministic=True)
        assert model.spaces.gym_action.contains(action)
        assert loaded.predict(obs, deterministic=True)[0] == action


@pytest.mark.parametrize(
    "action",
    [
        spaces.Discrete(3, start=5),
        spaces.MultiDiscrete([[2, 3], [4, 2]]),
        spaces.MultiBinary((2, 2)),
        spaces.Box(np.float32([-0.01, 2]), np.float32([0.01, 3]), dtype=np.float32),
        spaces.Box(-0.01, 0.01, (2, 1), np.float64),
    ],
)
def test_actions_come_as_the_env_takes_them(action: Any, tmp_path: Path) -> None:
    model = small(lambda: Countdown(action=action)).learn(16)
    model.save(tmp_path)
    for each in (model, PPO.load(tmp_path)):
        obs = np.zeros(3, np.float32)
        assert action.contains(each.predict(obs)[0])  # a standard deviation of 1 leaves these boxes, so this clips
        batch, _ = each.predict(np.zeros((7, 3), np.float32))
        assert batch.shape == (7, *action.shape)
        assert all(action.contains(one) for one in batch)


def test_a_mask_forbids() -> None:
    model = small()
    for allowed in (0, 1):
        mask = np.arange(2) == allowed
        assert model.predict(np.zeros(4), action_masks=mask) == (allowed, None)
        assert (model.predict(np.zeros((3, 4)), action_masks=np.tile(mask, (3, 1)))[0] == allowed).all()
    with pytest.raises(AllActionsMasked):
        model.predict(np.zeros(4), action_masks=[False, False])
    with pytest.raises(ShapeError, match="2 action masks for 3"):
        model.predict(np.zeros((3, 4)), action_masks=np.ones((2, 2)))


def test_a_mask_may_be_a_part_of_the_observation(tmp_path: Path) -> None:
    only_1 = spaces.Box(np.int8([0, 1]), np.int8([0, 1]), dtype=np.int8)
    shown = spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float32), "action_mask": only_1})
    model = small(lambda: Countdown(observation=shown))
    model.save(tmp_path)
    batch = {"x": np.zeros((50, 2)), "action_mask": np.tile([0, 1], (50, 1))}
    for each in (model, PPO.load(tmp_path)):
        assert each.predict(shown.sample())[0] == 1
        assert (each.predict(batch)[0] == 1).all()
    with pytest.raises(ShapeError, match="no 'action_mask'"):
        model.predict({"x": np.zeros(2)})


def test_an_observation_of_another_shape_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"\[5\]; it must be \[4\], or \[N, 4\]"):
        small().predict(np.zeros(5))


def test_smooth_noise_is_carried_in_the_state() -> None:
    model = PPO("MlpPolicy", "Pendulum-v1", n_steps=8, n_envs=1, use_sde=True, sde_sample_freq=-1)
    obs = np.array([1.0, 0, 0])
    first, state = model.predict(obs)
    again, _ = model.predict(obs, state=state)
    fresh, _ = model.predict(obs)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, fresh)


def test_looking_at_a_policy_does_not_move_its_training() -> None:
    watched, alone = small(), small()
    watched.learn(16, callback=lambda report: watched.predict(np.zeros(4)) and None)
    assert same_weights(weights(watched), weights(alone.learn(16)))


# Saving and loading


def test_a_loaded_model_goes_on_to_the_last_bit(tmp_path: Path) -> None:
    model = small("Acrobot-v1", learning_rate="lin_0.01").learn(32)  # this preset standardises and scales
    model.save(tmp_path / "model")
    loaded = PPO.load(tmp_path / "model", "Acrobot-v1")
    assert loaded.num_timesteps == 32
    for each in (model, loaded):
        each.learn(32, reset_num_timesteps=False)
    assert same_weights(weights(model), weights(loaded))
    assert model.training is not None
    assert loaded.training is not None
    assert loaded.training.collector.scaler.state()["var"] == model.training.collector.scaler.state()["var"]
    assert loaded.num_timesteps == 64


def test_without_an_env_a_model_predicts_and_can_be_given_one_later(tmp_path: Path) -> None:
    model = small().learn(32)
    model.save(tmp_path / "a")
    loaded = PPO.load(tmp_path / "a")
    assert loaded.get_env() is None
    assert loaded.num_timesteps == 32
    rows = np.random.default_rng(0).normal(size=(20, 4))
    assert np.array_equal(loaded.predict(rows, deterministic=True)[0], model.predict(rows, deterministic=True)[0])
    with pytest.raises(ConfigError, match="set_env"):
        loaded.learn(16)
    loaded.save(tmp_path / "b")
    loaded = PPO.load(tmp_path / "b")
    loaded.set_env("CartPole-v1")
    for each in (model, loaded):
        each.learn(16, reset_num_timesteps=False)
    assert same_weights(weights(model), weights(loaded))


def test_a_model_moves_to_another_number_of_envs_with_its_counters_and_its_optimiser(tmp_path: Path) -> None:
    model = small().learn(32)
    model.save(tmp_path)
    loaded = PPO.load(tmp_path, gym.make("CartPole-v1"))
    assert (loaded.spec.ppo.envs, loaded.spec.ppo.rollout_steps) == (1, 16)
    assert loaded.training is not None
    assert model.training is not None
    ours, theirs = loaded.training.learner.state()["optimizer"], model.training.learner.state()["optimizer"]
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert loaded.learn(16, reset_num_timesteps=False).num_timesteps == 48


def test_settings_may_change_on_loading_but_not_the_network(tmp_path: Path) -> None:
    small().save(tmp_path)
    assert PPO.load(tmp_path, learning_rate=0.5).spec.ppo.lr == 0.5
    with pytest.raises(ConfigError, match="hidden"):
        PPO.load(tmp_path, net_arch=[3])


def test_a_run_directory_can_be_loaded_and_so_can_its_checkpoints(tmp_path: Path) -> None:
    spec = make_spec(
        "CartPole-v1", Discrete(2), settings={"n_steps": 8, "n_envs": 2, "n_epochs": 1}, total_steps=16, eval_every=0
    )
    run = create_run(RunDir(tmp_path), spec)
    for _ in run.moments():
        pass
    run.close("finished")
    expected = dict(run.training.policy.state_dict())
    for path in (tmp_path, tmp_path / "checkpoints", tmp_path / "checkpoints" / "000001"):
        assert same_weights(weights(PPO.load(path)), expected)
    assert PPO.load(tmp_path, "CartPole-v1").learn(16, reset_num_timesteps=False).num_timesteps == 32


def test_what_cannot_be_loaded_gets_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CheckpointMissing):
        PPO.load(tmp_path / "nothing")
    (tmp_path / "sb3.zip").write_bytes(b"PK")
    for name in ("sb3.zip", "sb3"):
        with pytest.raises(CheckpointIncompatible, match="Stable-Baselines3"):
            PPO.load(tmp_path / name)
    save_checkpoint(tmp_path / "other", 1, {"weights": {}})
    with pytest.raises(CheckpointIncompatible, match="has no settings with it"):
        PPO.load(tmp_path / "other")
    small().save(tmp_path / "cartpole")
    with pytest.raises(ConfigError, match=r"Acrobot-v1 shows"):
        PPO.load(tmp_path / "cartpole", "Acrobot-v1")


# Evaluating


def test_an_evaluation_gives_the_returns_the_env_paid() -> None:
    model = small(Countdown)
    assert evaluate_policy(model, Countdown, 7) == (5.0, 0.0)
    assert evaluate_policy(model.policy, Countdown(), 2) == (5.0, 0.0)
    rewards, lengths = evaluate_policy(model, Countdown, 3, return_episode_rewards=True)
    assert (rewards, lengths) == ([5.0] * 3, [5] * 3)


def test_an_evaluation_repeats_itself_and_changes_with_its_seed() -> None:
    model = small()
    first = evaluate_policy(model, "CartPole-v1", 5, deterministic=False)
    assert evaluate_policy(model, "CartPole-v1", 5, deterministic=False) == first
    assert evaluate_policy(model, "CartPole-v1", 5, deterministic=False, seed=1) != first


def test_an_evaluation_in_the_training_env_leaves_the_training_as_it_was() -> None:
    alone, env = small(gym.make("CartPole-v1")), gym.make("CartPole-v1")
    watched, world = small(env), make_world("CartPole-v1", 2)
    for model, place in ((watched, env), (watched, watched.get_env())):
        assert place is not None
        model.learn(16)
        evaluate_policy(model, place, 2)
        alone.learn(16)
        assert same_weights(weights(watched), weights(alone))
    assert evaluate_policy(small(world), world, 2)[0] > 0


def test_an_evaluation_in_a_training_env_that_cannot_be_put_back_begins_new_episodes() -> None:
    env = Countdown()
    env.handle = open(os.devnull)  # noqa: SIM115  (no state holds an open file)
    model = small(env, n_steps=3).learn(3)
    assert model.get_env().inexact is not None
    evaluate_policy(model, env, 1)
    assert model.training is not None
    assert np.array_equal(model.training.collector.view.obs["obs"][0], env.last)
    model.learn(7, reset_num_timesteps=False)
    assert model.recent_return == 5.0
    env.handle.close()


def test_an_env_of_other_spaces_is_refused_for_evaluation() -> None:
    with pytest.raises(ConfigError, match="shows"):
        evaluate_policy(small(), "Acrobot-v1", 1)


# What SB3 has around it


def test_a_classic_id_is_our_own_world_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "surefoot"):
        world = make_vec_env("CartPole-v1", 3, seed=1)
        assert (backend_of(world), world.num_envs) == ("surefoot", 3)
        assert "built-in vectorized world" in caplog.text
        caplog.clear()
        assert backend_of(make_vec_env("CartPole-v1", backend="gymnasium")) == "gymnasium"
        assert backend_of(make_vec_env("CartPole-v1", env_kwargs={"sutton_barto_reward": True})) == "gymnasium"
        assert caplog.text == ""


def test_vec_normalize_turns_on_what_it_names_and_leaves_the_world_alone() -> None:
    world = make_vec_env("CartPole-v1", 2)
    model = PPO("MlpPolicy", VecNormalize(world, norm_reward=False, clip_obs=5), n_steps=8)
    assert model.get_env() is world
    assert (model.spec.net.normalize_obs, model.spec.net.obs_clip) == (True, 5)
    assert model.spec.collect.normalize_reward is False
    assert evaluate_policy(model, VecNormalize(world), 1)[0] > 0
    with pytest.raises(ConfigError, match=r"gamma=0.5 and PPO gamma=0.98"):
        PPO("MlpPolicy", VecNormalize(world, gamma=0.5))
    with pytest.raises(ConfigError, match="the statistics are part of the policy"):
        VecNormalize(world).save("x")


def test_set_random_seed_seeds_the_global_generators() -> None:
    def draws() -> tuple[float, float, float]:
        set_random_seed(4)
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    assert draws() == draws()


def test_attributes_of_sb3_say_where_they_went() -> None:
    with pytest.raises(AttributeError, match="surefoot.sb3.PPO"):
        _ = small().logger
    with pytest.raises(AttributeError, match="no 'nothing'"):
        _ = small().nothing


def test_a_world_that_is_there_already_cannot_get_workers() -> None:
    with pytest.raises(ConfigError, match="pass workers=1 where it is built"):
        PPO("MlpPolicy", make_vec_env("CartPole-v1", 2), workers=1)
    with pytest.raises(ConfigError, match="built-in CartPole-v1"):
        PPO("MlpPolicy", "CartPole-v1", n_envs=2, workers=1)


def test_a_layer_frozen_between_two_calls_of_learn_stays_where_it_is():
    model = PPO("MlpPolicy", "CartPole-v1", seed=1, n_envs=4, n_steps=16, batch_size=32).learn(64)
    weight = model.policy.network.actor[0].weight
    before = weight.detach().clone()
    weight.requires_grad_(False)
    model.learn(64, reset_num_timesteps=False)
    assert torch.equal(before, weight)


def test_control_c_reaches_the_caller_so_that_a_loop_over_seeds_stops() -> None:
    seeds, model = list[int](), small()
    with pytest.raises(KeyboardInterrupt):
        for seed in range(3):
            seeds.append(seed)
            model.learn(1000, callback=lambda report: os.kill(os.getpid(), signal.SIGINT))
    assert seeds == [0]
    assert model.learn(16, reset_num_timesteps=False).num_timesteps == 32


def test_an_env_that_breaks_at_control_c_is_an_interrupt_too(tmp_path: Path) -> None:
    class Broken(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            if model.num_timesteps >= 8:
                os.kill(os.getpid(), signal.SIGINT)
                raise ConnectionResetError("the worker is gone")
            return super().step(action)

    model = PPO("MlpPolicy", Broken(gym.make("CartPole-v1")), n_steps=8, batch_size=8, n_epochs=1)
    with pytest.raises(KeyboardInterrupt):
        model.learn(1000)
    model.save(tmp_path / "whole")
    assert PPO.load(tmp_path / "whole").num_timesteps == model.num_timesteps


def test_sigterm_ends_the_script() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[Any] = []
    small().learn(16, callback=lambda report: seen.append(signal.getsignal(signal.SIGTERM)))
    assert seen == [before]


def test_a_size_that_follows_from_another_is_said(caplog: pytest.LogCaptureFixture) -> None:
    PPO("MlpPolicy", "CartPole-v1", n_steps=128)
    assert "n_steps=128 and a rollout of 256 steps, as in the preset: n_envs is 2; pass n_envs" in caplog.text
    caplog.clear()
    PPO("MlpPolicy", "CartPole-v1", n_steps=128, n_envs=2)
    PPO("MlpPolicy", "CartPole-v1")
    assert not caplog.records


def test_a_presets_gsde_is_said_if_settings_are_passed(caplog: pytest.LogCaptureFixture) -> None:
    PPO("MlpPolicy", "Pendulum-v1", learning_rate=1e-3)
    assert "uses gSDE; pass use_sde=False" in caplog.text
    caplog.clear()
    PPO("MlpPolicy", "Pendulum-v1", learning_rate=1e-3, use_sde=False)
    assert "gSDE" not in caplog.text


def test_verbose_prints_the_differences_from_sb3_and_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    PPO("MlpPolicy", "CartPole-v1", preset="sb3", gamma=0.9, verbose=1)
    out = capsys.readouterr().out
    assert "different from SB3's defaults: gamma=0.9\n" in out
    assert "learning by " in out


def test_the_result_of_reset_is_not_an_observation() -> None:
    with pytest.raises(ShapeError, match=r"obs, info = env.reset\(\)"):
        small().predict(gym.make("CartPole-v1").reset())


def test_a_foreign_vec_env_is_named() -> None:
    from surefoot.compat.sb3.vec_env import DummyVecEnv as Foreign

    with pytest.raises(SurefootError, match=r"DummyVecEnv is a VecEnv .* surefoot.sb3.PPO"):
        PPO("MlpPolicy", Foreign([lambda: gym.make("CartPole-v1")]))  # pyright: ignore[reportArgumentType]  # that is the test


def test_a_reward_that_is_an_array_is_named() -> None:
    class Listed(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            obs, _, terminated, truncated, info = super().step(action)
            return obs, np.array([1.0, 2.0]), terminated, truncated, info

    with pytest.raises(EnvError, match=r"a reward of shape \[2\]; return a number"):
        PPO("MlpPolicy", Listed(gym.make("CartPole-v1")), n_steps=8).learn(8)
