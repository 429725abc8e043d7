"""Each library's own words, as its documentation has them, arrive at the right knob."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from surefoot.errors import ConfigError
from surefoot.learn.aliases import PPO_NAMES, canonical
from surefoot.learn.config import PPOConfig
from surefoot.learn.schedule import Linear
from surefoot.nets.config import NET_NAMES

WORDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "stable-baselines3": (
        {"learning_rate": 1e-3, "n_steps": 32, "batch_size": 256, "n_epochs": 20, "gamma": 0.98, "gae_lambda": 0.8}
        | {"clip_range": 0.1, "clip_range_vf": 0.3, "normalize_advantage": True, "ent_coef": 0.1, "vf_coef": 0.4}
        | {"max_grad_norm": 0.6, "target_kl": 0.02, "seed": 3, "device": "cpu", "n_envs": 8},
        {"lr": 1e-3, "rollout_steps": 32, "minibatch_size": 256, "epochs": 20, "gamma": 0.98, "lam": 0.8}
        | {"clip": 0.1, "value_clip": 0.3, "normalize_advantage": True, "ent_coef": 0.1, "vf_coef": 0.4}
        | {"max_grad_norm": 0.6, "target_kl": 0.02, "seed": 3, "device": "cpu", "envs": 8},
    ),
    "cleanrl": (
        {"learning_rate": 2.5e-4, "num_envs": 4, "num_steps": 128, "anneal_lr": True, "gae_lambda": 0.95}
        | {"num_minibatches": 4, "update_epochs": 4, "norm_adv": True, "clip_coef": 0.1, "clip_vloss": True}
        | {"ent_coef": 0.01, "vf_coef": 0.5, "max_grad_norm": 0.5, "target_kl": None},
        {"lr": Linear(2.5e-4), "envs": 4, "rollout_steps": 128, "lam": 0.95, "minibatches": 4, "epochs": 4}
        | {"normalize_advantage": True, "clip": 0.1, "value_clip": 0.1, "ent_coef": 0.01, "vf_coef": 0.5}
        | {"max_grad_norm": 0.5, "target_kl": None},
    ),
    "rl_games": (
        {"horizon_length": 16, "mini_epochs": 8, "minibatch_size": 32, "e_clip": 0.2, "tau": 0.9, "critic_coef": 4}
        | {"entropy_coef": 0.0, "grad_norm": 1.0, "kl_threshold": 0.008, "num_actors": 64, "clip_value": False}
        | {"normalize_advantage": True},
        {"rollout_steps": 16, "epochs": 8, "minibatch_size": 32, "clip": 0.2, "lam": 0.9, "vf_coef": 4, "ent_coef": 0.0}
        | {"max_grad_norm": 1.0, "target_kl": 0.008, "envs": 64, "value_clip": None, "normalize_advantage": True},
    ),
    "skrl": (
        {"rollouts": 16, "learning_epochs": 8, "mini_batches": 2, "discount_factor": 0.9, "lambda": 0.8}
        | {"learning_rate": 1e-3, "grad_norm_clip": 0.5, "ratio_clip": 0.2, "value_clip": 0.3}
        | {"clip_predicted_values": True, "entropy_loss_scale": 0.1, "value_loss_scale": 1.0, "kl_threshold": 0},
        {"rollout_steps": 16, "epochs": 8, "minibatches": 2, "gamma": 0.9, "lam": 0.8, "lr": 1e-3, "max_grad_norm": 0.5}
        | {"clip": 0.2, "value_clip": 0.3, "ent_coef": 0.1, "vf_coef": 1.0, "target_kl": None},
    ),
    "rllib": (
        {"lr": 5e-5, "lambda_": 1.0, "clip_param": 0.3, "entropy_coeff": 0.0, "vf_loss_coeff": 1.0, "grad_clip": 1.0}
        | {"num_sgd_iter": 30, "sgd_minibatch_size": 128},
        {"lr": 5e-5, "lam": 1.0, "clip": 0.3, "ent_coef": 0.0, "vf_coef": 1.0, "max_grad_norm": 1.0}
        | {"epochs": 30, "minibatch_size": 128},
    ),
    "rsl_rl": (
        {"num_learning_epochs": 5, "num_mini_batches": 4, "clip_param": 0.2, "value_loss_coef": 1.0, "desired_kl": 0.01}
        | {"entropy_coef": 0.005, "use_clipped_value_loss": True, "num_steps_per_env": 24, "lam": 0.95}
        | {"normalize_advantage_per_mini_batch": False},
        {"epochs": 5, "minibatches": 4, "clip": 0.2, "vf_coef": 1.0, "adaptive_kl": 0.01, "ent_coef": 0.005}
        | {"value_clip": 0.2, "rollout_steps": 24, "lam": 0.95, "normalize_advantage": "batch"},
    ),
}


@pytest.mark.parametrize("library", WORDS)
def test_a_librarys_own_words_are_understood(library: str):
    said, meant = WORDS[library]
    assert canonical(said) == meant
    PPOConfig.make(**said)


def test_every_knob_has_its_place_in_the_table():
    knobs = {entry.name for entry in dataclasses.fields(PPOConfig)}
    assert set(PPO_NAMES.knobs) == knobs | {"anneal_lr", "clip_vloss"}


def test_no_name_stands_for_two_knobs():
    both = [
        name for vocabulary in (PPO_NAMES, NET_NAMES) for knob, o in vocabulary.knobs.items() for name in (knob, *o)
    ]
    both += [*PPO_NAMES.meanings, *NET_NAMES.meanings]
    assert len(both) == len(set(both))


def test_two_names_for_one_knob_are_both_named_in_the_error():
    with pytest.raises(ConfigError, match="clip_range and eps_clip both set clip"):
        canonical({"clip_range": 0.1, "eps_clip": 0.1})
    with pytest.raises(ConfigError, match="lr and learning_rate both set lr"):
        canonical({"lr": 1e-3, "learning_rate": 1e-3})


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("learning_rat", "learning_rate"),
        ("gama", "gamma"),
        ("clip_rnge", "clip_range"),
        ("normalize_ob", "normalize_obs"),
    ],
)
def test_a_typo_is_met_with_what_was_probably_meant(typo: str, meant: str):
    with pytest.raises(ConfigError, match=rf"no setting is called '{typo}'; did you mean .*{meant}"):
        canonical({typo: 1})


def test_a_knob_of_the_network_is_sent_there():
    with pytest.raises(ConfigError, match="hidden is not accepted: it belongs to NetConfig"):
        canonical({"hidden": (64,)})


def test_names_that_mean_something_else_here_are_explained():
    with pytest.raises(ConfigError, match=r"vf_clip_param is not accepted: .*value_clip"):
        canonical({"vf_clip_param": 10.0})
    with pytest.raises(ConfigError, match="total_timesteps is not accepted: the length of a run"):
        canonical({"total_timesteps": 10})


def test_a_flag_without_its_value_waits_for_a_base():
    waiting = canonical({"anneal_lr": True, "clip_vloss": True})
    assert waiting == {"anneal_lr": True, "clip_vloss": True}
    assert canonical(waiting, base={"lr": 1e-3, "clip": 0.4}) == {"lr": Linear(1e-3), "value_clip": 0.4}


def test_a_flag_must_be_a_flag():
    with pytest.raises(ConfigError, match="anneal_lr is 'maybe'; it must be true or false"):
        canonical({"anneal_lr": "maybe", "lr": 1e-3})
