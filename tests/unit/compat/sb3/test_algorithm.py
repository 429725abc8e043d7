import copy
import io
import pickle

import gymnasium as gym
import numpy as np
import pytest
import torch
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.envs.bit_flipping import BitFlippingEnv
from surefoot.compat.sb3.policies.actor_critic import ActorCriticPolicy
from surefoot.compat.sb3.ppo import PPO

SMALL = {"n_steps": 16, "batch_size": 16, "n_epochs": 1}


def test_a_saved_model_predicts_and_continues_as_before(tmp_path):
    model = PPO("MlpPolicy", CountingEnv(), gamma=0.9, policy_kwargs={"activation_fn": torch.nn.ReLU}, **SMALL).learn(
        32
    )
    model.save(tmp_path / "m")
    assert (tmp_path / "m.zip").is_file()
    for path in (tmp_path / "m", tmp_path / "m.zip"):
        loaded = PPO.load(path, env=CountingEnv())
        assert (loaded.gamma, loaded.num_timesteps, loaded.policy.activation_fn) == (0.9, 32, torch.nn.ReLU)
        obs = np.ones((5, 2), np.float32)
        assert np.array_equal(loaded.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0])
        moments = loaded.policy.optimizer.state_dict()["state"][0]["exp_avg"]
        assert torch.equal(moments, model.policy.optimizer.state_dict()["state"][0]["exp_avg"])
    assert loaded.learn(16, reset_num_timesteps=False).num_timesteps == 48


def test_a_file_object_is_as_good_as_a_path():
    model, file = PPO("MlpPolicy", CountingEnv(), **SMALL), io.BytesIO()
    model.save(file)
    file.seek(0)
    assert PPO.load(file).n_steps == 16


def test_a_policy_class_of_the_user_is_asked_for(tmp_path):
    class Mine(ActorCriticPolicy):
        pass

    PPO(Mine, CountingEnv(), **SMALL).save(tmp_path / "m")
    with pytest.raises(ValueError, match="policy_class"):
        PPO.load(tmp_path / "m")
    assert type(PPO.load(tmp_path / "m", custom_objects={"policy_class": Mine}).policy) is Mine


def test_parameters_are_set_exactly_or_in_part():
    model, other = (PPO("MlpPolicy", CountingEnv(), **SMALL) for _ in range(2))
    with pytest.raises(ValueError, match="exact_match"):
        model.set_parameters({"policy": other.policy.state_dict()})
    model.set_parameters(other.get_parameters())
    for a, b in zip(model.policy.parameters(), other.policy.parameters(), strict=True):
        assert torch.equal(a, b)


def test_predict_names_the_mix_of_both_interfaces():
    model = PPO("MlpPolicy", CountingEnv(), **SMALL)
    with pytest.raises(ValueError, match="mixing Gym API"):
        model.predict(CountingEnv().reset())


def test_set_parameters_with_exact_match_refuses_a_missing_weight():
    model = PPO("MlpPolicy", CountingEnv(), **SMALL)
    parameters = model.get_parameters()
    parameters["policy"] = {k: torch.zeros_like(x) for k, x in list(parameters["policy"].items())[:-1]}
    last = model.policy.value_net.bias.clone()
    with pytest.raises(RuntimeError, match=r"value_net\.bias"):
        model.set_parameters(parameters)
    model.set_parameters(parameters, exact_match=False)
    assert not model.policy.action_net.weight.any()
    assert torch.equal(model.policy.value_net.bias, last)


def test_set_parameters_of_a_file_sets_weights_and_optimizer(tmp_path):
    first = PPO("MlpPolicy", CountingEnv(), **SMALL).learn(16)
    first.save(tmp_path / "model")
    second = PPO("MlpPolicy", CountingEnv(), **SMALL)
    second.set_parameters(tmp_path / "model")
    wanted, got = (m.get_parameters() for m in (first, second))
    assert all(torch.equal(x, got["policy"][k]) for k, x in wanted["policy"].items())
    states = [p["policy.optimizer"]["state"][0]["exp_avg"] for p in (wanted, got)]
    assert torch.equal(*states)
    assert states[0].any()


def test_dict_observations_need_the_policy_for_them():
    with pytest.raises(ValueError, match="MultiInputPolicy"):
        PPO("MlpPolicy", BitFlippingEnv(n_bits=4))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_a_model_can_be_copied_and_the_copy_learns(duplicate, env):
    model = PPO("MlpPolicy", gym.make(env), n_steps=32, batch_size=32, n_epochs=1, use_sde=env == "Pendulum-v1").learn(
        64
    )
    twin = duplicate(model)
    obs = model.observation_space.sample()
    np.testing.assert_array_equal(*(m.predict(obs, deterministic=True)[0] for m in (model, twin)))
    before = model.policy.state_dict()["value_net.bias"].clone()
    twin.learn(64, reset_num_timesteps=False)
    assert twin.num_timesteps == 128
    assert torch.equal(model.policy.state_dict()["value_net.bias"], before)
    assert not torch.equal(twin.policy.state_dict()["value_net.bias"], before)
