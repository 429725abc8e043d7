import numpy as np
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.eval_callback import EvalCallback
from surefoot.compat.sb3.ppo import PPO
from surefoot.compat.sb3.vec_env import DummyVecEnv
from surefoot.compat.sb3.vec_env import VecNormalize as OurNormalize
from surefoot.compat.sb3.vec_env.foreign import ForeignVecEnv, as_vec_env


class TheirVecEnv:
    """A vec env of another library: the methods of one of ours, without its class."""

    def __init__(self):
        self._inner = DummyVecEnv([CountingEnv, CountingEnv])

    def __getattr__(self, name):
        return getattr(self.__dict__["_inner"], name)


def test_a_vec_env_of_another_class_is_wrapped_and_anything_else_is_not():
    ours = DummyVecEnv([CountingEnv])
    assert as_vec_env(ours) is ours
    assert as_vec_env(3) == 3
    env = as_vec_env(TheirVecEnv())
    assert isinstance(env, ForeignVecEnv)
    np.testing.assert_array_equal(env.reset(), [[0.0, 1.0]] * 2)
    assert env.step(np.zeros(2, int))[0][:, 0].tolist() == [1.0, 1.0]


def test_a_model_learns_in_it():
    model = PPO("MlpPolicy", TheirVecEnv(), n_steps=8, batch_size=8, n_epochs=1).learn(32)
    assert (model.num_timesteps, model.n_envs) == (32, 2)


class VecNormalize(TheirVecEnv):
    """SB3's class of that name, of which the layer knows only the name and the module."""

    __module__ = "stable_baselines3.common.vec_env.vec_normalize"

    def __init__(self):
        self.venv = TheirVecEnv()
        self._inner = OurNormalize(DummyVecEnv([CountingEnv, CountingEnv]))

    def __setattr__(self, name, value):
        if name.endswith("_rms"):
            setattr(self._inner, name, value)
        vars(self)[name] = value


def test_the_statistics_of_their_vec_normalize_are_found_and_copied_to_the_evaluation():
    env, evaluation = VecNormalize(), VecNormalize()
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1)
    assert model.get_env() is env
    assert model.get_vec_normalize_env() is env
    evaluation._inner.training = False
    model.learn(16, callback=EvalCallback(evaluation, eval_freq=8, verbose=0, warn=False))
    # Two resets of two envs, and 2 × 8 steps of two envs; the guess before them counts as 0.0001.
    assert evaluation.obs_rms.count == env._inner.obs_rms.count > 16
