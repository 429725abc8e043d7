"""Import of RL Zoo's hyperparameter files. Keys without an equivalent setting are reported, never dropped silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surefoot.data.kinds import as_mapping, literal, whole_number
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.schedule_text import as_zoo_text
from surefoot.nets.config import POLICIES, NetConfig
from surefoot.train.config import CollectConfig, split_settings, zoo_entry

# Keys of RL Zoo without an equivalent setting, with the replacement that the message names.
_ADVICE = {
    "env_wrapper": "write a function that returns the wrapped env and pass it as module:function",
    "vec_env_wrapper": "write a function that returns the wrapped env and pass it as module:function",
    "frame_stack": "the Atari worlds stack four frames; for other envs use gymnasium.wrappers.FrameStackObservation",
    "callback": "callbacks are plain functions; see docs/how-to/from-sb3.md",
    "env_kwargs": "pass --env-arg KEY=VALUE on the command line",
    "monitor_kwargs": "episodes are always recorded",
    "rollout_buffer_class": "there is only one type of rollout",
    "rollout_buffer_kwargs": "there is only one type of rollout",
    "optimizer_class": "set optimizer=adamw, sgd or rmsprop",
    "optimizer_kwargs": "set adam_eps= and weight_decay=",
    "features_extractor_class": "pass your module to the policy as torso=",
    "features_extractor_kwargs": "pass your module to the policy as torso=",
    "lstm_hidden_size": "set memory_size",
}


def read_zoo(path: Path, env: str) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of an env's entry for `surefoot train --config`, and a sentence for each key without a setting."""
    entry = zoo_entry(path, env)
    settings: dict[str, Any] = {}
    unsupported: list[str] = []
    policy = entry.pop("policy", "MlpPolicy")
    if policy in POLICIES:
        settings |= POLICIES[policy]
    else:
        unsupported.append(f"policy: {policy!r} is not one of {', '.join(POLICIES)}")
    total = _steps(path, entry.pop("n_timesteps", None))
    kwargs = entry.pop("policy_kwargs", None)
    for name, value in (*entry.items(), *_inner(path, kwargs).items()):
        # RL Zoo writes null for "use the default".
        if value is None:
            continue
        try:
            split_settings({name: value})
        except ConfigError as why:
            unsupported.append(f"{name}: {_ADVICE.get(name, why)}")
        else:
            settings[name] = value
    # RL Zoo's values are changes to SB3's defaults, which the preset has.
    result: dict[str, Any] = {"preset": "sb3", **({} if total is None else {"total_steps": total})}
    ppo, net, collect = split_settings(settings)
    for config, changes in ((PPOConfig(), ppo), (NetConfig(), net), (CollectConfig(), collect)):
        plain, changed = config.to_json(), config.replace(**changes).to_json()
        result |= {name: as_zoo_text(x) for name, x in changed.items() if name in changes or x != plain[name]}
    return result, unsupported


def _inner(path: Path, kwargs: Any) -> dict[str, Any]:
    if kwargs is None:
        return {}
    # RL Zoo writes policy_kwargs as Python source, which `literal` parses without running it.
    mapping = as_mapping(literal(kwargs) if isinstance(kwargs, str) else kwargs)
    if mapping is None:
        raise ConfigError(f"{path}: policy_kwargs is {kwargs!r}; write dict(net_arch=[64, 64])")
    return {str(name): value for name, value in mapping.items()}


def _steps(path: Path, value: Any) -> int | None:
    if value is None:
        return None
    try:
        # YAML reads 1e6 (without a point) as text.
        return whole_number(float(value) if isinstance(value, str) else value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{path}: n_timesteps is {value!r}; it must be an integer") from None
