"""The words of the earlier systems for the settings of PPO."""

from __future__ import annotations

import pytest

from surefoot.learn.aliases import canonical
from surefoot.learn.config import PPOConfig

WORDS = {
    "hololoom": (
        {"learning_rate": 3e-4, "clip_epsilon": 0.2, "value_loss_coef": 0.5, "entropy_coef": 0.01, "gae_lambda": 0.95}
        | {"n_epochs": 4, "batch_size": 64, "target_kl": 0.01},
        {"lr": 3e-4, "clip": 0.2, "vf_coef": 0.5, "ent_coef": 0.01, "lam": 0.95, "epochs": 4, "minibatch_size": 64}
        | {"target_kl": 0.01},
    ),
    "townlet": (
        {"clip_param": 0.2, "num_epochs": 4, "mini_batch_size": 32, "num_mini_batches": 4, "value_clip": 0.2}
        | {"advantage_normalization": True, "rollout_ticks": 100},
        {"clip": 0.2, "epochs": 4, "minibatch_size": 32, "minibatches": 4, "value_clip": 0.2}
        | {"normalize_advantage": True, "rollout_steps": 100},
    ),
    "directive-023": (
        {"eps_clip": 0.2, "value_coef": 0.5, "buffer_size": 2048, "min_buffer_size": 128, "batch_size": 64},
        {"clip": 0.2, "vf_coef": 0.5, "rollout_steps": 2048, "min_samples": 128, "minibatch_size": 64},
    ),
    "constitutional": (
        {"clip_epsilon": 0.2, "kl_penalty": 0.1, "num_epochs_per_batch": 4, "batch_size": 4},
        {"clip": 0.2, "kl_coef": 0.1, "epochs": 4, "minibatch_size": 4},
    ),
    "dnne": (
        {"horizon_length": 2048, "epochs": 10, "minibatch_size": 64, "lam": 0.95, "clip_param": 0.2, "value_coef": 0.5},
        {"rollout_steps": 2048, "epochs": 10, "minibatch_size": 64, "lam": 0.95, "clip": 0.2, "vf_coef": 0.5},
    ),
}


@pytest.mark.parametrize("system", WORDS)
def test_a_systems_own_words_are_understood(system: str):
    said, meant = WORDS[system]
    assert canonical(said) == meant
    PPOConfig.make(**said)
