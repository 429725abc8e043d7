"""Signs of problems in learning: each compares the history with a rule's limits and returns evidence, or None.

`above` and `below` with a metric's name are enough for most custom rules. The limits are in `rules.yaml`; they were tuned
on runs with injected faults (`make bench-doctor`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surefoot.telemetry.doctor.metric_history import MetricHistory

Evidence = dict[str, float] | None
Limits = Mapping[str, Any]
Sign = Callable[[MetricHistory, Limits], Evidence]
"""Returns evidence if the sign is present, else None."""
SIGNS: dict[str, Sign] = {}
"""Every sign by its name in rule files."""


def sign(check: Sign) -> Sign:
    """Register a sign under the name of its function."""
    SIGNS[check.__name__] = check
    return check


def zero_for_nan(x: float) -> float:
    """Return x, or 0 for NaN."""
    return 0.0 if math.isnan(x) else float(x)


@sign
def above(history: MetricHistory, limits: Limits) -> Evidence:
    """`metric` is above `limit` in any of the updates that the record covers."""
    x = history.high(limits["metric"])
    return {limits["metric"]: x, "limit": limits["limit"]} if x > limits["limit"] else None


@sign
def below(history: MetricHistory, limits: Limits) -> Evidence:
    """`metric` is below `limit`."""
    x = history.now(limits["metric"])
    return {limits["metric"]: x, "limit": limits["limit"]} if x < limits["limit"] else None


@sign
def not_finite(history: MetricHistory, limits: Limits) -> Evidence:
    """A number is NaN or infinite; `what` is "left_out" (steps), "dropped" (episodes) or "stopped" (the run)."""
    match limits["what"]:
        case "stopped":
            end, words = history.end, ("NonFinite", "not finite", "NaN", "infinit")
            failed = end is not None and end.reason == "error" and any(word in end.message for word in words)
            diverged = end is not None and end.reason == "diverged"
            if failed or diverged or history.now("rolled_back") > 0 or history.now("nonfinite") > 0:
                return {
                    "rolled_back": zero_for_nan(history.now("rolled_back")),
                    "nonfinite": zero_for_nan(history.now("nonfinite")),
                }
        case "left_out":
            if (steps := history.high("nonfinite_steps")) > 0:
                return {"nonfinite_steps": steps}
        case _:
            if (episodes := history.high("dropped_episodes")) > 0:
                return {"dropped_episodes": episodes}
    return None


@sign
def ratio_error(history: MetricHistory, limits: Limits) -> Evidence:
    """Before the first gradient step, the learning policy differs from the acting policy."""
    error = history.high("first_ratio_error")
    fresh = not history.now("policy_lag") > 0
    return {"first_ratio_error": error, "limit": limits["limit"]} if fresh and error > limits["limit"] else None


@sign
def kl_high(history: MetricHistory, limits: Limits) -> Evidence:
    """The update moved the policy too far: above `limit`, or `of_target` times target_kl if that is set."""
    kl, target = history.now("approx_kl"), history.knob("target_kl")
    limit = max(limits["limit"], limits["of_target"] * target) if isinstance(target, int | float) else limits["limit"]
    if not kl > limit or (limits.get("unless_thriving") and history.thriving):
        return None
    return {"approx_kl": kl, "limit": limit, "lr": zero_for_nan(history.now("lr"))}


@sign
def kl_leap(history: MetricHistory, limits: Limits) -> Evidence:
    """A single update replaced the policy."""
    kl = history.high("approx_kl")
    if not kl > limits["limit"] or history.thriving:
        return None
    return {"approx_kl": kl, "limit": limits["limit"], "lr": zero_for_nan(history.now("lr"))}


@sign
def kl_zero(history: MetricHistory, limits: Limits) -> Evidence:
    """Updates do not move the policy, although the learning rate is not near zero."""
    window = history.last("approx_kl", limits["window"])
    # The KL divergence is measured before each gradient step: with a single one it is 0 by construction.
    if len(window) < limits["window"] or window.max() >= limits["limit"] or not history.now("minibatches") > 1:
        return None
    lr, moved = history.now("lr"), history.first("approx_kl") >= limits["limit"]
    if (history.thriving and moved) or not lr > 0.05 * history.first("lr"):
        return None  # the task is learned, or a schedule has ended
    return {"approx_kl": float(window.max()), "lr": lr}


@sign
def clip_high(history: MetricHistory, limits: Limits) -> Evidence:
    """Too many ratios are outside the clip range."""
    share = history.now("clip_fraction")
    if not share > limits["limit"] or (limits.get("unless_thriving") and history.thriving):
        return None
    return {"clip_fraction": share, "limit": limits["limit"]}


@sign
def timid(history: MetricHistory, limits: Limits) -> Evidence:
    """Updates are small, and returns are no better than at the start."""
    kl, share = history.now("approx_kl"), history.now("clip_fraction")
    if history.returns.better or not history.progress > limits["after"]:
        return None
    if 0.0 < kl < limits["kl"] and share < limits["clip_fraction"]:
        return {"approx_kl": kl, "clip_fraction": share}
    return None


def relative_entropy(history: MetricHistory) -> float:
    """Return the entropy as a share of its maximum; for a Gaussian, the standard deviation as a share of the first."""
    if not math.isnan(std := history.now("action_std")):
        return std / history.first("action_std")
    most = history.now("entropy_max")
    most = history.first("entropy") if math.isnan(most) else most
    return history.now("entropy") / most if most > 0 else math.nan


@sign
def entropy_low(history: MetricHistory, limits: Limits) -> Evidence:
    """The policy is nearly deterministic, and no better than the untrained one."""
    share = relative_entropy(history)
    # If every episode has the same return, the return does not depend on the policy.
    if not share < limits["limit"] or history.thriving or not history.returns.varied:
        return None
    return {
        "relative_entropy": share,
        "entropy": history.now("entropy"),
        "ent_coef": zero_for_nan(history.now("ent_coef")),
    }


@sign
def entropy_high(history: MetricHistory, limits: Limits) -> Evidence:
    """The policy is still nearly random, or more random than at first, late in the run."""
    if not history.progress > limits["after"] or history.thriving:
        return None
    share = relative_entropy(history)
    gaussian = not math.isnan(history.now("action_std"))
    if not share > (limits["gaussian"] if gaussian else limits["limit"]):
        return None
    if not zero_for_nan(history.now("ent_coef")) >= limits.get("ent_coef", 0.0):
        return None
    return {
        "relative_entropy": share,
        "entropy": history.now("entropy"),
        "ent_coef": zero_for_nan(history.now("ent_coef")),
    }


@sign
def critic_useless(history: MetricHistory, limits: Limits) -> Evidence:
    """The critic explains none of the variance of the targets over a whole window."""
    window = history.last("explained_variance", limits["window"])
    if len(window) < limits["window"] or window.max() > limits["limit"] or history.thriving:
        return None
    if not history.now("target_std") > 1e-6 * max(1.0, abs(history.now("target_mean"))):
        return None  # constant targets: nothing to explain
    return {"explained_variance": float(np.median(window)), "best_of_window": float(window.max())}


@sign
def value_loss_spike(history: MetricHistory, limits: Limits) -> Evidence:
    """The value loss is many times its median."""
    window = history.last("value_loss", limits["window"])
    if len(window) < 10 or history.thriving:
        return None
    usual, loss = float(np.median(window)), float(window[-1])
    return {"value_loss": loss, "median": usual} if usual > 0 and loss > limits["times"] * usual else None


@sign
def critic_harmful(history: MetricHistory, limits: Limits) -> Evidence:
    """The critic is worse than a constant: its squared error exceeds the variance of the targets."""
    explained, spread = history.now("explained_variance"), history.now("target_std")
    if history.thriving or not spread > 0.01 * abs(history.now("target_mean")) or not explained < 1.0 - limits["limit"]:
        return None
    return {"error_over_variance": 1.0 - explained, "limit": limits["limit"], "target_std": spread}


@sign
def no_advantage(history: MetricHistory, limits: Limits) -> Evidence:
    """There is no learning signal: advantages do not vary, or there was no reward."""
    if history.thriving:
        return None  # an optimal policy has no advantage to learn from
    std, scale = history.now("advantage_std"), max(1.0, abs(zero_for_nan(history.now("target_mean"))))
    flat = std < limits["limit"] * scale or history.high("zero_std_minibatches") > 0
    silent = history.last("reward_std", limits["window"])
    constant = len(silent) >= limits["window"] and silent.max() < 1e-9
    # A constant reward is still a signal if episodes terminate, as in CartPole.
    no_reward = constant and (zero_for_nan(history.now("reward_mean")) == 0.0 or not history.lengths)
    if flat or no_reward:
        return {
            "advantage_std": std,
            "reward_mean": zero_for_nan(history.now("reward_mean")),
            "reward_std": zero_for_nan(silent.max(initial=0.0)),
        }
    return None


@sign
def flat_return(history: MetricHistory, limits: Limits) -> Evidence:
    """The slope of the returns is not significantly positive, and they are no better than at the start."""
    if not history.progress > limits["after"] or history.returns.better or math.isnan(history.returns.start[0]):
        return None
    if not history.returns.varied:
        return None
    steps, means = history.returns.recent(limits["share"])
    if len(means) < 5:
        return None
    low, high = slope_interval(steps, means)
    if low <= 0.0 <= high or high < 0.0:
        return {"return": history.returns.smooth, "return_at_start": history.returns.start[0], "slope_high": high}
    return None


def slope_interval(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the Theil-Sen slope, from the slopes of all pairs (Sen 1968)."""
    # 60 points have 1,770 pairs; all of 512 would have 130,816, too many for every record.
    if len(x) > 60:
        pick = np.linspace(0, len(x) - 1, 60).astype(int)
        x, y = x[pick], y[pick]
    n = len(x)
    i, j = np.triu_indices(n, 1)
    distance = x[j] - x[i]
    slopes = np.sort((y[j] - y[i])[distance > 0] / distance[distance > 0])
    if len(slopes) == 0:
        return 0.0, 0.0
    # 1.96 standard deviations of Kendall's S, whose variance is n (n - 1) (2n + 5) / 18.
    reach = 1.96 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18.0)
    low = int(max(0, math.floor((len(slopes) - reach) / 2)))
    high = int(min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2)))
    return float(slopes[low]), float(slopes[high])


@sign
def return_fell(history: MetricHistory, limits: Limits) -> Evidence:
    """A `share` of the gain over the untrained policy is lost again."""
    returns = history.returns
    if not returns.fallen(limits["share"]):
        return None
    return {"return": returns.smooth, "best": returns.best, "return_at_start": returns.start[0]}


@sign
def backwards(history: MetricHistory, limits: Limits) -> Evidence:
    """The policy is worse than the untrained one, and never was clearly better."""
    returns = history.returns
    if not returns.worse or returns.best > returns.start[0] + 2.0 * returns.tolerance():
        return None
    if not history.progress > limits["after"]:
        return None
    return {"return": returns.smooth, "return_at_start": returns.start[0]}
