import numpy as np
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.contrib.time_feature import TimeFeatureWrapper


def test_the_time_left_is_the_last_number():
    env = TimeFeatureWrapper(CountingEnv(length=10), max_steps=4)
    assert env.reset()[0].tolist() == [0.0, 1.0, 1.0]
    assert env.step(0)[0][-1] == 0.75
    assert env.observation_space.shape == (3,)
    assert env.observation_space.dtype == np.float32


def test_in_test_mode_it_is_constant():
    env = TimeFeatureWrapper(CountingEnv(), max_steps=4, test_mode=True)
    env.reset()
    assert env.step(0)[0][-1] == 1.0
