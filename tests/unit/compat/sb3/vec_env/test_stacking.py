import numpy as np
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.vec_env import DummyVecEnv, VecFrameStack


def test_the_newest_frame_is_last_and_an_episode_starts_empty():
    env = VecFrameStack(DummyVecEnv([CountingEnv]), 3)
    assert env.reset()[0].tolist() == [0, 0, 0, 0, 0, 1]
    stacks = [env.step([0]) for _ in range(4)]
    assert stacks[2][0][0].tolist() == [1, 1, 2, 1, 3, 1]
    assert stacks[3][3][0]["terminal_observation"].tolist() == [2, 1, 3, 1, 4, 1]
    assert stacks[3][0][0].tolist() == [0, 0, 0, 0, 0, 1]
    assert np.array_equal(stacks[2][0][0], [1, 1, 2, 1, 3, 1])
