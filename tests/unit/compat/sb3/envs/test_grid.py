import numpy as np

from surefoot.compat.sb3.envs.grid import SimpleMultiObsEnv


def test_three_steps_down_and_three_right_reach_the_goal():
    env = SimpleMultiObsEnv(random_start=False)
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    results = [env.step(action) for action in (1, 1, 1, 2, 2, 2)]
    assert [r[1] for r in results] == [-0.1] * 5 + [1.0]
    assert results[-1][2]
    assert results[-1][4] == {"got_to_end": True}


def test_a_wall_stops_a_move_and_the_time_limit_an_episode():
    env = SimpleMultiObsEnv(random_start=False, discrete_actions=False, channel_last=False)
    env.reset()
    up = np.array([0, 0, 0, 1.0], np.float32)
    ends = [env.step(up)[3] for _ in range(101)]
    assert env.state == 0
    assert ends.index(True) == 100
