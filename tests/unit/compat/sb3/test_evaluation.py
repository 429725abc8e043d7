import numpy as np
import pytest
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.evaluation import evaluate_policy
from surefoot.compat.sb3.make_env import make_vec_env


class Zero:
    def predict(self, obs, state=None, episode_start=None, deterministic=False):
        return np.zeros(len(obs), int), state


@pytest.mark.parametrize("n_envs", [1, 2, 3])
def test_the_number_of_episodes_is_exact(n_envs):
    env = make_vec_env(CountingEnv, n_envs)
    rewards, lengths = evaluate_policy(Zero(), env, 5, return_episode_rewards=True)
    assert rewards == [4.0] * 5
    assert lengths == [4] * 5


def test_a_missing_monitor_and_a_missed_threshold_are_reported():
    with pytest.warns(UserWarning, match="no Monitor"), pytest.raises(AssertionError, match="below"):
        evaluate_policy(Zero(), CountingEnv(), 1, reward_threshold=5.0)
