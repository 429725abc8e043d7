"""Signs in gradients and weights, the record, the environment, observations and rewards; `signals` has those of learning."""

from __future__ import annotations

import numpy as np

from surefoot.telemetry.doctor.metric_history import Chart
from surefoot.telemetry.doctor.signals import SIGNS as SIGNS
from surefoot.telemetry.doctor.signals import Evidence, Limits, sign, zero_for_nan


@sign
def gradient_clipped(chart: Chart, limits: Limits) -> Evidence:
    """Nearly every gradient is cut to a small part of its length."""
    window, limit = chart.last("grad_norm", limits["window"]), chart.knob("max_grad_norm")
    if len(window) < limits["window"] or not isinstance(limit, int | float) or chart.thriving:
        return None
    norm = float(np.median(window))
    if norm > limits["times"] * limit and np.mean(window > limit) > 0.9:
        return {"grad_norm": norm, "max_grad_norm": float(limit)}
    return None


@sign
def gradient_dead(chart: Chart, limits: Limits) -> Evidence:
    """There is no gradient."""
    window = chart.last("grad_norm", limits["window"])
    if len(window) < limits["window"] or not chart.now("minibatches") > 0 or window.max() >= limits["limit"]:
        return None
    return {"grad_norm": float(window.max())}


@sign
def step_size(chart: Chart, limits: Limits) -> Evidence:
    """The weights move by too small or too large a part of themselves."""
    window = chart.last("weight_step", limits["window"])
    if len(window) < limits["window"] or chart.thriving or not chart.now("lr") > 0.05 * chart.first("lr"):
        return None
    step = float(np.median(window))
    return None if limits["low"] <= step <= limits["high"] else {"weight_step": step}


@sign
def dormant(chart: Chart, limits: Limits) -> Evidence:
    """Hidden units that answer nothing."""
    share = chart.now("dormant_share")
    return {"dormant_share": share} if share > limits["limit"] and not chart.thriving else None


@sign
def weights_grown(chart: Chart, limits: Limits) -> Evidence:
    """The weights are many times as large as at the start."""
    norm, first = chart.now("weight_norm"), chart.first("weight_norm")
    return {"weight_norm": norm, "at_start": first} if norm > limits["times"] * first and not chart.thriving else None


@sign
def stale(chart: Chart, limits: Limits) -> Evidence:
    """Rollouts of older policies, of which little still counts."""
    lag, size = zero_for_nan(chart.high("policy_lag")), chart.now("effective_sample_size")
    if lag > limits["lag"] or (lag > 0 and size < limits["effective_sample_size"]):
        return {"policy_lag": lag, "effective_sample_size": size}
    return None


@sign
def repeated(chart: Chart, limits: Limits) -> Evidence:
    """The numbers of an update are those of an earlier one, to the last digit."""
    return {"repeats_in_a_row": float(chart.repeats)} if chart.repeats >= limits["times"] else None


@sign
def dead_metric(chart: Chart, limits: Limits) -> Evidence:
    """Numbers that should vary do not."""
    dead: dict[str, float] = {}
    for name in limits["metrics"]:
        window = chart.last(name, limits["window"])
        if len(window) >= limits["window"] and window.min() == window.max() and chart.now("minibatches") != 0.0:
            dead[name] = float(window[-1])
    return dead or None


@sign
def record_broken(chart: Chart, limits: Limits) -> Evidence:
    """Lines missing, torn, out of order, or by two writers."""
    return {"odd_lines": float(chart.odd_lines)} if chart.odd_lines >= limits["lines"] else None


@sign
def record_pauses(chart: Chart, limits: Limits) -> Evidence:
    """Nothing was written for much longer than usual, within one session."""
    gaps = chart.last("gap", limits["window"])
    if len(gaps) < limits["window"]:
        return None
    usual, last = float(np.median(gaps)), float(gaps[-1])
    return {"seconds": last, "usual": usual} if last > max(limits["least"], limits["times"] * usual) else None


@sign
def memory_grows(chart: Chart, limits: Limits) -> Evidence:
    """The process holds far more memory than in the beginning."""
    now, first = chart.now("rss_mb"), chart.first("rss_mb")
    return {"rss_mb": now, "at_start": first} if now > limits["times"] * first + limits["least"] else None


@sign
def one_step_episodes(chart: Chart, limits: Limits) -> Evidence:
    """Every episode so far ended with its first step."""
    if chart.longest != 1 or chart.ended_episodes < limits["episodes"]:
        return None
    return {"episodes": float(chart.ended_episodes), "length": 1.0}


@sign
def slower(chart: Chart, limits: Limits) -> Evidence:
    """Fewer steps a second than the run is used to."""
    names = ("env_steps", "seconds.collect", "seconds.prepare", "seconds.learn")
    steps, *seconds = (chart.last(name, limits["window"]) for name in names)
    if any(len(column) < limits["window"] for column in (steps, *seconds)):
        return None
    rates = np.diff(steps) / np.maximum(np.sum(seconds, axis=0)[1:], 1e-9)
    usual, now = float(np.median(rates)), float(rates[-1])
    return {"steps_per_second": now, "usual": usual} if now < limits["share"] * usual else None


@sign
def no_episode_ends(chart: Chart, limits: Limits) -> Evidence:
    """A good part of the run is over and not one episode."""
    if chart.ended_episodes or not chart.progress > limits["after"]:
        return None
    return {"env_steps": float(chart.env_steps), "episodes": 0.0}


@sign
def limit_is_end(chart: Chart, limits: Limits) -> Evidence:
    """Many episodes count as terminated at exactly the greatest length there is: a time limit, taken for an end."""
    count = chart.lengths.get(chart.longest, 0)
    told = sum(chart.lengths.values())
    # Where all episodes take one step, as a bandit's do, there is no limit to be taken for an end.
    if chart.longest < limits["length"] or count < limits["episodes"] or count < limits["share"] * told:
        return None
    return {"length": float(chart.longest), "episodes": float(count)}


@sign
def bootstrap_zero(chart: Chart, limits: Limits) -> Evidence:
    """Steps that were cut short have exactly nothing ahead of them, though their episodes did not end."""
    share = chart.now("bootstrap_zero_share")
    return {"bootstrap_zero_share": share} if share > limits["limit"] else None


@sign
def obs_scale(chart: Chart, limits: Limits) -> Evidence:
    """Observations far from 0, or widely spread, that nobody standardises."""
    if chart.knob("normalize_obs"):
        return None
    mean, std = chart.now("obs_mean_max"), chart.now("obs_std_max")
    return {"obs_mean_max": mean, "obs_std_max": std} if max(mean, std) > limits["limit"] else None


@sign
def obs_constant(chart: Chart, limits: Limits) -> Evidence:
    """What is seen hardly varies, in any of its numbers."""
    std = chart.now("obs_std_max")
    return {"obs_std_max": std} if std < limits["limit"] else None


@sign
def saturated(chart: Chart, limits: Limits) -> Evidence:
    """Actions at their bounds, or always the same one, to no avail."""
    if chart.thriving:
        return None
    for name in ("action_at_bound_share", "top_action_share"):
        if (share := chart.now(name)) > limits[name]:
            return {name: share, "limit": limits[name]}
    return None


@sign
def reward_large(chart: Chart, limits: Limits) -> Evidence:
    """What the critic must learn is far from 1 in size."""
    mean, std = chart.now("target_mean"), chart.now("target_std")
    scale = max(1e-12, zero_for_nan(chart.now("value_scale"))) if chart.knob("normalize_value") else 1.0
    size = max(abs(mean), std) / scale
    if size > limits["limit"]:
        return {"target_mean": mean, "target_std": std, "reward_mean": zero_for_nan(chart.now("reward_mean"))}
    return None


@sign
def reward_small(chart: Chart, limits: Limits) -> Evidence:
    """Rewards so small that the critic cannot tell them from 0."""
    std, spread = chart.now("target_std"), chart.now("reward_std")
    told = spread > 0.0 and std < limits["limit"] and not chart.knob("normalize_value") and not chart.thriving
    return {"target_std": std, "reward_std": spread} if told else None


@sign
def reward_outliers(chart: Chart, limits: Limits) -> Evidence:
    """Single rewards far outside of all others."""
    count = chart.high("reward_outliers")
    return {"reward_outliers": count} if count >= limits["count"] and not chart.thriving else None


@sign
def weights_frozen(chart: Chart, limits: Limits) -> Evidence:
    """A part of the weights did not move by a bit while gradient steps were taken, whenever that was measured."""
    shares = chart.measured("frozen_share", 2)
    moves = chart.now("minibatches") > 0 and chart.now("lr") > 0 and not chart.now("rolled_back") > 0
    return {"frozen_share": shares[-1]} if moves and len(shares) == 2 and min(shares) > limits["limit"] else None


@sign
def weights_jumped(chart: Chart, limits: Limits) -> Evidence:
    """The weights that updates begin with are not those the ones before ended with."""
    jumps = chart.measured("weight_jump", 2)
    return {"weight_jump": jumps[-1]} if len(jumps) == 2 and min(jumps) > limits["limit"] else None
