"""Entries of RL Zoo's hyperparams/ppo.yml as models of `surefoot.sb3`: wrappers, normalization and stacked frames included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import ResizeObservation
from torch import nn

from surefoot.compat.sb3.functions import LinearSchedule
from surefoot.compat.sb3.make_env import make_vec_env
from surefoot.compat.sb3.paths import install
from surefoot.compat.sb3.ppo import PPO
from surefoot.compat.sb3.vec_env import VecFrameStack, VecNormalize
from surefoot.data.kinds import as_mapping, literal, whole_number
from surefoot.envs.gym.atari import is_atari, register_games
from surefoot.errors import ConfigError
from surefoot.train.config import zoo_entry

SCHEDULES = ("learning_rate", "clip_range", "clip_range_vf")
Wrapper = tuple[str, dict[str, Any]]


class FrameSkip(gym.Wrapper[Any, Any, Any, Any]):
    """RL Zoo's wrapper of that name: repeats each action `skip` times and sums the rewards."""

    def __init__(self, env: gym.Env[Any, Any], skip: int = 4) -> None:
        super().__init__(env)
        self.skip = skip

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total = 0.0
        for _ in range(self.skip):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info  # pyright: ignore[reportPossiblyUnboundVariable]  # skip is at least 1


class YAMLCompatResizeObservation(ResizeObservation):
    """RL Zoo's wrapper of that name: YAML has lists, Gymnasium wants a tuple."""

    def __init__(self, env: gym.Env[Any, Any], shape: list[int]) -> None:
        super().__init__(env, (shape[0], shape[1]))


@dataclass(frozen=True, kw_only=True)
class ZooRun:
    """One entry, read."""

    env: str
    steps: int
    envs: int
    policy: str
    settings: dict[str, Any]
    """Arguments of `PPO`."""
    wrappers: tuple[Wrapper, ...] = ()
    vec_wrappers: tuple[Wrapper, ...] = ()
    normalize: dict[str, Any] | None = None
    """Arguments of `VecNormalize`; None does not normalize."""
    frame_stack: int | None = None


def read_zoo_run(path: Path, env: str) -> ZooRun:
    """Return the entry of an env: its own, that of all Atari games, or the default one. Nothing in the file is executed."""
    entry = zoo_entry(path, env)
    if is_atari(env) and "env_wrapper" not in entry:
        entry = zoo_entry(path, "atari")
    normalize = entry.pop("normalize", None)
    if isinstance(normalize, str):
        normalize = literal(normalize)
    run = ZooRun(
        env=env,
        steps=whole_number(float(entry.pop("n_timesteps", 1e6))),
        envs=int(entry.pop("n_envs", 1)),
        policy=entry.pop("policy", "MlpPolicy"),
        wrappers=_wrappers(path, entry.pop("env_wrapper", None)),
        vec_wrappers=_wrappers(path, entry.pop("vec_env_wrapper", None)),
        normalize=None if not normalize else dict(normalize) if isinstance(normalize, Mapping) else {},
        frame_stack=entry.pop("frame_stack", None),
        settings={name: _setting(name, value) for name, value in entry.items() if value is not None},
    )
    if not run.policy.endswith("Policy"):
        raise ConfigError(f"{path}: policy of {env} is {run.policy!r}; it must be a name such as 'MlpPolicy'")
    return run


def make_model(run: ZooRun, *, seed: int = 0, verbose: int = 1) -> PPO:
    """Return a model for an entry, in its wrapped vec env."""
    if is_atari(run.env):
        register_games(run.env)
    wrap = _wrapping(run.wrappers) if run.wrappers else None
    env: Any = make_vec_env(current_id(run.env), n_envs=run.envs, seed=seed, wrapper_class=wrap)
    if run.vec_wrappers:
        env = _wrapping(run.vec_wrappers)(env)
    if run.normalize is not None:
        # Rewards are scaled by discounted returns, so both discounts must agree.
        env = VecNormalize(env, **{"gamma": run.settings.get("gamma", 0.99), **run.normalize})
    if run.frame_stack is not None:
        env = VecFrameStack(env, n_stack=run.frame_stack)
    return PPO(run.policy, env, seed=seed, verbose=verbose, **run.settings)


def current_id(env: str) -> str:
    """Return an env id, or the newest version of the same env if Gymnasium no longer has this one."""
    # Removed versions of MuJoCo are functions that raise an error.
    if env in gym.registry and isinstance(gym.registry[env].entry_point, str):
        return env
    name = env.rpartition("-v")[0]
    newest = max(
        (s.version or 0 for s in gym.registry.values() if s.name == name and s.namespace is None), default=None
    )
    return env if newest is None else f"{name}-v{newest}"


def _setting(name: str, value: Any) -> Any:
    """Return a setting as `PPO` takes it: lin_3e-4 is a schedule, and texts such as dict(net_arch=[64]) are parsed."""
    if name in SCHEDULES and isinstance(value, str):
        kind, _, start = value.partition("_")
        return LinearSchedule(float(start), 0.0, 1.0) if kind == "lin" else float(value)
    if name != "policy_kwargs":
        return value
    kwargs = dict(literal(value) if isinstance(value, str) else value)
    if isinstance(kwargs.get("activation_fn"), str):
        kwargs["activation_fn"] = getattr(nn, kwargs["activation_fn"])
    return kwargs


def _wrappers(path: Path, value: Any) -> tuple[Wrapper, ...]:
    """Return (dotted name, arguments) of wrappers, which are one name, or a list of names or {name: arguments}."""
    wrappers: list[Wrapper] = []
    for each in value if isinstance(value, list) else [] if value is None else [value]:
        if isinstance(each, str):
            wrappers.append((each, {}))
        elif (pair := as_mapping(each)) is not None and len(pair) == 1:
            ((name, arguments),) = pair.items()
            wrappers.append((str(name), dict(arguments or {})))
        else:
            raise ConfigError(
                f"{path}: {each!r} is not a wrapper; write package.module.Class, with its arguments below it"
            )
    return tuple(wrappers)


def _wrapping(wrappers: tuple[Wrapper, ...]) -> Callable[[Any], Any]:
    kinds = [(_class_of(name), arguments) for name, arguments in wrappers]

    def wrap(env: Any) -> Any:
        for kind, arguments in kinds:
            env = kind(env, **arguments)
        return env

    return wrap


def _class_of(name: str) -> Any:
    """Return the class of a dotted name; those of SB3, sb3-contrib and RL Zoo are this package's."""
    module, _, kind = name.rpartition(".")
    if module == "rl_zoo3.wrappers" and kind in ("FrameSkip", "YAMLCompatResizeObservation"):
        module = __name__
    install()
    for theirs, ours in (("stable_baselines3", "surefoot.sb3"), ("sb3_contrib", "surefoot.sb3_contrib")):
        module = ours + module.removeprefix(theirs) if module.split(".")[0] == theirs else module
    try:
        return getattr(import_module(module), kind)
    except (ImportError, AttributeError, ValueError) as why:
        raise ConfigError(f"the wrapper {name} cannot be imported: {why}; install its package") from why
