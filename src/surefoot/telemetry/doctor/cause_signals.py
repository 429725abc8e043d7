"""Signs of causes: what the environment does (train/diagnose/environment_tests.py measures it), and settings far from any
that was published."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import Any, cast

from surefoot.telemetry.doctor.metric_history import MetricHistory
from surefoot.telemetry.doctor.run_signals import SIGNS as SIGNS
from surefoot.telemetry.doctor.signals import Evidence, Limits, sign


@sign
def outside(history: MetricHistory, limits: Limits) -> Evidence:
    """`metric` is below `low` or above `high`, while each metric of `where` lies within its [low, high].

    `after` is the share of the run before which nothing is reported. `unless_thriving` is for values that are normal in
    some tasks: they count only if the returns are not good.
    """
    if limits.get("after", 0.0) > 0.0 and not history.progress > limits["after"]:
        return None
    if limits.get("unless_thriving") and history.thriving:
        return None
    # If all returns are the same number, as where the goal is always reached, there is nothing to improve.
    if limits.get("varied") and not history.returns.varied:
        return None
    value = history.now(limits["metric"])
    if not (value < limits.get("low", -math.inf) or value > limits.get("high", math.inf)):
        return None
    evidence = {limits["metric"]: value}
    for name, (low, high) in cast(dict[str, Any], limits.get("where", {})).items():
        other = float(history.longest) if name == "episode_length" else history.now(name)
        if not low <= other <= high:
            return None
        evidence[name] = other
    return evidence


@sign
def any_outside(history: MetricHistory, limits: Limits) -> Evidence:
    """One of the entries of `any`, each with the limits of `outside`, is outside."""
    common = {name: x for name, x in limits.items() if name != "any"}
    evidences = (outside(history, {**common, **entry}) for entry in limits["any"])
    return next((evidence for evidence in evidences if evidence is not None), None)


@sign
def late_effect(history: MetricHistory, limits: Limits) -> Evidence:
    """Actions explain the change of the observation some steps later, and hardly that of their own step."""
    # Where a probe has changed single actions, it knows.
    lag = history.now("branch_lag")
    if not math.isnan(lag):
        return {"branch_lag": lag} if lag >= 1.0 else None
    now, late = history.now("action_effect"), history.now("action_effect_late")
    if late > limits["least"] and now < limits["share"] * late:
        return {"action_effect": now, "action_effect_late": late}
    return None


@sign
def stale_observations(history: MetricHistory, limits: Limits) -> Evidence:
    """Many observations are repeated exactly, and those that are new still show what the last actions did.

    If not, they belong to another episode or environment, where they may be repeated too.
    """
    share, distinct = history.now("obs_repeat_share"), history.now("obs_distinct_share")
    recent = history.now("action_effect_recent")
    # Also if nothing is new: only episodes of one step have nothing to show.
    if share > limits["always"] and history.longest != 1:
        return {"obs_repeat_share": share, "obs_distinct_share": distinct}
    if not share > limits["repeated"] or not distinct > limits["distinct"] or recent < limits["effect"]:
        return None
    return {"obs_repeat_share": share, "obs_distinct_share": distinct}


@sign
def little_effect(history: MetricHistory, limits: Limits) -> Evidence:
    """Actions explain little of the change that is not known without them, or next to nothing of the acceleration."""
    # Where a probe has changed single actions, it knows.
    exact, size, gain = (history.now(f"branch_{name}") for name in ("effect", "size", "gain"))
    if exact < limits["exact"] or size < limits["size"]:
        leak = history.now("branch_leak")
        return {"branch_effect": exact, **({"branch_leak": leak} if leak > 0.0 else {"branch_size": size})}
    if gain < limits["gain"]:
        return {"branch_gain": gain}
    if exact > 0.5 or gain > 0.5:
        return None
    effect, share = history.now("action_effect"), history.now("action_share")
    late = history.now("action_effect_late")
    # A late effect has its own rule.
    none = effect < limits["effect"] and not late > limits["late"]
    if not none and not (share < limits["share"] and effect >= limits["effect"]):
        return None
    return {"action_effect": effect, "action_share": share}


@sign
def cut_off(history: MetricHistory, limits: Limits) -> Evidence:
    """Nearly all episodes are truncated at one length, far below the environment's own limit, or after a few steps."""
    terminated = sum(history.lengths.values())
    if len(history.truncated_lengths) != 1 or history.ended_episodes < limits["episodes"] or history.thriving:
        return None
    length, own = float(next(iter(history.truncated_lengths))), history.now("time_limit")
    if terminated > 0.5 * history.ended_episodes:
        return None
    # Without a known limit, a task of a few steps is one if returns are all the same.
    short = length < limits["share"] * own or (math.isnan(own) and length <= limits["few"] and history.returns.varied)
    known = {} if math.isnan(own) else {"time_limit": own}
    return {"length": length, "episodes": float(history.ended_episodes), **known} if short else None


@sign
def reward_sign(history: MetricHistory, limits: Limits) -> Evidence:
    """The rewards of a well-known environment have the wrong sign: `signs` is {pattern of its id: 1 or -1}."""
    expected = next((s for pattern, s in limits["signs"].items() if fnmatchcase(history.env, pattern)), 0)
    mean, low, high = history.returns.smooth, history.returns.lowest, history.returns.highest
    if not expected or history.ended_episodes < limits["episodes"] or math.isnan(mean):
        return None
    wrong = high < 0.0 if expected > 0 else low > 0.0
    return {"return": mean, "expected_sign": float(expected)} if wrong else None


@sign
def end_is_truncation(history: MetricHistory, limits: Limits) -> Evidence:
    """Episodes are truncated at many different lengths: a time limit would truncate them at the same length."""
    different = len(history.truncated_lengths)
    if history.ended_episodes < limits["episodes"] or different < limits["lengths"] or history.thriving:
        return None
    return {"episodes": float(history.ended_episodes), "different_lengths": float(different)}


@sign
def rate_ended(history: MetricHistory, limits: Limits) -> Evidence:
    """The learning rate is a small share of its start, early in the run."""
    now, first = history.now("lr"), history.first("lr")
    if not (now < limits["share"] * first and history.progress < limits["before"]):
        return None
    return {"lr": now, "lr_at_start": first, "progress": history.progress}


@sign
def setting(history: MetricHistory, limits: Limits) -> Evidence:
    """A setting of the run is below `low` or above `high`, which are beyond all published settings."""
    name = limits["knob"]
    value = setting_value(history, name)
    # Discounting has no meaning in episodes of a few steps.
    if math.isnan(value) or history.longest < limits.get("episode_length", 0):
        return None
    if value < limits.get("low", -math.inf) or value > limits.get("high", math.inf):
        bounds = {key: float(limits[key]) for key in ("low", "high") if key in limits}
        return {name: value, **bounds}
    return None


def setting_value(history: MetricHistory, name: str) -> float:
    """Return a setting as a number, at its start if it has a schedule; NaN if the run does not have it.

    Derived ones: `batch` (steps per rollout), `planned_updates`, `gradient_steps` (per update), `widest_layer`, and
    `minibatch` (steps per minibatch).
    """
    knob = history.knob
    batch = _number(knob("envs")) * _number(knob("rollout_steps"))
    match name:
        case "batch":
            return batch
        case "planned_updates":
            return (history.total_steps or math.nan) / batch
        case "ent_coef" if history.now("ent_coef") < 0.0:
            # No config takes such a number, but a program may set it.
            return history.now("ent_coef")
        case "gradient_steps":
            return history.now("minibatches")
        case "minibatch":
            size = _number(knob("minibatch_size"))
            return batch / _number(knob("minibatches")) if math.isnan(size) else min(size, batch)
        case "widest_layer":
            hidden = knob("hidden")
            # A list of no layers is a linear policy, which is a choice and not a mistake.
            return float(max(hidden)) if isinstance(hidden, list | tuple) and hidden else math.nan
        case _:
            return _number(knob(name))


def _number(value: Any) -> float:
    if isinstance(value, dict):
        value = cast(dict[str, Any], value).get("start")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
