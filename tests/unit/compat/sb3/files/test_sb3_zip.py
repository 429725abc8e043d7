"""Zips as Stable-Baselines3 writes them; a pickle in them that runs would create a file."""

import io
import json
import zipfile

import numpy as np
import pytest
import torch

from surefoot.compat.sb3.files.sb3_zip import from_sb3
from surefoot.compat.sb3.ppo import PPO

BOX = {
    ":type:": "<class 'gymnasium.spaces.box.Box'>",
    ":serialized:": "Y29zCnN5c3RlbQo=",
    "dtype": "float32",
    "_shape": [3],
    "low": "[-1. -inf -8.]",
    "high": "[1. inf 8.]",
}
DISCRETE = {":type:": "<class 'gymnasium.spaces.discrete.Discrete'>", "n": "2", "start": "0"}


def write(path, **changes):
    torch.manual_seed(0)
    tensors = {
        "mlp_extractor.policy_net.0.weight": torch.randn(5, 3),
        "mlp_extractor.policy_net.0.bias": torch.randn(5),
        "mlp_extractor.value_net.0.weight": torch.randn(4, 3),
        "mlp_extractor.value_net.0.bias": torch.randn(4),
        "action_net.weight": torch.randn(2, 5),
        "action_net.bias": torch.randn(2),
        "value_net.weight": torch.randn(1, 4),
        "value_net.bias": torch.randn(1),
    }
    data = {
        "policy_class": {":type:": "abc.ABCMeta", "__init__": "<function ActorCriticPolicy.__init__ at 0x7ff9>"},
        "policy_kwargs": {":type:": "dict", "activation_fn": "<class 'torch.nn.modules.activation.ReLU'>"},
        "observation_space": BOX,
        "action_space": DISCRETE,
        "learning_rate": 0.001,
        "n_steps": 64,
        "gamma": 0.9,
        "num_timesteps": 128,
        "_n_updates": 20,
        "n_envs": 2,
        "clip_range": {":type:": "<class 'FloatSchedule'>", "value_schedule": "ConstantSchedule(val=0.3)"},
        **changes,
    }
    raw = io.BytesIO()
    torch.save(tensors, raw)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps(data))
        archive.writestr("policy.pth", raw.getvalue())
    return tensors


def test_a_model_acts_as_its_weights_say_and_has_the_settings(tmp_path):
    w = write(tmp_path / "m.zip")
    model = PPO.load(tmp_path / "m")
    obs = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    hidden = torch.relu(
        torch.from_numpy(obs) @ w["mlp_extractor.policy_net.0.weight"].T + w["mlp_extractor.policy_net.0.bias"]
    )
    expected = (hidden @ w["action_net.weight"].T + w["action_net.bias"]).argmax(1)
    np.testing.assert_array_equal(model.predict(obs, deterministic=True)[0], expected)
    assert (model.gamma, model.learning_rate, model.clip_range(1.0), model.n_steps) == (0.9, 0.001, 0.3, 64)
    assert (model.num_timesteps, model._n_updates, model.n_envs) == (128, 20, 2)
    assert model.observation_space.low.tolist() == [-1.0, -np.inf, -8.0]


def test_a_schedule_that_is_a_function_is_named(tmp_path):
    write(tmp_path / "m.zip", learning_rate={":type:": "<class 'function'>", ":serialized:": "Y29z"})
    with pytest.warns(UserWarning, match=r"learning_rate of .* are functions"):
        assert PPO.load(tmp_path / "m").lr_schedule(1.0) == 3e-4
    assert PPO.load(tmp_path / "m", custom_objects={"learning_rate": 0.5}).lr_schedule(1.0) == 0.5


def test_a_space_that_is_abbreviated_needs_the_env(tmp_path):
    write(tmp_path / "m.zip", observation_space={**BOX, "low": "[-1. ... -8.]"})
    assert from_sb3(tmp_path / "m.zip")["observation_space"] is None
    with pytest.raises(ValueError, match="observation_space completely"):
        PPO.load(tmp_path / "m")
