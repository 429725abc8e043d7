"""A vec env as a `World`, and the built-in world that replaces a vec env of unchanged Gymnasium envs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from surefoot.compat.sb3.engine.policies import ROWS, action_of
from surefoot.compat.sb3.record.monitor import Monitor
from surefoot.compat.sb3.spaces import get_flattened_obs_dim, is_image_space
from surefoot.compat.sb3.vec_env.base import VecEnv
from surefoot.compat.sb3.vec_env.dummy import DummyVecEnv
from surefoot.compat.sb3.vec_env.normalize import VecNormalize
from surefoot.data.spaces import Box
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.envs.register import own_worlds

OnStep = Callable[[Any, np.ndarray, np.ndarray, list[dict[str, Any]]], None]
"""Called after each step with (new observations, rewards, dones, infos)."""


class VecEnvWorld(World):
    """Steps a vec env. With `rows`, observations are rows of floats as `FlattenExtractor` would make them.

    The first `reset` returns `last_obs` if it is not None: a training that continues does not reset its envs.
    """

    inexact = "a VecEnv cannot save its state"

    def __init__(self, env: VecEnv, *, rows: bool, last_obs: Any, masks: bool, on_step: OnStep) -> None:
        self.env, self.num_envs, self.name = env, env.num_envs, type(env.unwrapped).__name__
        self.rows, self.masks, self.on_step = rows, masks, on_step
        self.last_obs: Any = last_obs
        self.action = action_of(env.action_space)
        space = env.observation_space
        self.parts: dict[str, Any] = dict(space.spaces) if isinstance(space, spaces.Dict) else {ROWS: space}
        if rows:
            width = sum(get_flattened_obs_dim(part) for part in self.parts.values())
            self.observation = {ROWS: Box((width,))}
        else:
            kinds = {name: np.zeros((), _stored(part.dtype)).dtype.name for name, part in self.parts.items()}
            self.observation = {name: Box(_shape(part), dtype=kinds[name]) for name, part in self.parts.items()}

    def reset(self, seed: int) -> View:
        """Return the current observations; the envs were seeded by the model."""
        if self.last_obs is None:
            self.last_obs = self.env.reset()
        return self._view(self.last_obs)

    def step(self, action: np.ndarray) -> Step:
        obs, rewards, dones, infos = self.env.step(action)
        self.last_obs, dones = obs, np.asarray(dones, bool)
        truncated, final = np.zeros(self.num_envs, bool), None
        for i in dones.nonzero()[0].tolist():
            info = infos[i] if i < len(infos) else {}
            truncated[i] = bool(info.get("TimeLimit.truncated", False)) and "terminal_observation" in info
            if truncated[i]:
                final = final or {name: part.copy() for name, part in self._encode(obs, self.num_envs).items()}
                for name, part in self._encode(info["terminal_observation"], 1).items():
                    final[name][i] = part[0]
        self.on_step(obs, rewards, dones, infos)
        reward = np.asarray(rewards, np.float64).reshape(self.num_envs)
        terminated, valid = dones & ~truncated, np.ones(self.num_envs, bool)
        return Step(
            view=self._view(obs),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            valid=valid,
            final_obs=final,
        )

    def state(self) -> dict[str, Any]:
        """Return {}: the envs cannot be saved."""
        return {}

    def set_state(self, state: dict[str, Any]) -> View:
        """Return the current view."""
        return self._view(self.last_obs)

    def _view(self, obs: Any) -> View:
        mask = None
        if self.masks:
            mask = np.stack([np.asarray(m, bool).ravel() for m in self.env.env_method("action_masks")])
        return View(obs=self._encode(obs, self.num_envs), action_mask=mask)

    def _encode(self, obs: Any, count: int) -> Arrays:
        parts = obs if isinstance(obs, dict) else {ROWS: obs}
        if not self.rows:
            return {
                name: np.asarray(parts[name], _stored(space.dtype)).reshape(count, *_shape(space))
                for name, space in self.parts.items()
            }
        rows = [row_of(np.asarray(parts[name]), space, count) for name, space in self.parts.items()]
        return {ROWS: np.ascontiguousarray(rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1))}


class NormalizedWorld(World):
    """A built-in world behind `VecNormalize`: its statistics change in each step, as if the vec env were stepped."""

    inexact = "VecNormalize is not saved with the world"

    def __init__(self, world: World, normalize: VecNormalize) -> None:
        self.world, self.normalize = world, normalize
        self.num_envs, self.name, self.action = world.num_envs, world.name, world.action
        self.observation = {ROWS: Box(world.observation[ROWS].shape)}
        self.returns = np.zeros(world.num_envs)
        """Sums of the rewards before scaling, for the log."""

    def reset(self, seed: int) -> View:
        """Start new episodes."""
        view = self.world.reset(seed)
        self.returns[:] = 0.0
        return View(obs={ROWS: self.normalize.after_reset(view.obs[ROWS])})

    def step(self, action: np.ndarray) -> Step:
        step = self.world.step(action)
        ended = step.terminated | step.truncated
        self.returns += step.reward
        whole = np.where(ended, self.returns, np.nan)
        self.returns[ended] = 0.0
        obs, reward = self.normalize.after_step(step.view.obs[ROWS], step.reward, ended)
        final = None if step.final_obs is None else {ROWS: self.normalize.normalize_obs(step.final_obs[ROWS])}
        stats = {**step.stats, "whole_return": whole}
        scaled = np.asarray(reward, np.float64)
        return replace(step, view=View(obs={ROWS: obs}), reward=scaled, final_obs=final, stats=stats)

    def state(self) -> dict[str, Any]:
        """Return the state of the world inside."""
        return self.world.state()

    def set_state(self, state: dict[str, Any]) -> View:
        """Restore the state of the world inside."""
        return View(obs={ROWS: self.normalize.normalize_obs(self.world.set_state(state).obs[ROWS])})


def row_of(x: np.ndarray, space: Any, count: int) -> np.ndarray:
    """Return observations of one space as float32 rows: choices one-hot, images divided by 255."""
    if isinstance(space, spaces.Discrete):
        return np.eye(int(space.n), dtype=np.float32)[x.reshape(count).astype(np.int64)]
    if isinstance(space, spaces.MultiDiscrete):
        columns = x.reshape(count, -1).astype(np.int64)
        each = [np.eye(int(n), dtype=np.float32)[columns[:, k]] for k, n in enumerate(space.nvec.ravel())]
        return np.concatenate(each, axis=1)
    rows = x.reshape(count, -1).astype(np.float32)
    return rows / np.float32(255.0) if is_image_space(space) else rows


def _stored(dtype: Any) -> Any:
    """Return the dtype in which observations are stored; float64 is learned from as float32."""
    return np.float32 if dtype == np.float64 else dtype


def _shape(space: Any) -> tuple[int, ...]:
    return () if isinstance(space, spaces.Discrete) else tuple(space.shape)


def built_in_world(env: VecEnv) -> World | None:
    """Return a built-in world that does what the vec env does, or None.

    There is one if the vec env is a `DummyVecEnv` of unchanged Gymnasium envs of a known id, without other wrappers than a
    `Monitor` that writes no file, and `VecNormalize` around it.
    """
    if type(env) is VecNormalize:
        inner = built_in_world(env.venv)
        return None if inner is None else NormalizedWorld(inner, env)
    if type(env) is not DummyVecEnv:
        return None
    ids = {_unchanged_id(single) for single in env.envs}
    name = ids.pop()
    if ids or name is None or name not in own_worlds():
        return None
    world = own_worlds()[name](env.num_envs)
    return world if list(world.observation) == [ROWS] else None


def _unchanged_id(env: Any) -> str | None:
    if type(env) is Monitor:
        if env.results_writer is not None or env.info_keywords or env.reset_keywords or not env.allow_early_resets:
            return None
        env = env.env
    spec = env.spec
    while type(env) in (TimeLimit, OrderEnforcing, PassiveEnvChecker):
        env = env.env
    if isinstance(env, gym.Wrapper) or spec is None or spec.id not in gym.registry:
        return None
    registered: Any = gym.registry[spec.id]
    kwargs = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
    if spec.max_episode_steps != registered.max_episode_steps or spec.additional_wrappers or env.render_mode == "human":
        return None
    if kwargs != {n: v for n, v in registered.kwargs.items() if n != "render_mode"}:
        return None
    # Constants that somebody set, such as env.unwrapped.gravity = 5, make it another env.
    fresh = gym.make(spec.id).unwrapped
    constants = {n: v for n, v in vars(fresh).items() if isinstance(v, int | float) and not n.startswith("_")}
    return spec.id if all(getattr(env, n, None) == v for n, v in constants.items()) else None
