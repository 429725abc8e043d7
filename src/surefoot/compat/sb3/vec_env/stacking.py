"""Stacked observations: the last frames of each env in one observation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.compat.sb3.spaces import is_image_space, is_image_space_channels_first
from surefoot.compat.sb3.vec_env.base import VecEnv, VecEnvStepReturn, VecEnvWrapper

Order = str | Mapping[str, str | None] | None


class StackedObservations:
    """The last `n_stack` observations of N envs, side by side on one axis.

    `channels_order` is "first" or "last": the axis to stack on. None takes the channel axis of images, else the last.
    """

    def __init__(self, num_envs: int, n_stack: int, observation_space: Any, channels_order: Order = None) -> None:
        self.n_stack, self.observation_space = n_stack, observation_space
        if isinstance(observation_space, gym.spaces.Dict):
            orders = channels_order if isinstance(channels_order, Mapping) else None
            self.sub_stacked_observations = {
                key: StackedObservations(num_envs, n_stack, part, channels_order if orders is None else orders[key])
                for key, part in observation_space.spaces.items()
            }
            parts = {key: stack.stacked_observation_space for key, stack in self.sub_stacked_observations.items()}
            self.stacked_observation_space: gym.Space[Any] = gym.spaces.Dict(parts)
            return
        if not isinstance(observation_space, gym.spaces.Box):
            raise TypeError(f"only Box and Dict observations can be stacked, not {observation_space}")
        if isinstance(channels_order, Mapping):
            raise TypeError("channels_order is a dict but the observations are not; pass 'first' or 'last'")
        axes = self.compute_stacking(n_stack, observation_space, channels_order)
        self.channels_first, self.stack_dimension, self.stacked_shape, self.repeat_axis = axes
        low, high = (
            np.repeat(x, n_stack, axis=self.repeat_axis) for x in (observation_space.low, observation_space.high)
        )
        dtype: Any = observation_space.dtype
        self.stacked_observation_space = gym.spaces.Box(low, high, dtype=dtype)
        self.stacked_obs = np.zeros((num_envs, *self.stacked_shape), dtype)

    @staticmethod
    def compute_stacking(
        n_stack: int, observation_space: gym.spaces.Box, channels_order: str | None = None
    ) -> tuple[bool, int, tuple[int, ...], int]:
        """Return (channels first, axis of a batch to stack on, shape of a stack, axis of one observation)."""
        assert channels_order in ("first", "last", None), f"channels_order is {channels_order!r}; use 'first' or 'last'"
        first = channels_order == "first"
        if channels_order is None and is_image_space(observation_space):
            first = is_image_space_channels_first(observation_space)
        axis = 0 if first else -1
        shape = list(observation_space.shape)
        shape[axis] *= n_stack
        return first, 1 if first else -1, tuple(shape), axis

    def reset(self, observation: Any) -> Any:
        """Clear the stacks, add the first observations [N, …], and return the stacks."""
        if isinstance(observation, dict):
            return {key: self.sub_stacked_observations[key].reset(part) for key, part in observation.items()}
        self.stacked_obs[...] = 0
        self._newest(observation.shape[self.stack_dimension])[...] = observation
        return self.stacked_obs

    def update(self, observations: Any, dones: np.ndarray, infos: list[dict[str, Any]]) -> tuple[Any, list[Any]]:
        """Add observations and return (stacks, infos). A finished episode's stack goes to its terminal observation."""
        if isinstance(observations, dict):
            return self._update_parts(observations, dones, infos)
        width = observations.shape[self.stack_dimension]
        self.stacked_obs = np.roll(self.stacked_obs, -width, axis=self.stack_dimension)
        for i in np.flatnonzero(dones):
            if "terminal_observation" in infos[i]:
                stack = self.stacked_obs[i]
                older = stack[:-width] if self.channels_first else stack[..., :-width]
                parts = (older, infos[i]["terminal_observation"])
                infos[i]["terminal_observation"] = np.concatenate(parts, axis=self.repeat_axis)
            else:
                warnings.warn("an episode ended without a terminal_observation in its info", stacklevel=2)
            self.stacked_obs[i] = 0
        self._newest(width)[...] = observations
        return self.stacked_obs, infos

    def _update_parts(self, obs: dict[str, Any], dones: np.ndarray, infos: list[Any]) -> tuple[Any, list[Any]]:
        last, stacked = "terminal_observation", dict[str, Any]()
        for key, part in obs.items():
            part_infos = [{last: info[last][key]} if last in info else {} for info in infos]
            stacked[key], part_infos = self.sub_stacked_observations[key].update(part, dones, part_infos)
            for info, part_info in zip(infos, part_infos, strict=True):
                if last in info:
                    info[last] = {**info[last], key: part_info[last]}
        return stacked, infos

    def _newest(self, width: int) -> np.ndarray:
        return self.stacked_obs[:, -width:] if self.channels_first else self.stacked_obs[..., -width:]


class VecFrameStack(VecEnvWrapper):
    """A vec env whose observations are the last `n_stack` frames; see `StackedObservations`."""

    def __init__(self, venv: VecEnv, n_stack: int, channels_order: Order = None) -> None:
        assert isinstance(venv.observation_space, gym.spaces.Box | gym.spaces.Dict), (
            f"VecFrameStack needs Box or Dict observations, not {venv.observation_space}"
        )
        self.stacked_obs = StackedObservations(venv.num_envs, n_stack, venv.observation_space, channels_order)
        self.n_stack = n_stack
        super().__init__(venv, observation_space=self.stacked_obs.stacked_observation_space)

    def reset(self) -> Any:
        return _copied(self.stacked_obs.reset(self.venv.reset()))

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        stacked, infos = self.stacked_obs.update(obs, dones, infos)
        return _copied(stacked), rewards, dones, infos


def _copied(obs: Any) -> Any:
    """Return a copy: the newest frame of a stack is written in place, and callers store observations."""
    return {key: part.copy() for key, part in obs.items()} if isinstance(obs, dict) else obs.copy()
