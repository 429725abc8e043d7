import gymnasium as gym
import numpy as np
import pytest

from surefoot.compat.sb3.contrib.ppo_recurrent import RecurrentPPO
from surefoot.compat.sb3.evaluation import evaluate_policy
from surefoot.compat.sb3.policies.actor_critic import ActorCriticPolicy


class Recall(gym.Env):
    """The first observation shows a bit; repeating it in the last of three steps pays 1."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.bit = 0, int(self.np_random.integers(2))
        return np.array([2 * self.bit - 1, 0], np.float32), {}

    def step(self, action):
        self.t += 1
        end = self.t == 3
        return np.array([0, self.t == 2], np.float32), float(end and action == self.bit), end, False, {}


def test_the_lstm_remembers_what_an_earlier_observation_showed():
    settings = {"lstm_hidden_size": 16, "net_arch": []}
    model = RecurrentPPO("MlpLstmPolicy", Recall(), 1e-2, n_steps=96, batch_size=32, seed=0, policy_kwargs=settings)
    model.learn(1920)
    assert evaluate_policy(model, Recall(), n_eval_episodes=40, warn=False)[0] == 1.0


def test_the_defaults_are_those_of_sb3_contrib():
    model = RecurrentPPO("MlpLstmPolicy", Recall())
    assert (model.n_steps, model.batch_size, model.n_epochs, model.policy.lstm_actor.hidden_size) == (128, 128, 10, 256)
    assert model._sequence() is None
    model.batch_size = 64
    assert model._sequence() == 64


def test_a_policy_without_lstm_is_refused():
    with pytest.raises(ValueError, match="no RecurrentActorCriticPolicy"):
        RecurrentPPO(ActorCriticPolicy, Recall())
