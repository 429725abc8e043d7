from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.ppo import PPO
from surefoot.compat.sb3.record.logger import Logger


def test_the_keys_are_those_of_stable_baselines3():
    rows = []

    class Memory(Logger):
        def dump(self, step=0):
            rows.append(dict(self.name_to_value))

    model = PPO("MlpPolicy", CountingEnv(), n_steps=8, batch_size=8, n_epochs=3)
    model.set_logger(Memory(None, []))
    model.learn(16)
    train = "approx_kl clip_fraction clip_range entropy_loss explained_variance learning_rate loss n_updates"
    wanted = {f"train/{k}" for k in f"{train} policy_gradient_loss value_loss".split()}
    wanted |= {f"time/{k}" for k in ("fps", "iterations", "time_elapsed", "total_timesteps")}
    assert set(rows[1]) == wanted | {"rollout/ep_len_mean", "rollout/ep_rew_mean"}
    assert rows[1]["train/n_updates"] == 3
    assert rows[1]["rollout/ep_rew_mean"] == 4.0
