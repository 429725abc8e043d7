import numpy as np
import pytest
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.vec_env import DummyVecEnv


def test_an_episode_ends_with_its_last_observation_in_the_info():
    env = DummyVecEnv([CountingEnv, lambda: CountingEnv(2, truncates=False)])
    env.reset()
    env.step([0, 0])
    obs, rewards, dones, infos = env.step([0, 0])
    assert obs[:, 0].tolist() == [2, 0]
    assert rewards.tolist() == [1, 1]
    assert dones.tolist() == [False, True]
    assert infos[1]["terminal_observation"][0] == 2
    assert infos[1]["TimeLimit.truncated"] is False


def test_methods_and_attributes_of_single_envs():
    env = DummyVecEnv([CountingEnv, CountingEnv])
    assert env.env_method("double", 4, indices=1) == [8]
    env.set_attr("length", 9, indices=[0])
    assert env.get_attr("length") == [9, 4]
    assert not env.has_attr("nothing")


def test_one_env_twice_and_no_env_are_refused():
    env = CountingEnv()
    with pytest.raises(ValueError, match="more than once"):
        DummyVecEnv([lambda: env] * 2)
    with pytest.raises(ValueError, match=r"gymnasium\.Env"):
        DummyVecEnv([lambda: np.zeros(2)])
