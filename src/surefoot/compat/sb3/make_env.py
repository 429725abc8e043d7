"""SB3's `make_vec_env` and `make_atari_env`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from surefoot.compat.sb3.envs.atari import AtariWrapper
from surefoot.compat.sb3.record.monitor import Monitor
from surefoot.compat.sb3.vec_env import DummyVecEnv, VecEnv
from surefoot.compat.sb3.vec_env.dummy import as_gymnasium
from surefoot.compat.sb3.vec_env.dummy import is_wrapped as is_wrapped
from surefoot.compat.sb3.vec_env.dummy import unwrap_wrapper as unwrap_wrapper


def make_vec_env(
    env_id: str | Callable[..., Any],
    n_envs: int = 1,
    seed: int | None = None,
    start_index: int = 0,
    monitor_dir: str | os.PathLike[str] | None = None,
    wrapper_class: Callable[[Any], Any] | None = None,
    env_kwargs: dict[str, Any] | None = None,
    vec_env_cls: type[Any] | None = None,
    vec_env_kwargs: dict[str, Any] | None = None,
    monitor_kwargs: dict[str, Any] | None = None,
    wrapper_kwargs: dict[str, Any] | None = None,
) -> VecEnv:
    """Return `n_envs` envs of an id or a function, each in a `Monitor`, as a `DummyVecEnv` or `vec_env_cls`.

    `monitor_dir` gets one monitor file per env. `wrapper_class` wraps each env outside of its monitor.
    """
    kwargs: dict[str, Any] = env_kwargs or {}
    pictures: dict[str, Any] = {"render_mode": "rgb_array", **kwargs}

    def make_env(rank: int) -> Callable[[], Any]:
        def build() -> Any:
            if isinstance(env_id, str):
                try:
                    env = gym.make(env_id, **pictures)
                except TypeError:
                    env = gym.make(env_id, **kwargs)
            else:
                env = as_gymnasium(env_id(**kwargs))
            if seed is not None:
                env.action_space.seed(seed + rank)
            path = None if monitor_dir is None else os.path.join(monitor_dir, str(rank))
            if path is not None:
                os.makedirs(os.fspath(monitor_dir or ""), exist_ok=True)
            env = Monitor(env, filename=path, **(monitor_kwargs or {}))
            return env if wrapper_class is None else wrapper_class(env, **(wrapper_kwargs or {}))

        return build

    makers = [make_env(start_index + i) for i in range(n_envs)]
    vec_env = (vec_env_cls or DummyVecEnv)(makers, **(vec_env_kwargs or {}))
    vec_env.seed(seed)
    return vec_env


def make_atari_env(
    env_id: str | Callable[..., Any],
    n_envs: int = 1,
    seed: int | None = None,
    start_index: int = 0,
    monitor_dir: str | os.PathLike[str] | None = None,
    wrapper_kwargs: dict[str, Any] | None = None,
    *args: Any,
    **kwargs: Any,
) -> VecEnv:
    """Return `make_vec_env` with `AtariWrapper`, whose arguments are `wrapper_kwargs`; the rest are those of `make_vec_env`."""
    kwargs["wrapper_kwargs"] = wrapper_kwargs
    return make_vec_env(env_id, n_envs, seed, start_index, monitor_dir, AtariWrapper, *args, **kwargs)
