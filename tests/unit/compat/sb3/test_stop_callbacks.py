from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3 import stop_callbacks as s
from surefoot.compat.sb3.callbacks import BaseCallback, CallbackList, CheckpointCallback, ConvertCallback
from surefoot.compat.sb3.eval_callback import EvalCallback
from surefoot.compat.sb3.make_env import make_vec_env
from surefoot.compat.sb3.ppo import PPO
from surefoot.compat.sb3.record.monitor import Monitor


def test_max_episodes_counts_per_env():
    model = PPO("MlpPolicy", make_vec_env(CountingEnv, 2), n_steps=32, batch_size=32, n_epochs=1)
    stop = s.StopTrainingOnMaxEpisodes(2)
    model.learn(1000, callback=stop)
    assert stop.n_episodes == 4
    assert model.num_timesteps == 16


def test_a_threshold_inside_an_evaluation_stops():
    stop = EvalCallback(
        Monitor(CountingEnv()), s.StopTrainingOnRewardThreshold(3.5), eval_freq=4, n_eval_episodes=1, verbose=0
    )
    model = PPO("MlpPolicy", CountingEnv(), n_steps=8, batch_size=8, n_epochs=1).learn(80, callback=stop)
    assert model.num_timesteps == 4


class Quiet(BaseCallback):
    """A docstring."""

    def _on_step(self) -> bool:
        """Return True."""
        return True


class Loud(BaseCallback):
    def _on_step(self) -> bool:
        print("here")
        return True


def test_only_a_step_that_does_something_needs_every_step(tmp_path):
    save = CheckpointCallback(1, tmp_path)
    assert s.needs_every_step(CallbackList([save, Quiet(), s.EveryNTimesteps(5, save)])) is None
    assert s.needs_every_step(CallbackList([save, Loud()])) == "Loud"
    assert s.needs_every_step(s.EveryNTimesteps(5, Loud())) == "Loud"
    assert s.needs_every_step(ConvertCallback(lambda a, b: True)) == "ConvertCallback"
    assert s.needs_every_step(ConvertCallback(None)) is None
