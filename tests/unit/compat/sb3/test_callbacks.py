from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.callbacks import CallbackList, CheckpointCallback, ConvertCallback
from surefoot.compat.sb3.ppo import PPO


def test_checkpoints_have_the_steps_in_their_names(tmp_path):
    model = PPO("MlpPolicy", CountingEnv(), n_steps=8, batch_size=8, n_epochs=1)
    model.learn(16, callback=[CheckpointCallback(5, tmp_path, name_prefix="x")])
    assert {p.name for p in tmp_path.iterdir()} == {"x_5_steps.zip", "x_10_steps.zip", "x_15_steps.zip"}


def test_one_false_of_a_list_stops_and_all_are_called():
    calls = []
    both = [ConvertCallback(lambda a, b, i=i: bool(calls.append(i)) or i == 1) for i in range(2)]
    model = PPO("MlpPolicy", CountingEnv(), n_steps=8, batch_size=8, n_epochs=1)
    model.learn(100, callback=CallbackList(both))
    assert calls == [0, 1]
    assert model.num_timesteps == 1
