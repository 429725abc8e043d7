import numpy as np
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.eval_callback import EvalCallback
from surefoot.compat.sb3.ppo import PPO
from surefoot.compat.sb3.record.monitor import Monitor


def test_evaluations_are_written_with_their_steps_and_the_best_model_is_saved(tmp_path):
    callback = EvalCallback(
        Monitor(CountingEnv(length=6)),
        eval_freq=8,
        n_eval_episodes=2,
        log_path=tmp_path,
        best_model_save_path=tmp_path,
        verbose=0,
    )
    model = PPO("MlpPolicy", Monitor(CountingEnv()), n_steps=16, batch_size=16, n_epochs=1).learn(16, callback=callback)
    saved = np.load(tmp_path / "evaluations.npz")
    assert saved["timesteps"].tolist() == [8, 16]
    assert saved["results"].tolist() == [[6.0, 6.0], [6.0, 6.0]]
    assert callback.best_mean_reward == 6.0
    assert PPO.load(tmp_path / "best_model").n_steps == model.n_steps
