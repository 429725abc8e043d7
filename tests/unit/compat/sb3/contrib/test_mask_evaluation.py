import pytest
from tests.unit.compat.sb3.contrib.masked_env import MaskedEnv
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.contrib.mask_evaluation import MaskableEvalCallback, evaluate_policy
from surefoot.compat.sb3.contrib.ppo_mask import MaskablePPO
from surefoot.compat.sb3.stop_callbacks import needs_every_step


def test_evaluations_take_allowed_actions_only():
    env = MaskedEnv(length=6)
    model = MaskablePPO("MlpPolicy", MaskedEnv(), n_steps=8, batch_size=8)
    assert evaluate_policy(model, env, n_eval_episodes=3, deterministic=False, warn=False) == (6.0, 0.0)
    assert 0 not in env.taken
    with pytest.raises(ValueError, match="action_masks"):
        evaluate_policy(model, CountingEnv(), warn=False)


def test_the_callback_evaluates_with_masks_and_keeps_the_fast_path():
    env = MaskedEnv(length=6)
    callback = MaskableEvalCallback(env, eval_freq=8, n_eval_episodes=2, deterministic=False, warn=False, verbose=0)
    MaskablePPO("MlpPolicy", MaskedEnv(), n_steps=8, batch_size=8, n_epochs=1).learn(16, callback=callback)
    assert callback.last_mean_reward == 6.0
    assert 0 not in env.taken
    assert needs_every_step(callback) is None
