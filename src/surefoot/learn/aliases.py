"""The names of PPO's knobs in other libraries: SB3, CleanRL, rl_games, skrl, RLlib, rsl_rl and others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import boolean
from surefoot.data.knobs import Vocabulary, require_known
from surefoot.errors import ConfigError
from surefoot.learn.schedule import Linear
from surefoot.learn.schedule_text import parse_schedule
from surefoot.nets.config import NET_HINTS, NET_NAMES


def _normalize_per_minibatch(value: Any) -> dict[str, Any]:
    """rsl_rl's: False does not turn it off but does it once over the whole batch."""
    return {"normalize_advantage": "minibatch" if _truth("normalize_advantage_per_mini_batch", value) else "batch"}


def _kl_threshold(value: Any) -> dict[str, Any]:
    """skrl's and rl_games': 0 means never."""
    return {"target_kl": None if value in (0, "0", "0.0") else value}


PPO_NAMES = Vocabulary(
    knobs={
        "lr": ("learning_rate",),
        "critic_lr_scale": (),
        "gamma": ("discount", "discount_factor"),
        "lam": ("gae_lambda", "tau", "lambda_", "lambda"),
        "clip": (
            "clip_range",  # SB3
            "clip_coef",  # CleanRL
            "e_clip",  # rl_games
            "ratio_clip",  # skrl
            "clip_param",  # RLlib, rsl_rl
            "clip_epsilon",
            "eps_clip",
            "ppo_epsilon",
            "clip_ratio",
            "clip_eps",
        ),
        "dual_clip": ("dual_clip_coef", "clip_ratio_c"),
        "value_clip": ("clip_range_vf",),
        "epochs": (
            "n_epochs",
            "update_epochs",
            "mini_epochs",
            "learning_epochs",
            "num_learning_epochs",
            "num_epochs",
            "num_epochs_per_batch",
            "num_sgd_iter",
            "ppo_epochs",
        ),
        # SB3's batch_size is a minibatch; our property of that name is rollout_steps · envs.
        "minibatch_size": ("batch_size", "mini_batch_size", "sgd_minibatch_size"),
        "minibatches": ("num_minibatches", "num_mini_batches", "n_minibatches", "mini_batches", "nminibatches"),
        "rollout_steps": (
            "n_steps",
            "num_steps",
            "horizon_length",
            "horizon",
            "rollouts",
            "unroll_length",
            "rollout_ticks",
            "buffer_size",
            "num_steps_per_env",
            "rollout_fragment_length",
        ),
        "sequence": ("seq_length", "seq_len", "sequence_length", "bptt_horizon", "max_seq_len"),
        "burn_in": ("burn_in_length",),
        "envs": ("n_envs", "num_envs", "num_actors"),
        "ent_coef": ("entropy_coef", "entropy_loss_scale", "entropy_coeff", "entropy_cost"),
        "vf_coef": (
            "value_loss_coef",
            "value_coef",
            "critic_coef",
            "value_loss_scale",
            "vf_loss_coeff",
            "vf_loss_coef",
        ),
        "kl_coef": ("kl_penalty",),
        "max_grad_norm": ("grad_norm", "grad_norm_clip", "grad_clip"),
        "target_kl": (),
        "kl_stop_factor": (),
        "adaptive_kl": ("desired_kl", "kl_adaptive"),  # rsl_rl's, with its schedule "adaptive"
        "normalize_value": ("norm_value", "normalize_values", "value_normalization", "use_valuenorm", "use_popart"),
        "temperature": ("softmax_temperature",),
        "normalize_advantage": ("normalize_advantages", "advantage_normalization", "norm_adv", "normalize_adv"),
        "optimizer": (),
        "weight_decay": (),
        "adam_eps": ("adam_epsilon",),
        "momentum": (),
        "seed": (),
        "device": ("device_str",),
        "path": (),
        "min_samples": ("min_buffer_size",),
        "max_policy_lag": (),
        # Not knobs: these two bend one, see `canonical`.
        "anneal_lr": (),
        "clip_vloss": ("clip_value", "use_clipped_value_loss", "clip_predicted_values"),
    },
    meanings={
        "kl_threshold": _kl_threshold,
        "normalize_advantage_per_mini_batch": _normalize_per_minibatch,
    },
    former={"steps": "rollout_steps"},
)

_LENGTH = "the length of a run is no part of its config; say it where the run is started"
_ROLLOUT = "a rollout is rollout_steps times envs; set those"
_SCHEDULE = "give lr a schedule instead, such as lin_3e-4, or set adaptive_kl for one that follows the KL"
PPO_HINTS = {
    "total_timesteps": _LENGTH,
    "n_timesteps": _LENGTH,
    "total_steps": _LENGTH,
    "train_batch_size": _ROLLOUT,
    "train_batch_size_per_learner": _ROLLOUT,
    "schedule": _SCHEDULE,
    "lr_schedule": _SCHEDULE,
    "use_gae": "it is always on; lam=1 gives plain returns",
    "vf_clip_param": "RLlib's cuts the value *loss* and can leave the critic without gradient; value_clip is ours",
    "kl_coeff": "RLlib's pulls towards the policy before the update; use target_kl, or kl_coef for a fixed reference",
}


def canonical(names: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`names` by PPOConfig's own names.

    CleanRL's `anneal_lr` makes a line to 0 of the learning rate, its `clip_vloss` sets `value_clip` to `clip` (False:
    to None). Both need a value that may not be among `names`; it is then taken from `base`, the values so far. Without
    either they are handed on as they are, and the next call, which has a base, works them out.
    """
    elsewhere = dict.fromkeys(NET_NAMES.names(), "it belongs to NetConfig, not to PPOConfig")
    # A misspelt net knob should be recognised too, hence both sets of names; the second pass refuses the right ones.
    require_known(names, PPO_NAMES.names() | NET_NAMES.names(), PPO_HINTS | NET_HINTS)
    require_known(names, PPO_NAMES.names(), elsewhere)
    found = PPO_NAMES.translate(names)
    so_far = {**(base or {}), **found}
    if "anneal_lr" in found and "lr" in so_far:
        _anneal(found, so_far["lr"])
    if "clip_vloss" in found and "clip" in so_far:
        _clip_values(found, so_far["clip"])
    return found


def _truth(name: str, value: Any) -> bool:
    try:
        return boolean(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{name} is {value!r}; it must be true or false") from None


def _anneal(found: dict[str, Any], lr: Any) -> None:
    if not _truth("anneal_lr", found.pop("anneal_lr")):
        return
    start = parse_schedule(lr)
    if not isinstance(start, float):
        raise ConfigError(f"anneal_lr is set but lr already follows a schedule, {start}; drop one of them")
    found["lr"] = Linear(start)


def _clip_values(found: dict[str, Any], clip: Any) -> None:
    if not _truth("clip_vloss", found.pop("clip_vloss")):
        found["value_clip"] = None
        return
    if "value_clip" in found:
        return
    bound = parse_schedule(clip)
    if not isinstance(bound, float):
        raise ConfigError(f"clip_vloss is set but clip follows a schedule, {bound}; give value_clip a number instead")
    found["value_clip"] = bound
