"""Signs that something is wrong: each looks at the chart with a rule's numbers and returns evidence, or None.

`above` and `below` with a metric's name are enough for most rules of one's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surefoot.telemetry.doctor.metric_history import Chart

Evidence = dict[str, float] | None
Limits = Mapping[str, Any]
Sign = Callable[[Chart, Limits], Evidence]
"""Return evidence where the sign is present, None where it is not."""
SIGNS: dict[str, Sign] = {}
"""Every sign by its name, as rule files call them."""


def sign(check: Sign) -> Sign:
    """Register a sign under the name of its function."""
    SIGNS[check.__name__] = check
    return check


def zero_for_nan(x: float) -> float:
    """Return x, or 0 for NaN."""
    return 0.0 if math.isnan(x) else float(x)


@sign
def above(chart: Chart, limits: Limits) -> Evidence:
    """`metric` is larger than `limit`, in any of the updates that the record covers."""
    x = chart.high(limits["metric"])
    return {limits["metric"]: x, "limit": limits["limit"]} if x > limits["limit"] else None


@sign
def below(chart: Chart, limits: Limits) -> Evidence:
    """`metric` is smaller than `limit`."""
    x = chart.now(limits["metric"])
    return {limits["metric"]: x, "limit": limits["limit"]} if x < limits["limit"] else None


@sign
def not_finite(chart: Chart, limits: Limits) -> Evidence:
    """NaN or infinity somewhere; `what` is "left_out" (steps), "dropped" (episodes) or "stopped" (the run)."""
    match limits["what"]:
        case "stopped":
            end, words = chart.end, ("NonFinite", "not finite", "NaN", "infinit")
            failed = end is not None and end.reason == "error" and any(word in end.message for word in words)
            diverged = end is not None and end.reason == "diverged"
            if failed or diverged or chart.now("rolled_back") > 0 or chart.now("nonfinite") > 0:
                return {
                    "rolled_back": zero_for_nan(chart.now("rolled_back")),
                    "nonfinite": zero_for_nan(chart.now("nonfinite")),
                }
        case "left_out":
            if (steps := chart.high("nonfinite_steps")) > 0:
                return {"nonfinite_steps": steps}
        case _:
            if (episodes := chart.high("dropped_episodes")) > 0:
                return {"dropped_episodes": episodes}
    return None


@sign
def ratio_error(chart: Chart, limits: Limits) -> Evidence:
    """Before the first step the policy that learns was not the policy that acted."""
    error = chart.high("first_ratio_error")
    fresh = not chart.now("policy_lag") > 0
    return {"first_ratio_error": error, "limit": limits["limit"]} if fresh and error > limits["limit"] else None


@sign
def kl_high(chart: Chart, limits: Limits) -> Evidence:
    """The update moved the policy too far; `of_target` times target_kl where there is one."""
    kl, target = chart.now("approx_kl"), chart.knob("target_kl")
    limit = max(limits["limit"], limits["of_target"] * target) if isinstance(target, int | float) else limits["limit"]
    if not kl > limit or (limits.get("unless_thriving") and chart.thriving):
        return None
    return {"approx_kl": kl, "limit": limit, "lr": zero_for_nan(chart.now("lr"))}


@sign
def kl_leap(chart: Chart, limits: Limits) -> Evidence:
    """A single update after which the old policy is unrecognisable."""
    kl = chart.high("approx_kl")
    if not kl > limits["limit"] or chart.thriving:
        return None
    return {"approx_kl": kl, "limit": limits["limit"], "lr": zero_for_nan(chart.now("lr"))}


@sign
def kl_zero(chart: Chart, limits: Limits) -> Evidence:
    """Updates that do not move the policy although the learning rate says they should."""
    window = chart.last("approx_kl", limits["window"])
    if len(window) < limits["window"] or window.max() >= limits["limit"] or not chart.now("minibatches") > 0:
        return None
    lr, moved = chart.now("lr"), chart.first("approx_kl") >= limits["limit"]
    if (chart.thriving and moved) or not lr > 0.05 * chart.first("lr"):
        return None  # it has learned what there is, or a schedule has come to its end
    return {"approx_kl": float(window.max()), "lr": lr}


@sign
def clip_high(chart: Chart, limits: Limits) -> Evidence:
    """Too many ratios left the clip range."""
    share = chart.now("clip_fraction")
    if not share > limits["limit"] or (limits.get("unless_thriving") and chart.thriving):
        return None
    return {"clip_fraction": share, "limit": limits["limit"]}


@sign
def timid(chart: Chart, limits: Limits) -> Evidence:
    """Small steps, and returns that are no better than at the start."""
    kl, share = chart.now("approx_kl"), chart.now("clip_fraction")
    if chart.returns.better or not chart.progress > limits["after"]:
        return None
    if 0.0 < kl < limits["kl"] and share < limits["clip_fraction"]:
        return {"approx_kl": kl, "clip_fraction": share}
    return None


def relative_entropy(chart: Chart) -> float:
    """Entropy as a share of the largest there is; of a Gaussian, its deviation as a share of the first one."""
    if not math.isnan(std := chart.now("action_std")):
        return std / chart.first("action_std")
    most = chart.now("entropy_max")
    most = chart.first("entropy") if math.isnan(most) else most
    return chart.now("entropy") / most if most > 0 else math.nan


@sign
def entropy_low(chart: Chart, limits: Limits) -> Evidence:
    """The policy has made up its mind, and what it does is no better than chance was."""
    share = relative_entropy(chart)
    # Where every episode pays the same, whatever is done, the return says nothing about the policy.
    if not share < limits["limit"] or chart.thriving or not chart.returns.varied:
        return None
    return {"relative_entropy": share, "entropy": chart.now("entropy"), "ent_coef": zero_for_nan(chart.now("ent_coef"))}


@sign
def entropy_high(chart: Chart, limits: Limits) -> Evidence:
    """The policy is still nearly random, or more random than at first, when it should know something."""
    if not chart.progress > limits["after"] or chart.thriving:
        return None
    share = relative_entropy(chart)
    gaussian = not math.isnan(chart.now("action_std"))
    if not share > (limits["gaussian"] if gaussian else limits["limit"]):
        return None
    if not zero_for_nan(chart.now("ent_coef")) >= limits.get("ent_coef", 0.0):
        return None
    return {"relative_entropy": share, "entropy": chart.now("entropy"), "ent_coef": zero_for_nan(chart.now("ent_coef"))}


@sign
def critic_useless(chart: Chart, limits: Limits) -> Evidence:
    """The critic explains nothing of the targets, record after record."""
    window = chart.last("explained_variance", limits["window"])
    if len(window) < limits["window"] or window.max() > limits["limit"] or chart.thriving:
        return None
    if not chart.now("target_std") > 1e-6 * max(1.0, abs(chart.now("target_mean"))):
        return None  # there is nothing to explain
    return {"explained_variance": float(np.median(window)), "best_of_window": float(window.max())}


@sign
def value_loss_spike(chart: Chart, limits: Limits) -> Evidence:
    """The value loss is many times its own median."""
    window = chart.last("value_loss", limits["window"])
    if len(window) < 10 or chart.thriving:
        return None
    usual, loss = float(np.median(window)), float(window[-1])
    return {"value_loss": loss, "median": usual} if usual > 0 and loss > limits["times"] * usual else None


@sign
def critic_harmful(chart: Chart, limits: Limits) -> Evidence:
    """The critic is further off than a constant would be: its error exceeds the targets' variance."""
    explained, spread = chart.now("explained_variance"), chart.now("target_std")
    if chart.thriving or not spread > 0.01 * abs(chart.now("target_mean")) or not explained < 1.0 - limits["limit"]:
        return None
    return {"error_over_variance": 1.0 - explained, "limit": limits["limit"], "target_std": spread}


@sign
def no_advantage(chart: Chart, limits: Limits) -> Evidence:
    """Nothing says which action was better: advantages do not vary, or no reward ever came."""
    if chart.thriving:
        return None  # whoever always does what is best learns nothing more
    std, scale = chart.now("advantage_std"), max(1.0, abs(zero_for_nan(chart.now("target_mean"))))
    flat = std < limits["limit"] * scale or chart.high("zero_std_minibatches") > 0
    silent = chart.last("reward_std", limits["window"])
    constant = len(silent) >= limits["window"] and silent.max() < 1e-9
    # A reward that never varies still says something where episodes end of themselves: CartPole's.
    told = constant and (zero_for_nan(chart.now("reward_mean")) == 0.0 or not chart.lengths)
    if flat or told:
        return {
            "advantage_std": std,
            "reward_mean": zero_for_nan(chart.now("reward_mean")),
            "reward_std": zero_for_nan(silent.max(initial=0.0)),
        }
    return None


@sign
def flat_return(chart: Chart, limits: Limits) -> Evidence:
    """The slope of the returns may be 0, and they are no better than at the start."""
    if not chart.progress > limits["after"] or chart.returns.better or math.isnan(chart.returns.start[0]):
        return None
    if not chart.returns.varied:
        return None
    steps, means = chart.returns.recent(limits["share"])
    if len(means) < 5:
        return None
    low, high = slope_interval(steps, means)
    if low <= 0.0 <= high or high < 0.0:
        return {"return": chart.returns.smooth, "return_at_start": chart.returns.start[0], "slope_high": high}
    return None


def slope_interval(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Theil and Sen's slope with its 95 % interval: the middle of the slopes of all pairs (Sen 1968)."""
    if len(x) > 60:
        pick = np.linspace(0, len(x) - 1, 60).astype(int)
        x, y = x[pick], y[pick]
    n = len(x)
    i, j = np.triu_indices(n, 1)
    apart = x[j] - x[i]
    slopes = np.sort((y[j] - y[i])[apart > 0] / apart[apart > 0])
    if len(slopes) == 0:
        return 0.0, 0.0
    reach = 1.96 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18.0)
    low = int(max(0, math.floor((len(slopes) - reach) / 2)))
    high = int(min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2)))
    return float(slopes[low]), float(slopes[high])


@sign
def return_fell(chart: Chart, limits: Limits) -> Evidence:
    """Half of what was gained over the untrained policy is lost again."""
    returns = chart.returns
    if not returns.fallen(limits["share"]):
        return None
    return {"return": returns.smooth, "best": returns.best, "return_at_start": returns.start[0]}


@sign
def backwards(chart: Chart, limits: Limits) -> Evidence:
    """The policy moves, and does worse than the untrained one did."""
    returns = chart.returns
    if not returns.worse or returns.best > returns.start[0] + 2.0 * returns.tolerance():
        return None
    if not chart.progress > limits["after"]:
        return None
    return {"return": returns.smooth, "return_at_start": returns.start[0]}
