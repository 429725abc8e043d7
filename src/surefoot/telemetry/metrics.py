"""The numbers of an update: unit, meaning, healthy range, and what other libraries call them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Alias:
    """Another library's name for a number, and what ours is multiplied by to be theirs."""

    tag: str
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Metric:
    """What a number of an update means. A value outside `healthy` is worth a look, not an error."""

    unit: str
    meaning: str
    healthy: tuple[float, float] | None = None
    sb3: Alias | None = None
    cleanrl: Alias | None = None


METRICS: dict[str, Metric] = {
    "samples": Metric("steps", "valid steps learned from"),
    "policy_loss": Metric(
        "", "clipped surrogate, negated", None, Alias("train/policy_gradient_loss"), Alias("losses/policy_loss")
    ),
    # SB3 reports the whole mean squared error, CleanRL and we half of it.
    "value_loss": Metric(
        "return²",
        "half the squared error of the critic",
        None,
        Alias("train/value_loss", 2.0),
        Alias("losses/value_loss"),
    ),
    "entropy": Metric(
        "nats", "how undecided the policy is", None, Alias("train/entropy_loss", -1.0), Alias("losses/entropy")
    ),
    "entropy_std": Metric("nats", "spread of the entropy over states"),
    "loss": Metric("", "what the optimiser minimises", None, Alias("train/loss")),
    "kl_to_reference": Metric("nats", "distance from a reference policy, where there is one"),
    "approx_kl": Metric(
        "nats",
        "how far the update moved the policy (k3)",
        (0.0, 0.02),
        Alias("train/approx_kl"),
        Alias("losses/approx_kl"),
    ),
    "approx_kl_max": Metric("nats", "largest approx_kl of a minibatch"),
    "kl_divergence": Metric(
        "nats", "signed mean of old minus new log-prob (k1)", None, None, Alias("losses/old_approx_kl")
    ),
    "clip_fraction": Metric(
        "share",
        "samples whose ratio left the clip range",
        (0.01, 0.3),
        Alias("train/clip_fraction"),
        Alias("losses/clipfrac"),
    ),
    "clip_fraction_max": Metric("share", "largest clip_fraction of a minibatch"),
    "first_ratio_error": Metric("", "max |ratio - 1| before the first step; 0 but for rounding", (0.0, 1e-4)),
    "effective_sample_size": Metric("share", "of the rollout that still counts under the ratio", (0.5, 1.0)),
    "grad_norm": Metric("", "length of the gradient before clipping"),
    "grad_norm_max": Metric("", "largest grad_norm of a minibatch"),
    "explained_variance": Metric(
        "share",
        "of the targets' variance that the critic predicts",
        (0.0, 1.0),
        Alias("train/explained_variance"),
        Alias("losses/explained_variance"),
    ),
    "advantage_mean": Metric("return", "mean of the raw advantages"),
    "advantage_std": Metric("return", "standard deviation of the raw advantages"),
    "advantage_min_std": Metric("return", "smallest advantage_std of a minibatch"),
    "clipped_minibatches": Metric("minibatches", "in which some ratio left the clip range"),
    "zero_std_minibatches": Metric("minibatches", "whose advantages did not vary", (0.0, 0.0)),
    "reward_advantage_corr": Metric("", "correlation of reward and advantage"),
    "reward_mean": Metric("reward", "mean reward as learned from"),
    "reward_std": Metric("reward", "standard deviation of the reward as learned from"),
    "value_mean": Metric("return", "mean of the critic's values"),
    "target_mean": Metric("return", "mean of the critic's targets"),
    "target_std": Metric("return", "standard deviation of the critic's targets"),
    "action_std": Metric("", "mean standard deviation of a Gaussian policy", None, Alias("train/std")),
    "lr": Metric("", "learning rate", None, Alias("train/learning_rate"), Alias("charts/learning_rate")),
    "clip": Metric("", "clip range of the ratio", None, Alias("train/clip_range")),
    "ent_coef": Metric("", "weight of the entropy bonus"),
    "temperature": Metric("", "what logits were divided by while acting and learning"),
    "value_scale": Metric("return", "deviation that the critic's targets were divided by; 1 where they are not"),
    "minibatches": Metric("steps", "gradient steps taken"),
    "nonfinite_steps": Metric("steps", "gradient steps left out as not finite", (0.0, 0.0)),
    "clamped_fraction": Metric("share", "log-ratios held at ±20", (0.0, 0.0)),
    "policy_lag": Metric("updates", "between the policy that acted and the one that learns", (0.0, 4.0)),
}
"""Every number of `UpdateReport.metrics()`. The bands are where the doctor's warnings begin."""
