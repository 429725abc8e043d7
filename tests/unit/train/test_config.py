"""One flat list of settings, from a command line, our YAML or the zoo's, into three configs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.schedule import Linear
from surefoot.train.config import COLLECT_NAMES, CollectConfig, read_settings, split_settings

ZOO = """
default:
  n_timesteps: 50000
  learning_rate: 1e-3
CartPole-v1: &cart
  n_envs: 8
  n_timesteps: !!float 1e5
  policy: 'MlpPolicy'
  n_steps: 32
  batch_size: 256
  learning_rate: lin_0.001
CartPole-v0:
  <<: *cart
  n_steps: 64
HalfCheetah-v3:
  normalize: true
  learning_rate: !!float 2.0633e-05
  policy_kwargs: "dict(
                    log_std_init=-2,
                    ortho_init=False,
                    activation_fn=nn.ReLU,
                    net_arch=[dict(pi=[256, 256], vf=[256, 256])]
                  )"
CarRacing-v0:
  normalize: "{'norm_obs': False, 'norm_reward': True}"
Breakout-v4:
  env_wrapper:
    - some.AtariWrapper
Pong-v4:
  frame_stack: 4
Strange-v0:
  policy: 'TransformerPolicy'
"""


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    path = tmp_path / "ppo.yml"
    path.write_text(ZOO)
    return path


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "settings.yml"
    path.write_text(text)
    return path


def test_settings_find_their_config_and_text_its_meaning():
    ppo, net, collect = split_settings(
        {"learning_rate": "1e-3", "clip_range": "lin_0.2", "hidden": "32,32", "use_sde": "true", "reward_range": "-1,1"}
    )
    assert ppo == {"lr": 1e-3, "clip": Linear(0.2)}
    assert net == {"hidden": (32, 32), "gsde": True}
    assert collect == {"reward_range": (-1.0, 1.0)}


def test_policy_kwargs_are_taken_apart():
    _, net, _ = split_settings({"policy_kwargs": {"net_arch": [32], "log_std_init": -1.0}})
    assert net == {"hidden": (32,), "critic_hidden": None, "log_std_init": -1.0}


@pytest.mark.parametrize(
    ("written", "obs", "reward"),
    [
        (True, True, True),
        ("true", True, True),
        (False, False, False),
        ("{'norm_obs': False, 'norm_reward': True}", False, True),
        ("dict(norm_reward=False)", True, False),
    ],
)
def test_normalize_is_two_knobs(written: Any, obs: bool, reward: bool):
    _, net, collect = split_settings({"normalize": written})
    assert (net["normalize_obs"], collect["normalize_reward"]) == (obs, reward)


def test_all_unknown_names_are_in_one_error():
    with pytest.raises(
        ConfigError, match=r"'lerning_rate'; did you mean learning_rate.*'reward_clp'; did you mean reward"
    ):
        split_settings({"lerning_rate": 1, "reward_clp": 2, "gamma": 0.9})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy_kwargs": {"net_arch": [1]}, "net_arch": [2]}, "policy_kwargs and net_arch both set net_arch"),
        ({"policy_kwargs": [1]}, "policy_kwargs is"),
        ({"policy_kwargs": "open('x')"}, "cannot read"),
        ({"normalize": 3}, "normalize is 3"),
        ({"normalize": True, "normalize_obs": True}, "both set normalize_obs"),
        ({"epochs": "few"}, "epochs is 'few'"),
        ({"total_timesteps": 5}, "length of a run"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        split_settings(settings)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("lr", "1e-3", 1e-3),
        ("n_steps", "1e3", 1000),
        ("target_kl", "none", None),
        ("shared", "true", True),
        ("hidden", "64,64", (64, 64)),
        ("clip_range", "lin_0.2", Linear(0.2)),
        ("nonfinite", "drop_episode", "drop_episode"),
        ("normalize_advantage", "false", "off"),
    ],
)
def test_text_from_a_command_line_is_read_by_its_knob(name: str, text: str, value: object):
    ppo, net, collect = split_settings({name: text})
    assert list({**ppo, **net, **collect}.values()) == [value]


def test_a_name_of_the_zoo_sets_two_knobs():
    _, net, collect = split_settings({"normalize": "true"})
    assert (net, collect) == ({"normalize_obs": True}, {"normalize_reward": True})


class TestCollectConfig:
    def test_the_defaults_leave_rewards_alone(self):
        config = CollectConfig()
        assert (config.normalize_reward, config.reward_clip, config.reward_range) == (False, 10.0, None)
        assert config.nonfinite == "raise"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("normalize_reward", "yes"),
            ("reward_clip", 0),
            ("reward_range", (1.0, 1.0)),
            ("reward_range", (1.0,)),
            ("reward_range", (0.0, float("inf"))),
            ("nonfinite", "ignore"),
            ("workers", -1),
            ("workers", "many"),
            ("workers", 1.5),
        ],
    )
    def test_an_illegal_value_is_named(self, name: str, value: object):
        with pytest.raises(ConfigError, match=f"{name} is "):
            CollectConfig(**{name: value})  # pyright: ignore[reportArgumentType]

    def test_json_and_back_and_vecnormalizes_names(self):
        config = CollectConfig.make(norm_reward=True, clip_reward=5, reward_range=[-1, 1])
        assert CollectConfig.from_json(config.to_json()) == config
        assert config.replace(norm_reward=False).normalize_reward is False

    def test_workers_are_a_number_or_to_be_found_out(self):
        assert CollectConfig().workers == "auto"
        assert [CollectConfig.make(workers=text).workers for text in ("auto", "0", "3", 2)] == ["auto", 0, 3, 2]
        assert CollectConfig.from_json({}).workers == "auto"

    def test_every_knob_is_described(self):
        assert {row["name"] for row in CollectConfig.describe()} == set(COLLECT_NAMES.knobs)


class TestZooFile:
    def test_the_entry_of_the_env_is_taken(self, zoo: Path):
        settings = read_settings(zoo, "CartPole-v1")
        assert settings["total_steps"] == 100_000
        ppo, net, collect = split_settings({k: v for k, v in settings.items() if k != "total_steps"})
        assert ppo == {"envs": 8, "rollout_steps": 32, "minibatch_size": 256, "lr": Linear(1e-3)}
        assert net == collect == {}

    def test_a_merged_entry_is_merged(self, zoo: Path):
        assert read_settings(zoo, "CartPole-v0") == {
            "n_envs": 8,
            "n_steps": 64,
            "batch_size": 256,
            "learning_rate": "lin_0.001",
            "total_steps": 100_000,
        }

    def test_policy_kwargs_in_text_become_a_network(self, zoo: Path):
        ppo, net, collect = split_settings(read_settings(zoo, "HalfCheetah-v3"))
        assert ppo == {"lr": 2.0633e-5}
        assert net == {
            "log_std_init": -2,
            "ortho_init": False,
            "activation": "relu",
            "hidden": (256, 256),
            "critic_hidden": None,
            "normalize_obs": True,
        }
        assert collect == {"normalize_reward": True}

    @pytest.mark.parametrize("env_id", ["Unknown-v7", None])
    def test_default_serves_the_rest(self, zoo: Path, env_id: str | None):
        # YAML reads 1e-3 as text, for want of a point; the knob reads it as a number.
        settings = read_settings(zoo, env_id)
        assert settings.pop("total_steps") == 50_000
        assert split_settings(settings)[0] == {"lr": 1e-3}

    @pytest.mark.parametrize(("env_id", "key"), [("Breakout-v4", "env_wrapper"), ("Pong-v4", "frame_stack")])
    def test_wrappers_are_refused_by_name(self, zoo: Path, env_id: str, key: str):
        with pytest.raises(ConfigError, match=f"{key} is not supported"):
            read_settings(zoo, env_id)

    def test_an_unknown_policy_is_refused(self, zoo: Path):
        with pytest.raises(ConfigError, match="policy is 'TransformerPolicy'"):
            read_settings(zoo, "Strange-v0")

    def test_without_an_entry_and_a_default_the_file_says_what_it_has(self, tmp_path: Path):
        path = write(tmp_path, "Acrobot-v1:\n  n_steps: 3\nPendulum-v1:\n  n_steps: 4\n")
        with pytest.raises(ConfigError, match="settings for Acrobot-v1, Pendulum-v1 but none for 'CartPole-v1'"):
            read_settings(path, "CartPole-v1")


class TestOwnFile:
    def test_a_flat_list_is_taken_as_it_is(self, tmp_path: Path):
        path = write(tmp_path, "preset: fast\ntotal_steps: 1e4\nlr: 1e-3\nnormalize_advantage: off\nhidden: [32, 32]\n")
        settings = read_settings(path, "CartPole-v1")
        assert (settings.pop("preset"), settings.pop("total_steps")) == ("fast", 10_000)
        ppo, net, _ = split_settings(settings)
        config = PPOConfig.make("fast", **ppo)
        assert (config.lr, config.normalize_advantage, config.rollout_steps) == (1e-3, "off", 512)
        assert net == {"hidden": [32, 32]}

    def test_a_list_whose_values_are_all_mappings_is_no_zoo_file_if_its_names_are_settings(self, tmp_path: Path):
        path = write(tmp_path, "policy_kwargs:\n  net_arch: [8]\nlr: {kind: linear, start: 0.5}\n")
        ppo, net, _ = split_settings(read_settings(path, "CartPole-v1"))
        assert net["hidden"] == (8,)
        assert PPOConfig.make(**ppo).lr == Linear(0.5)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("- 1\n- 2\n", "contains list; it must be a mapping"),
            ("", "contains no settings"),
            ("{}", "contains no settings"),
            ("a: [1", "cannot read settings"),
            ("a: !!python/object/apply:os.system ['true']", "cannot read settings"),
            ("total_steps: 5\nn_timesteps: 6\n", "total_steps and n_timesteps both"),
            ("total_steps: -5\n", "total_steps is -5"),
            ("total_steps: soon\n", "total_steps is 'soon'"),
        ],
    )
    def test_a_file_that_cannot_work_is_refused(self, tmp_path: Path, text: str, message: str):
        with pytest.raises(ConfigError, match=message):
            read_settings(write(tmp_path, text), None)

    def test_a_missing_file_is_a_config_error(self, tmp_path: Path):
        with pytest.raises(ConfigError, match="cannot read settings from"):
            read_settings(tmp_path / "none.yml", None)
