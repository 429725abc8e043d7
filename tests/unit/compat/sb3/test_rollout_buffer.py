import pytest
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.ppo import PPO
from surefoot.compat.sb3.rollout_buffer import RolloutBuffer


def test_the_buffer_shows_the_last_rollout_and_its_advantages():
    model = PPO(
        "MlpPolicy", CountingEnv(truncates=False), n_steps=8, batch_size=8, n_epochs=1, gae_lambda=1.0, gamma=1.0
    )
    buffer = model.learn(8).rollout_buffer
    assert buffer.episode_starts[:, 0].tolist() == [1, 0, 0, 0, 1, 0, 0, 0]
    # With λ = γ = 1 the return is the number of steps left: 4, 3, 2, 1.
    assert buffer.returns[:, 0].tolist() == pytest.approx([4, 3, 2, 1] * 2)
    assert sum(len(batch.actions) for batch in buffer.get(3)) == 8


def test_an_empty_buffer_is_empty():
    with pytest.raises(ValueError, match="empty"):
        _ = RolloutBuffer(None, 4, 1, 0.9, 0.9).observations


def test_a_script_may_change_the_length_of_rollouts_of_a_loaded_model(tmp_path):
    PPO("MlpPolicy", CountingEnv(), n_steps=8, batch_size=8, n_epochs=1).learn(8).save(tmp_path / "m")
    model = PPO.load(tmp_path / "m", env=CountingEnv())
    # As PokemonRedExperiments continues with another length.
    model.n_steps = model.rollout_buffer.buffer_size = 16
    model.rollout_buffer.n_envs = 1
    model.rollout_buffer.reset()
    assert not model.rollout_buffer.full
    assert model.learn(16).rollout_buffer.rewards.shape == (16, 1)
