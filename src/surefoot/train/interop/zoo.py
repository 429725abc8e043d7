"""RL Zoo's hyperparameters as settings of ours: what has a name here is taken over, and everything else is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surefoot.data.kinds import as_mapping, literal, whole_number
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.nets.config import POLICIES, NetConfig
from surefoot.train.config import CollectConfig, split_settings, zoo_entry

_WHY = {
    "env_wrapper": "wrap the env in a function of your own and train that: module:function",
    "vec_env_wrapper": "wrap the env in a function of your own and train that: module:function",
    "frame_stack": "our Atari worlds stack four frames; elsewhere use gymnasium.wrappers.FrameStackObservation",
    "callback": "callbacks are functions here; see the page on coming from SB3",
    "env_kwargs": "give them to the command: --env-arg KEY=VALUE",
    "monitor_kwargs": "episodes are always counted",
    "rollout_buffer_class": "there is one kind of rollout",
    "rollout_buffer_kwargs": "there is one kind of rollout",
    "optimizer_class": "say optimizer=adamw, sgd or rmsprop",
    "optimizer_kwargs": "say adam_eps= and weight_decay=",
    "features_extractor_class": "pass a torso of your own to the policy",
    "features_extractor_kwargs": "pass a torso of your own to the policy",
    "lstm_hidden_size": "say memory_size",
}


def read_zoo(path: Path, env: str) -> tuple[dict[str, Any], list[str]]:
    """What `surefoot train --config` needs for an env's entry, and a sentence for each key that is not taken over."""
    entry = zoo_entry(path, env)
    settings: dict[str, Any] = {}
    left: list[str] = []
    policy = entry.pop("policy", "MlpPolicy")
    if policy in POLICIES:
        settings |= POLICIES[policy]
    else:
        left.append(f"policy: {policy!r} is none of {', '.join(POLICIES)}")
    total = _steps(path, entry.pop("n_timesteps", None))
    kwargs = entry.pop("policy_kwargs", None)
    for name, value in (*entry.items(), *_inner(path, kwargs).items()):
        if value is None:
            continue
        try:
            split_settings({name: value})
        except ConfigError as why:
            left.append(f"{name}: {_WHY.get(name, why)}")
        else:
            settings[name] = value
    result: dict[str, Any] = {"preset": "sb3", **({} if total is None else {"total_steps": total})}
    ppo, net, collect = split_settings(settings)
    for config, changes in ((PPOConfig(), ppo), (NetConfig(), net), (CollectConfig(), collect)):
        plain, changed = config.to_json(), config.replace(**changes).to_json()
        result |= {name: _short(x) for name, x in changed.items() if name in changes or x != plain[name]}
    return result, left


def _short(value: Any) -> Any:
    match value:
        case {"kind": "linear", "start": start, "end": end}:
            return f"lin_{start:g}" + (f"_{end:g}" if end else "")
        case _:
            return value


def _inner(path: Path, kwargs: Any) -> dict[str, Any]:
    if kwargs is None:
        return {}
    mapping = as_mapping(literal(kwargs) if isinstance(kwargs, str) else kwargs)
    if mapping is None:
        raise ConfigError(f"{path}: policy_kwargs is {kwargs!r}; write dict(net_arch=[64, 64])")
    return {str(name): value for name, value in mapping.items()}


def _steps(path: Path, value: Any) -> int | None:
    if value is None:
        return None
    try:
        return whole_number(float(value) if isinstance(value, str) else value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{path}: n_timesteps is {value!r}; it must be a whole number") from None
