import os
import signal
import threading

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.callbacks import BaseCallback
from surefoot.compat.sb3.make_env import make_vec_env
from surefoot.compat.sb3.policies.layers import BaseFeaturesExtractor
from surefoot.compat.sb3.ppo import PPO
from surefoot.compat.sb3.vec_env import SubprocVecEnv, VecNormalize
from surefoot.envs.builtin.native import NativeWorld


def test_the_defaults_are_those_of_stable_baselines3():
    model = PPO("MlpPolicy", "CartPole-v1")
    assert (model.n_steps, model.batch_size, model.n_epochs, model.gamma, model.gae_lambda) == (
        2048,
        64,
        10,
        0.99,
        0.95,
    )
    assert (model.ent_coef, model.vf_coef, model.max_grad_norm, model.n_envs) == (0.0, 0.5, 0.5, 1)
    assert model.clip_range(1.0) == 0.2
    assert model.lr_schedule(1.0) == 3e-4


def test_an_unchanged_cartpole_is_trained_in_the_built_in_world_by_the_kernel():
    model = PPO("MlpPolicy", make_vec_env("CartPole-v1", n_envs=2), n_steps=32, seed=0).learn(128)
    assert isinstance(model._collector.world, NativeWorld)
    assert model._learner.path == "native"
    assert model.num_timesteps == 128
    assert model._n_updates == 20
    assert model.logger.name_to_value["train/clip_range"] == 0.2


def test_two_models_with_one_seed_are_equal():
    first, second = (PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=3).learn(128) for _ in range(2))
    for a, b in zip(first.policy.parameters(), second.policy.parameters(), strict=True):
        assert torch.equal(a, b)


class Recorder(BaseCallback):
    def __init__(self, stop_at=10**9):
        super().__init__()
        self.seen, self.stop_at, self.ends = [], stop_at, 0

    def _on_step(self):
        self.seen.append((self.locals["new_obs"][0, 0], self.locals["values"].shape, len(self.locals["infos"])))
        return self.n_calls < self.stop_at

    def _on_rollout_end(self):
        self.ends += 1


def test_a_callback_sees_every_step_and_can_stop_the_training():
    callback = Recorder(stop_at=10)
    model = PPO("MlpPolicy", CountingEnv(), n_steps=8, batch_size=8, n_epochs=1)
    model.learn(1000, callback=callback)
    # Observations count the steps of an episode of 4.
    assert [x for x, _, _ in callback.seen] == [1, 2, 3, 0, 1, 2, 3, 0, 1, 2]
    assert model.num_timesteps == 10
    assert callback.ends == 1


def test_a_callback_without_a_step_is_called_after_rollouts():
    class AtEnd(BaseCallback):
        sizes: list = []  # noqa: RUF012

        def _on_step(self):
            return True

        def _on_rollout_end(self):
            self.sizes.append(self.model.rollout_buffer.advantages.shape)

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, n_epochs=1).learn(128, callback=AtEnd())
    assert AtEnd.sizes == [(64, 1), (64, 1)]
    assert isinstance(model._collector.world, NativeWorld)


def test_truncation_is_bootstrapped_and_termination_is_not():
    cut, end = (
        PPO("MlpPolicy", CountingEnv(truncates=x), n_steps=8, batch_size=8, n_epochs=1).learn(8).rollout_buffer
        for x in (True, False)
    )
    assert np.array_equal(end.rewards, np.ones((8, 1)))
    assert cut.rollout.truncated[3, 0]
    assert cut.rewards[3, 0] != 1.0


class Twice(BaseFeaturesExtractor):
    def __init__(self, observation_space: spaces.Box, factor: float = 2.0):
        super().__init__(observation_space, features_dim=observation_space.shape[0])
        self.factor = factor

    def forward(self, observations):
        return observations * self.factor


@pytest.mark.parametrize(
    "kwargs",
    [
        {"policy_kwargs": {"features_extractor_class": Twice, "features_extractor_kwargs": {"factor": 3.0}}},
        {"policy_kwargs": {"optimizer_class": torch.optim.AdamW, "net_arch": {"pi": [8], "vf": [4, 4]}}},
        {"clip_range_vf": 0.2},
        {"learning_rate": lambda left: left * 1e-3},
    ],
)
def test_customized_models_learn_on_the_torch_path(kwargs):
    model = PPO("MlpPolicy", CountingEnv(), n_steps=16, batch_size=8, n_epochs=2, **kwargs)
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(32)
    assert any(not torch.equal(a, b) for a, b in zip(before, model.policy.parameters(), strict=True))
    assert model._learner.path == ("native" if "learning_rate" in kwargs else "torch")


def test_vec_normalize_is_stepped_by_the_training():
    env = VecNormalize(make_vec_env("Pendulum-v1", n_envs=2))
    PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1).learn(64)
    # One reset and 32 steps of two envs.
    assert env.obs_rms.count == pytest.approx(66, abs=0.01)


def test_ctrl_c_reaches_the_caller_and_leaves_the_model_whole():
    env = SubprocVecEnv([CountingEnv, CountingEnv], start_method="fork")
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        model.learn(10**9)
    assert all(torch.isfinite(p).all() for p in model.policy.parameters())
    steps = model.learn(128).num_timesteps
    env.close()
    assert steps == 128


def test_a_custom_rollout_buffer_is_refused():
    with pytest.raises(NotImplementedError, match="rollout buffer"):
        PPO("MlpPolicy", "CartPole-v1", rollout_buffer_class=dict)


class DigitEnv(gym.Env):
    """Observes one of three digits; the action of the same number is right."""

    observation_space, action_space = spaces.Discrete(3), spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.digit = int(self.np_random.integers(3))
        return self.digit, {}

    def step(self, action):
        reward = float(action == self.digit)
        self.digit = int(self.np_random.integers(3))
        return self.digit, reward, False, True, {}


class EveryStep(BaseCallback):
    def _on_step(self):
        return True


@pytest.mark.parametrize("callback", [None, EveryStep()])
def test_discrete_observations_are_learned_with_and_without_a_callback_in_every_step(callback):
    model = PPO("MlpPolicy", DigitEnv(), n_steps=128, batch_size=64, learning_rate=3e-3, gamma=0.0, seed=0)
    model.learn(2560, callback=callback)
    assert [int(model.predict(np.array(digit), deterministic=True)[0]) for digit in range(3)] == [0, 1, 2]


class AtRolloutEnd(BaseCallback):
    def __init__(self):
        super().__init__()
        self.infos, self.ends = [], []

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        self.infos.append(self.locals["infos"])


@pytest.mark.parametrize("env", [CountingEnv, lambda: gym.make("CartPole-v1")])
def test_a_rollout_callback_has_the_infos_of_the_last_step(env):
    # 8 is a multiple of the episode length 4 of CountingEnv, so its rollout ends with an episode.
    callback = AtRolloutEnd()
    model = PPO("MlpPolicy", env(), n_steps=8, batch_size=8, n_epochs=1)
    model.learn(16, callback=callback)
    assert [len(infos) for infos in callback.infos] == [1, 1]
    if env is CountingEnv:
        assert callback.infos[0][0]["episode"]["l"] == 4
        assert callback.infos[0][0]["TimeLimit.truncated"]


def test_the_steps_of_a_built_in_world_have_infos_with_their_episodes():
    lengths = []

    class Steps(AtRolloutEnd):
        def update_locals(self, locals_):
            super().update_locals(locals_)
            lengths.extend(i["episode"]["l"] for i in locals_.get("infos", []) if "episode" in i)

    model = PPO("MlpPolicy", make_vec_env("CartPole-v1", n_envs=2), n_steps=128, seed=0)
    model.learn(256, callback=Steps())
    assert isinstance(model._collector.world, NativeWorld)
    assert sorted(lengths) == sorted(e["l"] for e in model.ep_info_buffer)


def test_clipped_actions_of_a_callback_are_within_the_bounds():
    pairs = []

    def look(locals_, globals_):
        pairs.append((locals_["actions"].copy(), locals_["clipped_actions"].copy()))
        return True

    PPO("MlpPolicy", "Pendulum-v1", n_steps=64, policy_kwargs={"log_std_init": 2.0}, seed=0).learn(64, callback=look)
    actions, clipped = (np.concatenate(x) for x in zip(*pairs, strict=True))
    assert np.abs(actions).max() > 2
    np.testing.assert_array_equal(clipped, np.clip(actions, -2, 2))


def test_ctrl_c_during_a_rollout_of_a_built_in_world_does_not_wait_for_the_update():
    class Press(AtRolloutEnd):
        def _on_rollout_end(self):
            os.kill(os.getpid(), signal.SIGINT)

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, n_epochs=3)
    with pytest.raises(KeyboardInterrupt):
        model.learn(10_000, callback=Press())
    assert (model.num_timesteps, model._n_updates) == (64, 0)


def test_a_rollout_can_be_collected_without_learning():
    model = PPO("MlpPolicy", CountingEnv(), n_steps=8, batch_size=8)
    total, callback = model._setup_learn(total_timesteps=16)
    assert total == 16
    assert model.collect_rollouts(model.get_env(), callback, model.rollout_buffer, n_rollout_steps=8)
    assert (model.num_timesteps, model._n_updates, model.rollout_buffer.full) == (8, 0, True)
