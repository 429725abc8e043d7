import gymnasium as gym
import pytest
import yaml
from torch import nn

from surefoot.cli.main import main
from surefoot.compat.sb3.functions import LinearSchedule
from surefoot.compat.sb3.vec_env import VecFrameStack, VecNormalize
from surefoot.compat.sb3.zoo import FrameSkip, current_id, make_model, read_zoo_run
from surefoot.errors import ConfigError

# The keys and notations of RL Zoo's hyperparams/ppo.yml, one env for each.
FILE = """
atari:
  env_wrapper:
    - stable_baselines3.common.atari_wrappers.AtariWrapper
  frame_stack: 4
  policy: 'CnnPolicy'
default: {n_timesteps: !!float 1e6, policy: 'MlpPolicy'}
Pendulum-v1:
  env_wrapper:
    - rl_zoo3.wrappers.FrameSkip:
        skip: 2
    - gymnasium.wrappers.TimeLimit:
        max_episode_steps: 10
  frame_stack: 3
  normalize: "{'norm_obs': False, 'norm_reward': True}"
  n_envs: 2
  n_steps: 16
  batch_size: 16
  n_epochs: 1
  gamma: 0.9
  n_timesteps: !!float 1e5
  learning_rate: lin_1e-4
  use_sde: True
  sde_sample_freq: 4
  policy_kwargs: "dict(log_std_init=-2, ortho_init=False, activation_fn=nn.GELU, net_arch=dict(pi=[8], vf=[8]))"
CartPole-v1: {n_steps: 16, batch_size: 16, n_epochs: 1, vec_env_wrapper: stable_baselines3.common.vec_env.VecCheckNan}
Acrobot-v1: {env_wrapper: no_such_package.Wrapper, policy: 'MlpPolicy'}
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "ppo.yml").write_text(FILE)
    return tmp_path / "ppo.yml"


def test_an_entry_becomes_a_model_in_its_wrapped_envs(path):
    run = read_zoo_run(path, "Pendulum-v1")
    assert (run.steps, run.envs, run.frame_stack, run.normalize) == (
        100_000,
        2,
        3,
        {"norm_obs": False, "norm_reward": True},
    )
    assert isinstance(run.settings["learning_rate"], LinearSchedule)
    model = make_model(run, verbose=0).learn(32)
    assert isinstance(model.env, VecFrameStack)
    assert isinstance(model.env.venv, VecNormalize)
    assert model.env.venv.gamma == 0.9
    assert model.observation_space.shape == (9,)
    assert (model.use_sde, model.sde_sample_freq, model.policy.activation_fn) == (True, 4, nn.GELU)
    assert max(e["l"] for e in model.ep_info_buffer or [{"l": 0}]) <= 20


def test_an_action_is_repeated_and_the_rewards_are_summed():
    env = FrameSkip(gym.make("CartPole-v1"), skip=3)
    env.reset(seed=0)
    assert env.step(0)[1] == 3.0


def test_games_have_the_entry_of_all_games_and_others_the_default(path):
    assert read_zoo_run(path, "PongNoFrameskip-v4").policy == "CnnPolicy"
    assert read_zoo_run(path, "Walker2d-v4").settings == {}


def test_an_id_that_gymnasium_removed_is_the_newest_of_its_name():
    assert current_id("CartPole-v1") == "CartPole-v1"
    assert current_id("Acrobot-v0") == "Acrobot-v1"
    assert current_id("Reacher-v2") == "Reacher-v5"


def test_a_wrapper_that_is_not_installed_is_named(path):
    with pytest.raises(ConfigError, match=r"no_such_package.Wrapper cannot be imported"):
        make_model(read_zoo_run(path, "Acrobot-v1"))


def test_the_command_trains_and_saves(path, tmp_path, capsys):
    out = tmp_path / "cart.zip"
    assert main(["import", "zoo", str(path), "CartPole-v1", "--train", "-n", "16", "-o", str(out)]) == 0
    assert out.is_file()
    assert yaml.safe_load(FILE)["CartPole-v1"]["n_steps"] == 16
