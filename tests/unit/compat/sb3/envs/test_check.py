import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.envs.bit_flipping import BitFlippingEnv
from surefoot.compat.sb3.envs.check import check_env


def test_a_correct_env_passes_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(CountingEnv(render_mode="rgb_array"), skip_render_check=False)
        check_env(BitFlippingEnv(n_bits=4))


class Wrong(CountingEnv):
    def __init__(self, **replaced):
        super().__init__()
        self.replaced = replaced

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        values = {"obs": obs, "reward": reward, "terminated": terminated, "truncated": truncated, "info": info}
        return tuple({**values, **self.replaced}.values())


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"obs": np.array([101.0, 1.0], np.float32)}, r"Expected: 0\.0 <= obs\[0\] <= 100\.0, actual value: 101\.0"),
        ({"obs": np.zeros(3, np.float32)}, r"Expected: \(2,\), actual shape: \(3,\)"),
        ({"obs": [0.0, 0.0]}, "must be a numpy array"),
        ({"reward": np.ones(1)}, "must return a float as reward"),
        ({"terminated": 1}, "must return a bool as terminated"),
        ({"info": None}, "must return a dict as info"),
        ({"more": 1}, "not 6 values"),
    ],
)
def test_a_wrong_return_value_is_named(replaced, message):
    with pytest.raises(AssertionError, match=message):
        check_env(Wrong(**replaced))


def test_a_reset_without_a_seed_is_a_type_error():
    env = CountingEnv()
    env.reset = lambda: (np.zeros(2, np.float32), {})
    with pytest.raises(TypeError, match="seed"):
        check_env(env)


@pytest.mark.parametrize(
    ("name", "space", "message"),
    [
        ("action_space", spaces.Box(-2, 2, (1,)), "not -1 and 1"),
        ("action_space", spaces.Discrete(2, start=1), "starts at 1"),
        ("action_space", spaces.Dict({"a": spaces.Discrete(2)}), "Dict actions are not supported"),
    ],
)
def test_risky_spaces_are_warned_about(name, space, message):
    env = CountingEnv()
    setattr(env, name, space)
    with pytest.warns(UserWarning, match=message):
        check_env(env)


def test_only_a_gymnasium_env_can_be_checked():
    with pytest.raises(AssertionError, match=r"gymnasium\.Env"):
        check_env(object())
    assert issubclass(CountingEnv, gym.Env)
