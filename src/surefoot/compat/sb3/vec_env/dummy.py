"""`DummyVecEnv`: envs that are stepped one after the other in this process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from inspect import signature
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.compat.sb3.spaces import check_for_nested_spaces
from surefoot.compat.sb3.vec_env.base import VecEnv, VecEnvIndices, VecEnvObs, VecEnvStepReturn

Env = gym.Env[Any, Any]


def as_gymnasium(env: Any) -> Env:
    """Return a Gymnasium env; an env of the old gym is converted by shimmy."""
    if isinstance(env, gym.Env):
        return env
    if not any(base.__module__.partition(".")[0] == "gym" for base in type(env).__mro__):
        raise ValueError(f"{type(env).__name__} is not a gymnasium.Env; derive it from one")
    try:
        shimmy: Any = import_module("shimmy")
    except ImportError as why:
        raise ImportError("an env of the old gym needs shimmy: pip install 'shimmy>=2.0'") from why
    warnings.warn("an env of the old gym is converted; derive it from gymnasium.Env instead", stacklevel=2)
    new_api = "seed" in signature(env.unwrapped.reset).parameters
    return (shimmy.GymV26CompatibilityV0 if new_api else shimmy.GymV21CompatibilityV0)(env=env)


def is_wrapped(env: Env, wrapper_class: type[Any]) -> bool:
    """Return whether one of the wrappers of `env` is a `wrapper_class`."""
    return unwrap_wrapper(env, wrapper_class) is not None


def unwrap_wrapper(env: Any, wrapper_class: type[Any]) -> Any:
    """Return the outermost wrapper of `env` that is a `wrapper_class`; None if there is none."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, wrapper_class):
            return env
        env = env.env
    return None


def obs_space_info(space: gym.Space[Any]) -> tuple[list[Any], dict[Any, Any], dict[Any, Any]]:
    """Return (keys, {key: shape}, {key: dtype}) of the parts of an observation; the only key of a plain space is None."""
    check_for_nested_spaces(space)
    if isinstance(space, gym.spaces.Dict):
        parts: dict[Any, Any] = dict(space.spaces)
    elif isinstance(space, gym.spaces.Tuple):
        parts = dict(enumerate(space.spaces))
    else:
        assert not hasattr(space, "spaces"), f"{type(space).__name__} observations are not supported"
        parts = {None: space}
    return list(parts), {k: p.shape for k, p in parts.items()}, {k: p.dtype for k, p in parts.items()}


def dict_to_obs(space: gym.Space[Any], obs_dict: dict[Any, np.ndarray]) -> VecEnvObs:
    """Return the parts of an observation in the form of its space."""
    if isinstance(space, gym.spaces.Dict):
        return obs_dict
    if isinstance(space, gym.spaces.Tuple):
        return tuple(obs_dict[i] for i in range(len(space.spaces)))
    assert set(obs_dict) == {None}, "a plain space has one part"
    return obs_dict[None]


class DummyVecEnv(VecEnv):
    """Envs that are stepped one after the other. Each function of `env_fns` must build a new env."""

    def __init__(self, env_fns: Sequence[Callable[[], Any]]) -> None:
        self.envs: list[Env] = [as_gymnasium(make()) for make in env_fns]
        if len({id(env.unwrapped) for env in self.envs}) != len(self.envs):
            raise ValueError(
                "the functions returned the same env more than once; each call must build a new one, as in "
                "[lambda: gym.make(id) for _ in range(n)]"
            )
        env = self.envs[0]
        super().__init__(len(self.envs), env.observation_space, env.action_space)
        self.keys, shapes, dtypes = obs_space_info(env.observation_space)
        self.buf_obs = {key: np.zeros((self.num_envs, *shapes[key]), dtypes[key]) for key in self.keys}
        self.buf_dones = np.zeros(self.num_envs, bool)
        self.buf_rews = np.zeros(self.num_envs, np.float32)
        self.buf_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        for i, env in enumerate(self.envs):
            obs, reward, terminated, truncated, info = env.step(self.actions[i])
            self.buf_rews[i], self.buf_dones[i] = reward, terminated or truncated
            info["TimeLimit.truncated"] = truncated and not terminated
            if self.buf_dones[i]:
                info["terminal_observation"] = obs
                obs, self.reset_infos[i] = env.reset()
            self.buf_infos[i] = info
            self._save_obs(i, obs)
        # Copies: the caller may store what it gets, and the buffers are written again in the next step.
        return self._obs_from_buf(), self.buf_rews.copy(), self.buf_dones.copy(), list(self.buf_infos)

    def reset(self) -> VecEnvObs:
        for i, env in enumerate(self.envs):
            options = {"options": self._options[i]} if self._options[i] else {}
            obs, self.reset_infos[i] = env.reset(seed=self._seeds[i], **options)
            self._save_obs(i, obs)
        self._reset_seeds()
        self._reset_options()
        return self._obs_from_buf()

    def close(self) -> None:
        for env in self.envs:
            env.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        if self.render_mode != "rgb_array":
            warnings.warn(f"pictures need render_mode='rgb_array'; these envs have {self.render_mode!r}", stacklevel=2)
            return [None] * self.num_envs
        return [env.render() for env in self.envs]  # type: ignore[misc]  # an env may return any frame

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [env.get_wrapper_attr(attr_name) for env in self._get_target_envs(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        for env in self._get_target_envs(indices):
            setattr(env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        envs = self._get_target_envs(indices)
        return [env.get_wrapper_attr(method_name)(*method_args, **method_kwargs) for env in envs]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        return [is_wrapped(env, wrapper_class) for env in self._get_target_envs(indices)]

    def _get_target_envs(self, indices: VecEnvIndices) -> list[Env]:
        chosen: Iterable[int] = self._get_indices(indices)
        return [self.envs[i] for i in chosen]

    def _save_obs(self, i: int, obs: Any) -> None:
        for key in self.keys:
            self.buf_obs[key][i] = obs if key is None else obs[key]

    def _obs_from_buf(self) -> VecEnvObs:
        if self.keys == [None]:
            return self.buf_obs[None].copy()
        return dict_to_obs(self.observation_space, {key: part.copy() for key, part in self.buf_obs.items()})
