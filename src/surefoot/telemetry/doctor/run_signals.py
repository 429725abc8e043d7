"""Signs in gradients and weights, the record, the environment, observations and rewards; `signals` has those of learning."""

from __future__ import annotations

import numpy as np

from surefoot.telemetry.doctor.metric_history import MetricHistory
from surefoot.telemetry.doctor.signals import SIGNS as SIGNS
from surefoot.telemetry.doctor.signals import Evidence, Limits, sign, zero_for_nan


@sign
def gradient_clipped(history: MetricHistory, limits: Limits) -> Evidence:
    """Nearly every gradient is clipped to a small part of its norm."""
    window, limit = history.last("grad_norm", limits["window"]), history.knob("max_grad_norm")
    if len(window) < limits["window"] or not isinstance(limit, int | float) or history.thriving:
        return None
    norm = float(np.median(window))
    if norm > limits["times"] * limit and np.mean(window > limit) > 0.9:
        return {"grad_norm": norm, "max_grad_norm": float(limit)}
    return None


@sign
def gradient_dead(history: MetricHistory, limits: Limits) -> Evidence:
    """The gradient is zero."""
    window = history.last("grad_norm", limits["window"])
    if len(window) < limits["window"] or not history.now("minibatches") > 0 or window.max() >= limits["limit"]:
        return None
    return {"grad_norm": float(window.max())}


@sign
def step_size(history: MetricHistory, limits: Limits) -> Evidence:
    """The relative step of the weights is too small or too large."""
    window = history.last("weight_step", limits["window"])
    if len(window) < limits["window"] or history.thriving or not history.now("lr") > 0.05 * history.first("lr"):
        return None
    step = float(np.median(window))
    return None if limits["low"] <= step <= limits["high"] else {"weight_step": step}


@sign
def dormant(history: MetricHistory, limits: Limits) -> Evidence:
    """Many hidden units are inactive."""
    share = history.now("dormant_share")
    return {"dormant_share": share} if share > limits["limit"] and not history.thriving else None


@sign
def weights_grown(history: MetricHistory, limits: Limits) -> Evidence:
    """The weight norm is many times its first value."""
    norm, first = history.now("weight_norm"), history.first("weight_norm")
    return {"weight_norm": norm, "at_start": first} if norm > limits["times"] * first and not history.thriving else None


@sign
def stale(history: MetricHistory, limits: Limits) -> Evidence:
    """Rollouts come from older policies, and their effective sample size is small."""
    lag, size = zero_for_nan(history.high("policy_lag")), history.now("effective_sample_size")
    if lag > limits["lag"] or (lag > 0 and size < limits["effective_sample_size"]):
        return {"policy_lag": lag, "effective_sample_size": size}
    return None


@sign
def repeated(history: MetricHistory, limits: Limits) -> Evidence:
    """The numbers of an update equal those of an earlier one to the last digit."""
    return {"repeats_in_a_row": float(history.repeats)} if history.repeats >= limits["times"] else None


@sign
def dead_metric(history: MetricHistory, limits: Limits) -> Evidence:
    """Metrics that should vary are constant."""
    dead: dict[str, float] = {}
    for name in limits["metrics"]:
        window = history.last(name, limits["window"])
        if len(window) >= limits["window"] and window.min() == window.max() and history.now("minibatches") != 0.0:
            dead[name] = float(window[-1])
    return dead or None


@sign
def record_broken(history: MetricHistory, limits: Limits) -> Evidence:
    """Lines are missing, torn, out of order, or from two writers."""
    return {"odd_lines": float(history.odd_lines)} if history.odd_lines >= limits["lines"] else None


@sign
def record_pauses(history: MetricHistory, limits: Limits) -> Evidence:
    """Nothing was written for much longer than usual within one session."""
    gaps = history.last("gap", limits["window"])
    if len(gaps) < limits["window"]:
        return None
    usual, last = float(np.median(gaps)), float(gaps[-1])
    return {"seconds": last, "usual": usual} if last > max(limits["least"], limits["times"] * usual) else None


@sign
def memory_grows(history: MetricHistory, limits: Limits) -> Evidence:
    """The process uses far more memory than at the start."""
    now, first = history.now("rss_mb"), history.first("rss_mb")
    return {"rss_mb": now, "at_start": first} if now > limits["times"] * first + limits["least"] else None


@sign
def one_step_episodes(history: MetricHistory, limits: Limits) -> Evidence:
    """Every episode so far ended after one step."""
    if history.longest != 1 or history.ended_episodes < limits["episodes"]:
        return None
    return {"episodes": float(history.ended_episodes), "length": 1.0}


@sign
def slower(history: MetricHistory, limits: Limits) -> Evidence:
    """The steps per second dropped below a share of their median."""
    names = ("env_steps", "seconds.collect", "seconds.prepare", "seconds.learn")
    steps, *seconds = (history.last(name, limits["window"]) for name in names)
    if any(len(column) < limits["window"] for column in (steps, *seconds)):
        return None
    rates = np.diff(steps) / np.maximum(np.sum(seconds, axis=0)[1:], 1e-9)
    usual, now = float(np.median(rates)), float(rates[-1])
    return {"steps_per_second": now, "usual": usual} if now < limits["share"] * usual else None


@sign
def no_episode_ends(history: MetricHistory, limits: Limits) -> Evidence:
    """A good part of the run is done, and no episode ended."""
    if history.ended_episodes or not history.progress > limits["after"]:
        return None
    return {"env_steps": float(history.env_steps), "episodes": 0.0}


@sign
def limit_is_end(history: MetricHistory, limits: Limits) -> Evidence:
    """Many episodes are terminated at exactly the greatest length: probably a time limit that should truncate."""
    count = history.lengths.get(history.longest, 0)
    episodes = sum(history.lengths.values())
    # Short episodes, such as a bandit's of one step, all have the same length without a time limit.
    if history.longest < limits["length"] or count < limits["episodes"] or count < limits["share"] * episodes:
        return None
    return {"length": float(history.longest), "episodes": float(count)}


@sign
def bootstrap_zero(history: MetricHistory, limits: Limits) -> Evidence:
    """The bootstrap value of continuing episodes is exactly 0."""
    share = history.now("bootstrap_zero_share")
    return {"bootstrap_zero_share": share} if share > limits["limit"] else None


@sign
def obs_scale(history: MetricHistory, limits: Limits) -> Evidence:
    """Observations are far from 0 or widely spread, and not normalised; up to `harmless` only if the run does not learn."""
    mean, std = history.now("obs_mean_max"), history.now("obs_std_max")
    size = max(mean, std)
    if history.knob("normalize_obs") or not size > limits["limit"]:
        return None
    if history.thriving and size < limits.get("harmless", 0.0):
        return None
    return {"obs_mean_max": mean, "obs_std_max": std}


@sign
def obs_constant(history: MetricHistory, limits: Limits) -> Evidence:
    """Observations hardly vary, in any of their numbers, and are not normalised."""
    std = history.now("obs_std_max")
    return {"obs_std_max": std} if std < limits["limit"] and not history.knob("normalize_obs") else None


@sign
def saturated(history: MetricHistory, limits: Limits) -> Evidence:
    """Actions are at their bounds or always the same, and the returns are not good."""
    if history.thriving:
        return None
    for name in ("action_at_bound_share", "top_action_share"):
        if (share := history.now(name)) > limits[name]:
            return {name: share, "limit": limits[name]}
    return None


@sign
def reward_large(history: MetricHistory, limits: Limits) -> Evidence:
    """The critic's targets are far above 1 in size."""
    mean, std = history.now("target_mean"), history.now("target_std")
    scale = max(1e-12, zero_for_nan(history.now("value_scale"))) if history.knob("normalize_value") else 1.0
    size = max(abs(mean), std) / scale
    if size > limits["limit"]:
        return {"target_mean": mean, "target_std": std, "reward_mean": zero_for_nan(history.now("reward_mean"))}
    return None


@sign
def reward_small(history: MetricHistory, limits: Limits) -> Evidence:
    """Rewards are so small that the critic cannot distinguish them from 0."""
    std, spread = history.now("target_std"), history.now("reward_std")
    tiny = spread > 0.0 and std < limits["limit"] and not history.knob("normalize_value") and not history.thriving
    return {"target_std": std, "reward_std": spread} if tiny else None


@sign
def reward_outliers(history: MetricHistory, limits: Limits) -> Evidence:
    """Single rewards are far outside the range of the others."""
    count = history.high("reward_outliers")
    return {"reward_outliers": count} if count >= limits["count"] and not history.thriving else None


@sign
def weights_frozen(history: MetricHistory, limits: Limits) -> Evidence:
    """A part of the weights did not change during gradient steps, in the last two measurements."""
    shares = history.measured("frozen_share", 2)
    moves = history.now("minibatches") > 0 and history.now("lr") > 0 and not history.now("rolled_back") > 0
    return {"frozen_share": shares[-1]} if moves and len(shares) == 2 and min(shares) > limits["limit"] else None


@sign
def weights_jumped(history: MetricHistory, limits: Limits) -> Evidence:
    """Updates do not start with the weights that the previous update ended with."""
    jumps = history.measured("weight_jump", 2)
    return {"weight_jump": jumps[-1]} if len(jumps) == 2 and min(jumps) > limits["limit"] else None
