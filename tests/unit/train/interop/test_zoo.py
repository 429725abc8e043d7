"""Entries of RL Zoo's hyperparameters/ppo.yml."""

from __future__ import annotations

import pytest
import yaml

from surefoot.cli.main import main
from surefoot.errors import ConfigError
from surefoot.train.interop.zoo import read_zoo

FILE = """
mujoco-defaults: &mujoco-defaults
  normalize: true
  n_envs: 1
  policy: 'MlpPolicy'
  n_timesteps: !!float 1e6

HalfCheetah-v4:
  <<: *mujoco-defaults
  normalize: "dict(norm_obs=True, norm_reward=False)"
  n_steps: 512
  batch_size: 64
  learning_rate: lin_2.0633e-05
  clip_range: 0.1
  policy_kwargs: "dict(
                    log_std_init=-2,
                    ortho_init=False,
                    activation_fn=nn.ReLU,
                    net_arch=dict(pi=[256, 256], vf=[128])
                  )"

Odd-v0:
  policy: TransformerPolicy
  env_wrapper:
    - gymnasium.wrappers.FlattenObservation
  frame_stack: 4
  gama: 0.9
  n_epochs: 20
  policy_kwargs: "dict(features_extractor_class=MyNet)"

Evil-v0:
  policy_kwargs: "__import__('os').system('touch never')"
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "ppo.yml").write_text(FILE)
    return tmp_path / "ppo.yml"


def test_an_entry_comes_over_by_our_names(path):
    settings, left = read_zoo(path, "HalfCheetah-v4")
    assert left == []
    assert settings == {
        "preset": "sb3",
        "total_steps": 1_000_000,
        "lr": "lin_2.0633e-05",
        "clip": 0.1,
        "minibatch_size": 64,
        "rollout_steps": 512,
        "envs": 1,
        "hidden": [256, 256],
        "critic_hidden": [128],
        "activation": "relu",
        "ortho_init": False,
        "log_std_init": -2.0,
        "normalize_obs": True,
        "normalize_reward": False,
    }


def test_every_key_without_a_counterpart_is_named(path):
    settings, left = read_zoo(path, "Odd-v0")
    assert settings["epochs"] == 20
    named = {sentence.partition(":")[0] for sentence in left}
    assert named == {"policy", "env_wrapper", "frame_stack", "gama", "features_extractor_class"}
    assert "did you mean" in next(sentence for sentence in left if sentence.startswith("gama"))


def test_a_text_that_would_do_something_is_refused(path, tmp_path):
    with pytest.raises(ConfigError, match="literal"):
        read_zoo(path, "Evil-v0")
    assert not (tmp_path / "never").exists()


def test_an_env_that_is_not_there_is_named(path):
    with pytest.raises(ConfigError, match="none for 'CartPole-v1'"):
        read_zoo(path, "CartPole-v1")


def test_what_is_written_is_what_train_takes(path, tmp_path, capsys):
    out = tmp_path / "cheetah.yaml"
    assert main(["import", "zoo", str(path), "HalfCheetah-v4", "-o", str(out)]) == 0
    assert main(["train", "Pendulum-v1", "--config", str(out), "--dry-run"]) == 0
    shown = yaml.safe_load(capsys.readouterr().out.partition("\n")[2])
    assert shown["hidden"] == [256, 256]
    assert shown["normalize_reward"] is False


def test_something_left_out_is_a_finding(path, capsys):
    assert main(["import", "zoo", str(path), "Odd-v0"]) == 1
    assert "not converted: env_wrapper" in capsys.readouterr().err
