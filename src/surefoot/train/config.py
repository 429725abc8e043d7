"""Settings of collection, and the split of one flat list of settings into three configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from surefoot.data.kinds import (
    NOT_NEGATIVE,
    POSITIVE,
    Interval,
    as_mapping,
    boolean,
    choice,
    flag,
    integer,
    literal,
    number_range,
    optional,
    or_word,
    real,
    sizes,
    whole_number,
)
from surefoot.data.knobs import Config, documented, knob, require_known
from surefoot.envs.workers.env_workers import Timeout
from surefoot.envs.workers.placement import Workers
from surefoot.errors import ConfigError
from surefoot.learn.aliases import PPO_HINTS, PPO_NAMES
from surefoot.learn.config import PPOConfig, scheduled
from surefoot.learn.schedule import Schedule
from surefoot.nets.config import NET_HINTS, NET_NAMES, POLICIES, NetConfig


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class CollectConfig(Config):
    """Worker processes, rewards and curiosity. Reports always show raw rewards."""

    workers: Workers = knob(
        "auto",
        "Processes that step Gymnasium's envs besides this one. The digits are the same with any number; auto measures "
        "the cost of a step and uses none if that is not faster. Built-in environments need none; for MuJoCo's tasks "
        "these are threads.",
        or_word("auto", integer(NOT_NEGATIVE)),
    )
    worker_timeout: Timeout = knob(
        "auto",
        "Seconds after which a worker that does not respond is killed and replaced. auto: 30, or ten times the slowest "
        "step of the envs in this process if that is more.",
        or_word("auto", real(POSITIVE)),
    )

    normalize_reward: bool = knob(
        False,
        "Divide rewards by the running standard deviation of the discounted return, "
        "so that the critic's targets are of the order of 1.",
        flag(),
        names=("norm_reward", "normalize_rewards"),
    )
    reward_clip: float = knob(
        10.0,
        "Limit of scaled rewards, ±; raw rewards are not clipped.",
        real(POSITIVE),
        names=("clip_reward",),
    )
    reward_range: tuple[float, float] | None = knob(
        None,
        "Lowest and highest reward of the env; rewards outside are clipped and counted. None clips nothing.",
        optional(number_range()),
    )
    nonfinite: str = knob(
        "raise",
        "What to do if an env returns NaN or infinity: raise an error, or drop that episode and continue.",
        choice("raise", "drop_episode"),
    )
    curiosity: str = knob(
        "none",
        "Exploration bonus for envs with rare rewards: rnd rewards new observations, icm unexpected results of actions.",
        choice("none", "rnd", "icm"),
    )
    curiosity_coef: float | Schedule = knob(
        1.0,
        "Weight of the bonus, after division by the running deviation of its discounted sum. "
        "A number, or a schedule: lin_1 falls to 0 over the run.",
        scheduled(NOT_NEGATIVE),
        names=("int_coef", "intrinsic_coef"),
    )
    ext_coef: float = knob(
        1.0,
        "Weight of the env's reward if there is a bonus; 0 learns from the bonus alone.",
        real(NOT_NEGATIVE),
        names=("extrinsic_coef",),
    )
    curiosity_lr: float = knob(
        1e-3, "Learning rate of the bonus networks. Higher makes the bonus fade sooner.", real(POSITIVE)
    )
    curiosity_hidden: tuple[int, ...] = knob((64, 64), "Widths of the hidden layers of the bonus networks.", sizes())
    curiosity_share: float = knob(
        0.25,
        "Share of each rollout that the bonus networks learn from. Less keeps the bonus for longer and takes less time.",
        real(Interval(0, 1, open_low=True)),
    )
    curiosity_minibatches: int = knob(4, "Gradient steps of the bonus networks per rollout.", integer(Interval(1)))


COLLECT_NAMES = CollectConfig.vocabulary()


def split_settings(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return settings under any names as changes for (PPOConfig, NetConfig, CollectConfig).

    Text is parsed. SB3's `policy_kwargs` and the zoo's `normalize` are unpacked. Pass the first part to `PPOConfig.make` or
    `replace`: it may contain `anneal_lr`, which needs the learning rate.
    """
    flat = _unpack(settings)
    require_known(flat, _all_names(), PPO_HINTS | NET_HINTS)
    ppo, net, collect = (
        {name: value for name, value in flat.items() if name in vocabulary.names()}
        for vocabulary in (PPO_NAMES, NET_NAMES, COLLECT_NAMES)
    )
    return PPOConfig.canonical(ppo), NetConfig.canonical(net), CollectConfig.canonical(collect)


def _all_names() -> set[str]:
    return PPO_NAMES.names() | NET_NAMES.names() | COLLECT_NAMES.names() | {"policy_kwargs", "normalize"}


def _unpack(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return `settings` with policy_kwargs and normalize replaced by their entries."""
    flat = {name: value for name, value in settings.items() if name not in ("policy_kwargs", "normalize")}
    for group, parts in (
        ("policy_kwargs", _policy_kwargs(settings.get("policy_kwargs"))),
        ("normalize", _normalize(settings.get("normalize"))),
    ):
        for name, value in parts.items():
            if name in flat:
                raise ConfigError(f"{group} and {name} both set {name}; give one of them")
            flat[name] = value
    return flat


def _policy_kwargs(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    mapping = as_mapping(literal(value) if isinstance(value, str) else value)
    if mapping is None:
        raise ConfigError(f"policy_kwargs is {value!r}; write dict(net_arch=[64, 64])")
    return mapping


def _normalize(value: Any) -> dict[str, Any]:
    """Return the settings of the zoo's normalize: True for both, or VecNormalize's arguments as a dict or its text."""
    if value is None:
        return {}
    try:
        both = boolean(value)
    except (TypeError, ValueError):
        mapping = as_mapping(literal(value) if isinstance(value, str) else value)
        if mapping is None:
            raise ConfigError(f"normalize is {value!r}; write true, false or dict(norm_obs=True)") from None
        return {"norm_obs": True, "norm_reward": True, **mapping}
    return {"norm_obs": both, "norm_reward": both}


_RUN_LENGTH = ("total_steps", "n_timesteps", "total_timesteps")
_NOT_SUPPORTED = (
    "env_wrapper",
    "vec_env_wrapper",
    "frame_stack",
    "callback",
    "env_kwargs",
    "monitor_kwargs",
)


def read_settings(path: Path, env_id: str | None) -> dict[str, Any]:
    """Return the settings in a YAML file: a flat list, or RL Zoo's file with one list per env id.

    `preset` and `total_steps` may be among them (the zoo's n_timesteps becomes total_steps); the others are for
    `split_settings`. From a zoo file the entry of `env_id` is used, or `default`.
    """
    content = _load(path)
    if all(isinstance(entry, Mapping) for entry in content.values()) and not set(content) & _all_names():
        content = _entry_of(content, env_id, path)
    settings = {str(name): value for name, value in content.items() if value is not None or name not in _NOT_SUPPORTED}
    for name in _NOT_SUPPORTED:
        if name in settings:
            raise ConfigError(f"{path}: {name} is not supported; wrap the env in Python and pass that")
    policy = settings.pop("policy", "MlpPolicy")
    if policy not in POLICIES:
        raise ConfigError(f"{path}: policy is {policy!r}; it must be one of {', '.join(POLICIES)}")
    return _with_total_steps(POLICIES[policy] | settings, path)


def zoo_entry(path: Path, env_id: str) -> dict[str, Any]:
    """Return the unchanged entry of an env in a zoo file."""
    return {str(name): value for name, value in _entry_of(_load(path), env_id, path).items()}


def _with_total_steps(settings: dict[str, Any], path: Path) -> dict[str, Any]:
    names = [name for name in _RUN_LENGTH if name in settings]
    if len(names) > 1:
        raise ConfigError(f"{path}: {names[0]} and {names[1]} both set the length of the run; give one of them")
    for name in names:
        value = settings.pop(name)
        try:
            steps = whole_number(float(value) if isinstance(value, str) else value)
        except (TypeError, ValueError, OverflowError):
            steps = 0
        if steps < 1:
            raise ConfigError(f"{path}: {name} is {value!r}; it must be a whole number, at least 1")
        settings["total_steps"] = steps
    return settings


def _entry_of(content: dict[Any, Any], env_id: str | None, path: Path) -> dict[Any, Any]:
    for name in (env_id, "default"):
        if name in content and (entry := as_mapping(content[name])) is not None:
            return entry
    raise ConfigError(f"{path} has settings for {', '.join(map(str, content))} but none for {env_id!r} and no default")


def _load(path: Path) -> dict[Any, Any]:
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as why:
        raise ConfigError(f"cannot read settings from {path}: {' '.join(str(why).split())}") from why
    content = as_mapping({} if loaded is None else loaded)  # an empty file changes nothing
    if content is None:
        raise ConfigError(f"{path} contains {type(loaded).__name__}; it must be a mapping of names to values")
    if not content:
        raise ConfigError(f"{path} contains no settings")
    return content
