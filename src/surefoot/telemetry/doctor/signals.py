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


def above(chart: Chart, limits: Limits) -> Evidence:
    """`metric` is larger than `limit`, in any of the updates that the record covers."""
    x = chart.high(limits["metric"])
    return {limits["metric"]: x, "limit": limits["limit"]} if x > limits["limit"] else None


def below(chart: Chart, limits: Limits) -> Evidence:
    """`metric` is smaller than `limit`."""
    x = chart.now(limits["metric"])
    return {limits["metric"]: x, "limit": limits["limit"]} if x < limits["limit"] else None


def not_finite(chart: Chart, limits: Limits) -> Evidence:
    """NaN or infinity somewhere; `what` is "left_out" (steps), "dropped" (episodes) or "stopped" (the run)."""
    match limits["what"]:
        case "stopped":
            told = chart.end is not None and _says_nan(chart.end.reason, chart.end.message)
            if told or chart.now("rolled_back") > 0 or chart.now("nonfinite") > 0:
                return {"rolled_back": _zero(chart.now("rolled_back")), "nonfinite": _zero(chart.now("nonfinite"))}
        case "left_out":
            if (steps := chart.high("nonfinite_steps")) > 0:
                return {"nonfinite_steps": steps}
        case _:
            if (episodes := chart.high("dropped_episodes")) > 0:
                return {"dropped_episodes": episodes}
    return None


def _says_nan(reason: str, message: str) -> bool:
    words = ("NonFinite", "not finite", "NaN", "infinit")
    return reason == "diverged" or (reason == "error" and any(word in message for word in words))


def ratio_error(chart: Chart, limits: Limits) -> Evidence:
    """Before the first step the policy that learns was not the policy that acted."""
    error = chart.high("first_ratio_error")
    fresh = not chart.now("policy_lag") > 0
    return {"first_ratio_error": error, "limit": limits["limit"]} if fresh and error > limits["limit"] else None


def kl_high(chart: Chart, limits: Limits) -> Evidence:
    """The update moved the policy too far; `of_target` times target_kl where there is one."""
    kl, target = chart.now("approx_kl"), chart.knob("target_kl")
    limit = max(limits["limit"], limits["of_target"] * target) if isinstance(target, int | float) else limits["limit"]
    if not kl > limit or (limits.get("unless_thriving") and chart.thriving):
        return None
    return {"approx_kl": kl, "limit": limit, "lr": _zero(chart.now("lr"))}


def kl_leap(chart: Chart, limits: Limits) -> Evidence:
    """A single update after which the old policy is unrecognisable."""
    kl = chart.high("approx_kl")
    if not kl > limits["limit"] or chart.thriving:
        return None
    return {"approx_kl": kl, "limit": limits["limit"], "lr": _zero(chart.now("lr"))}


def kl_zero(chart: Chart, limits: Limits) -> Evidence:
    """Updates that do not move the policy although the learning rate says they should."""
    window = chart.last("approx_kl", limits["window"])
    if len(window) < limits["window"] or window.max() >= limits["limit"] or not chart.now("minibatches") > 0:
        return None
    lr, moved = chart.now("lr"), chart.first("approx_kl") >= limits["limit"]
    if (chart.thriving and moved) or not lr > 0.05 * chart.first("lr"):
        return None  # it has learned what there is, or a schedule has come to its end
    return {"approx_kl": float(window.max()), "lr": lr}


def clip_high(chart: Chart, limits: Limits) -> Evidence:
    """Too many ratios left the clip range."""
    share = chart.now("clip_fraction")
    if not share > limits["limit"] or (limits.get("unless_thriving") and chart.thriving):
        return None
    return {"clip_fraction": share, "limit": limits["limit"]}


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


def entropy_low(chart: Chart, limits: Limits) -> Evidence:
    """The policy has made up its mind, and what it does is no better than chance was."""
    share = relative_entropy(chart)
    # Where every episode pays the same, whatever is done, the return says nothing about the policy.
    if not share < limits["limit"] or chart.thriving or not chart.returns.varied:
        return None
    return {"relative_entropy": share, "entropy": chart.now("entropy"), "ent_coef": _zero(chart.now("ent_coef"))}


def entropy_high(chart: Chart, limits: Limits) -> Evidence:
    """The policy is still nearly random, or more random than at first, when it should know something."""
    if not chart.progress > limits["after"] or chart.thriving:
        return None
    share = relative_entropy(chart)
    gaussian = not math.isnan(chart.now("action_std"))
    if not share > (limits["gaussian"] if gaussian else limits["limit"]):
        return None
    if not _zero(chart.now("ent_coef")) >= limits.get("ent_coef", 0.0):
        return None
    return {"relative_entropy": share, "entropy": chart.now("entropy"), "ent_coef": _zero(chart.now("ent_coef"))}


def critic_useless(chart: Chart, limits: Limits) -> Evidence:
    """The critic explains nothing of the targets, record after record."""
    window = chart.last("explained_variance", limits["window"])
    if len(window) < limits["window"] or window.max() > limits["limit"] or chart.thriving:
        return None
    if not chart.now("target_std") > 1e-6 * max(1.0, abs(chart.now("target_mean"))):
        return None  # there is nothing to explain
    return {"explained_variance": float(np.median(window)), "best_of_window": float(window.max())}


def value_loss_spike(chart: Chart, limits: Limits) -> Evidence:
    """The value loss is many times its own median."""
    window = chart.last("value_loss", limits["window"])
    if len(window) < 10 or chart.thriving:
        return None
    usual, loss = float(np.median(window)), float(window[-1])
    return {"value_loss": loss, "median": usual} if usual > 0 and loss > limits["times"] * usual else None


def critic_harmful(chart: Chart, limits: Limits) -> Evidence:
    """The critic is further off than a constant would be: its error exceeds the targets' variance."""
    explained, spread = chart.now("explained_variance"), chart.now("target_std")
    if chart.thriving or not spread > 0.01 * abs(chart.now("target_mean")) or not explained < 1.0 - limits["limit"]:
        return None
    return {"error_over_variance": 1.0 - explained, "limit": limits["limit"], "target_std": spread}


def no_advantage(chart: Chart, limits: Limits) -> Evidence:
    """Nothing says which action was better: advantages do not vary, or no reward ever came."""
    if chart.thriving:
        return None  # whoever always does what is best learns nothing more
    std, scale = chart.now("advantage_std"), max(1.0, abs(_zero(chart.now("target_mean"))))
    flat = std < limits["limit"] * scale or chart.high("zero_std_minibatches") > 0
    silent = chart.last("reward_std", limits["window"])
    constant = len(silent) >= limits["window"] and silent.max() < 1e-9
    # A reward that never varies still says something where episodes end of themselves: CartPole's.
    told = constant and (_zero(chart.now("reward_mean")) == 0.0 or not chart.lengths)
    if flat or told:
        return {
            "advantage_std": std,
            "reward_mean": _zero(chart.now("reward_mean")),
            "reward_std": _zero(silent.max(initial=0.0)),
        }
    return None


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


def return_fell(chart: Chart, limits: Limits) -> Evidence:
    """Half of what was gained over the untrained policy is lost again."""
    returns = chart.returns
    if not returns.fallen(limits["share"]):
        return None
    return {"return": returns.smooth, "best": returns.best, "return_at_start": returns.start[0]}


def backwards(chart: Chart, limits: Limits) -> Evidence:
    """The policy moves, and does worse than the untrained one did."""
    returns = chart.returns
    if not returns.worse or returns.best > returns.start[0] + 2.0 * returns.tolerance():
        return None
    if not chart.progress > limits["after"]:
        return None
    return {"return": returns.smooth, "return_at_start": returns.start[0]}


def gradient_clipped(chart: Chart, limits: Limits) -> Evidence:
    """Nearly every gradient is cut to a small part of its length."""
    window, limit = chart.last("grad_norm", limits["window"]), chart.knob("max_grad_norm")
    if len(window) < limits["window"] or not isinstance(limit, int | float) or chart.thriving:
        return None
    norm = float(np.median(window))
    if norm > limits["times"] * limit and np.mean(window > limit) > 0.9:
        return {"grad_norm": norm, "max_grad_norm": float(limit)}
    return None


def gradient_dead(chart: Chart, limits: Limits) -> Evidence:
    """There is no gradient."""
    window = chart.last("grad_norm", limits["window"])
    if len(window) < limits["window"] or not chart.now("minibatches") > 0 or window.max() >= limits["limit"]:
        return None
    return {"grad_norm": float(window.max())}


def step_size(chart: Chart, limits: Limits) -> Evidence:
    """The weights move by too small or too large a part of themselves."""
    window = chart.last("weight_step", limits["window"])
    if len(window) < limits["window"] or chart.thriving or not chart.now("lr") > 0.05 * chart.first("lr"):
        return None
    step = float(np.median(window))
    return None if limits["low"] <= step <= limits["high"] else {"weight_step": step}


def dormant(chart: Chart, limits: Limits) -> Evidence:
    """Hidden units that answer nothing."""
    share = chart.now("dormant_share")
    return {"dormant_share": share} if share > limits["limit"] and not chart.thriving else None


def weights_grown(chart: Chart, limits: Limits) -> Evidence:
    """The weights are many times as large as at the start."""
    norm, first = chart.now("weight_norm"), chart.first("weight_norm")
    return {"weight_norm": norm, "at_start": first} if norm > limits["times"] * first and not chart.thriving else None


def stale(chart: Chart, limits: Limits) -> Evidence:
    """Rollouts of older policies, of which little still counts."""
    lag, size = _zero(chart.high("policy_lag")), chart.now("effective_sample_size")
    if lag > limits["lag"] or (lag > 0 and size < limits["effective_sample_size"]):
        return {"policy_lag": lag, "effective_sample_size": size}
    return None


def repeated(chart: Chart, limits: Limits) -> Evidence:
    """The numbers of an update are those of an earlier one, to the last digit."""
    return {"repeats_in_a_row": float(chart.repeats)} if chart.repeats >= limits["times"] else None


def dead_metric(chart: Chart, limits: Limits) -> Evidence:
    """Numbers that should vary do not."""
    dead: dict[str, float] = {}
    for name in limits["metrics"]:
        window = chart.last(name, limits["window"])
        if len(window) >= limits["window"] and window.min() == window.max() and chart.now("minibatches") != 0.0:
            dead[name] = float(window[-1])
    return dead or None


def record_broken(chart: Chart, limits: Limits) -> Evidence:
    """Lines missing, torn, out of order, or by two writers."""
    return {"odd_lines": float(chart.odd_lines)} if chart.odd_lines >= limits["lines"] else None


def record_pauses(chart: Chart, limits: Limits) -> Evidence:
    """Nothing was written for much longer than usual, within one session."""
    gaps = chart.last("gap", limits["window"])
    if len(gaps) < limits["window"]:
        return None
    usual, last = float(np.median(gaps)), float(gaps[-1])
    return {"seconds": last, "usual": usual} if last > max(limits["least"], limits["times"] * usual) else None


def memory_grows(chart: Chart, limits: Limits) -> Evidence:
    """The process holds far more memory than in the beginning."""
    now, first = chart.now("rss_mb"), chart.first("rss_mb")
    return {"rss_mb": now, "at_start": first} if now > limits["times"] * first + limits["least"] else None


def one_step_episodes(chart: Chart, limits: Limits) -> Evidence:
    """Every episode so far ended with its first step."""
    if chart.longest != 1 or chart.ended_episodes < limits["episodes"]:
        return None
    return {"episodes": float(chart.ended_episodes), "length": 1.0}


def slower(chart: Chart, limits: Limits) -> Evidence:
    """Fewer steps a second than the run is used to."""
    steps, times = chart.last("env_steps", limits["window"]), _busy(chart, limits["window"])
    if len(steps) < limits["window"] or len(times) < limits["window"]:
        return None
    rates = np.diff(steps) / np.maximum(times[1:], 1e-9)
    usual, now = float(np.median(rates)), float(rates[-1])
    return {"steps_per_second": now, "usual": usual} if now < limits["share"] * usual else None


def _busy(chart: Chart, n: int) -> np.ndarray:
    """Seconds that each of the last records spent on collecting and learning."""
    parts = [chart.last(f"seconds.{name}", n) for name in ("collect", "prepare", "learn")]
    return np.sum(parts, axis=0) if len({len(part) for part in parts}) == 1 else np.zeros(0)


def no_episode_ends(chart: Chart, limits: Limits) -> Evidence:
    """A good part of the run is over and not one episode."""
    if chart.ended_episodes or not chart.progress > limits["after"]:
        return None
    return {"env_steps": float(chart.env_steps), "episodes": 0.0}


def limit_is_end(chart: Chart, limits: Limits) -> Evidence:
    """Many episodes count as terminated at exactly the greatest length there is: a time limit, taken for an end."""
    count = chart.lengths.get(chart.longest, 0)
    told = sum(chart.lengths.values())
    # Where all episodes take one step, as a bandit's do, there is no limit to be taken for an end.
    if chart.longest < limits["length"] or count < limits["episodes"] or count < limits["share"] * told:
        return None
    return {"length": float(chart.longest), "episodes": float(count)}


def bootstrap_zero(chart: Chart, limits: Limits) -> Evidence:
    """Steps that were cut short have exactly nothing ahead of them, though their episodes did not end."""
    share = chart.now("bootstrap_zero_share")
    return {"bootstrap_zero_share": share} if share > limits["limit"] else None


def obs_scale(chart: Chart, limits: Limits) -> Evidence:
    """Observations far from 0, or widely spread, that nobody standardises."""
    if chart.knob("normalize_obs"):
        return None
    mean, std = chart.now("obs_mean_max"), chart.now("obs_std_max")
    return {"obs_mean_max": mean, "obs_std_max": std} if max(mean, std) > limits["limit"] else None


def obs_constant(chart: Chart, limits: Limits) -> Evidence:
    """What is seen hardly varies, in any of its numbers."""
    std = chart.now("obs_std_max")
    return {"obs_std_max": std} if std < limits["limit"] else None


def saturated(chart: Chart, limits: Limits) -> Evidence:
    """Actions at their bounds, or always the same one, to no avail."""
    if chart.thriving:
        return None
    for name in ("action_at_bound_share", "top_action_share"):
        if (share := chart.now(name)) > limits[name]:
            return {name: share, "limit": limits[name]}
    return None


def reward_large(chart: Chart, limits: Limits) -> Evidence:
    """What the critic must learn is far from 1 in size."""
    mean, std = chart.now("target_mean"), chart.now("target_std")
    scale = max(1e-12, _zero(chart.now("value_scale"))) if chart.knob("normalize_value") else 1.0
    size = max(abs(mean), std) / scale
    if size > limits["limit"]:
        return {"target_mean": mean, "target_std": std, "reward_mean": _zero(chart.now("reward_mean"))}
    return None


def reward_small(chart: Chart, limits: Limits) -> Evidence:
    """Rewards so small that the critic cannot tell them from 0."""
    std, spread = chart.now("target_std"), chart.now("reward_std")
    told = spread > 0.0 and std < limits["limit"] and not chart.knob("normalize_value") and not chart.thriving
    return {"target_std": std, "reward_std": spread} if told else None


def reward_outliers(chart: Chart, limits: Limits) -> Evidence:
    """Single rewards far outside of all others."""
    count = chart.high("reward_outliers")
    return {"reward_outliers": count} if count >= limits["count"] and not chart.thriving else None


def weights_frozen(chart: Chart, limits: Limits) -> Evidence:
    """A part of the weights did not move by a bit while gradient steps were taken, whenever that was measured."""
    shares = chart.measured("frozen_share", 2)
    moves = chart.now("minibatches") > 0 and chart.now("lr") > 0 and not chart.now("rolled_back") > 0
    return {"frozen_share": shares[-1]} if moves and len(shares) == 2 and min(shares) > limits["limit"] else None


def weights_jumped(chart: Chart, limits: Limits) -> Evidence:
    """The weights that updates begin with are not those the ones before ended with."""
    jumps = chart.measured("weight_jump", 2)
    return {"weight_jump": jumps[-1]} if len(jumps) == 2 and min(jumps) > limits["limit"] else None


def _zero(x: float) -> float:
    """x, and 0 for NaN."""
    return 0.0 if math.isnan(x) else float(x)


SIGNS: dict[str, Callable[[Chart, Limits], Evidence]] = {
    sign.__name__: sign
    for sign in (
        above,
        below,
        not_finite,
        ratio_error,
        kl_high,
        kl_leap,
        kl_zero,
        clip_high,
        timid,
        entropy_low,
        entropy_high,
        critic_useless,
        critic_harmful,
        value_loss_spike,
        no_advantage,
        flat_return,
        return_fell,
        backwards,
        gradient_clipped,
        gradient_dead,
        step_size,
        dormant,
        weights_grown,
        stale,
        repeated,
        dead_metric,
        record_broken,
        record_pauses,
        memory_grows,
        one_step_episodes,
        slower,
        no_episode_ends,
        limit_is_end,
        bootstrap_zero,
        obs_scale,
        obs_constant,
        saturated,
        reward_large,
        reward_small,
        reward_outliers,
        weights_frozen,
        weights_jumped,
    )
}
"""By name, as rule files call them."""
