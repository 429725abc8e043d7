import numpy as np
import pytest

from surefoot.compat.sb3.envs.bit_flipping import BitFlippingEnv


@pytest.mark.parametrize("kwargs", [{}, {"discrete_obs_space": True}, {"image_obs_space": True}])
def test_flipping_all_zeros_reaches_the_goal(kwargs):
    env = BitFlippingEnv(n_bits=5, **kwargs)
    env.reset(seed=3)
    env.state = np.array([0, 1, 0, 0, 1], np.int8)
    zeros = [0, 2, 3]
    results = [env.step(bit) for bit in zeros]
    assert [r[1] for r in results] == [-1.0] * (len(zeros) - 1) + [0.0]
    assert results[-1][2]
    assert results[-1][4]["is_success"]


def test_an_integer_is_the_binary_number_of_the_bits():
    env = BitFlippingEnv(n_bits=4, discrete_obs_space=True)
    assert env.convert_if_needed(np.array([1, 0, 1, 1])) == 13
    assert env.convert_to_bit_vector(13, 1).tolist() == [[1, 0, 1, 1]]
    assert env.compute_reward(np.array([[15], [7]]), np.array([[15], [15]]), None).tolist() == [0.0, -1.0]


def test_a_continuous_action_flips_the_bits_of_positive_numbers():
    env = BitFlippingEnv(n_bits=3, continuous=True, max_steps=1)
    env.reset(seed=0)
    before = env.state.copy()
    *_, truncated, _ = env.step(np.array([1.0, -1.0, 0.5], np.float32))
    assert (env.state != before).tolist() == [True, False, True]
    assert truncated
