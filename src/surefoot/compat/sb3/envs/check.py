"""SB3's `check_env`: raises for what cannot work, warns about what may not work."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.compat.sb3.spaces import check_for_nested_spaces, is_image_space_channels_first
from surefoot.compat.sb3.vec_env import DummyVecEnv, VecCheckNan

UNCHECKED = (spaces.Sequence, spaces.Graph, spaces.OneOf)
"""Observation spaces that no policy takes; what the env returns is not checked."""


def check_env(env: Any, warn: bool = True, skip_render_check: bool = True) -> None:
    """Raise `AssertionError` or `TypeError` if an env breaks Gymnasium's interface; with `warn`, warn about what is risky.

    Args:
        env: The env.
        warn: Warn about spaces that do not work with PPO's policies, or not well.
        skip_render_check: Do not call `render`.
    """
    assert isinstance(env, gym.Env), f"{type(env).__name__} does not inherit from gymnasium.Env"
    for name in ("observation", "action"):
        space = getattr(env, f"{name}_space", None)
        assert isinstance(space, spaces.Space), f"the env's {name}_space is {space!r}; it must be a gymnasium space"
    observation, action = env.observation_space, env.action_space
    goal = hasattr(env.unwrapped, "compute_reward")
    if goal:
        print("the env has compute_reward, so it is checked as a goal env; rename the method if it is not one")
        assert isinstance(observation, spaces.Dict), (
            "a goal env needs Dict observations; rename compute_reward otherwise"
        )
    try:
        env.reset(seed=0)
    except TypeError as why:
        raise TypeError("reset() must accept a seed: def reset(self, *, seed=None, options=None)") from why
    parts = _parts(observation)
    if warn:
        for text in [*_observation_warnings(observation, parts), *_action_warnings(action)]:
            warnings.warn(text, UserWarning, stacklevel=2)
        if isinstance(action, spaces.Box):
            assert np.isfinite([action.low, action.high]).all(), "a continuous action space must have finite bounds"
        if any(isinstance(part, UNCHECKED) for part in (observation, *parts.values())):
            return
    _check_returned(env, observation, action, goal)
    if not skip_render_check:
        if warn and env.metadata.get("render_modes") is None:
            warnings.warn("env.metadata has no render_modes; render() may fail", UserWarning, stacklevel=2)
        if env.render_mode:
            env.render()
        env.close()
    try:
        check_for_nested_spaces(observation)
        _check_nan(env)
    except NotImplementedError:
        return  # there was a warning about the space


def _parts(space: Any) -> dict[Any, Any]:
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    return dict(enumerate(space.spaces)) if isinstance(space, spaces.Tuple) else {}


def _observation_warnings(space: Any, parts: dict[Any, Any]) -> list[str]:
    """Return one sentence for each property of an observation space that is not supported or unusual."""
    problems: list[str] = []
    if any(isinstance(part, spaces.Dict) for part in parts.values()):
        problems.append("Nested observation spaces are not supported; use one level of keys")
    if isinstance(space, spaces.Tuple):
        problems.append("Tuple observations are not supported; use a Dict")
    problems += [
        f"{kind.__name__} observations are not supported; what the env returns is not checked"
        for kind in UNCHECKED
        if any(isinstance(part, kind) for part in (space, *parts.values()))
    ]
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim > 1:
        problems.append("MultiDiscrete observations with several dimensions are not supported; flatten them")
    named = {f" {key!r}": part for key, part in parts.items()} if isinstance(space, spaces.Dict) else {"": space}
    for key, part in named.items():
        problems += _start_warnings(part, f"observation{key}")
        if isinstance(part, spaces.Box):
            problems += _box_warnings(part, f"the observation{key}")
    return problems


def _start_warnings(space: Any, name: str) -> list[str]:
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and np.any(np.asarray(space.start) != 0):
        return [f"the {name} space starts at {space.start}; SB3's policies count from 0, so use a wrapper"]
    return []


def _box_warnings(space: spaces.Box, name: str) -> list[str]:
    if len(space.shape) == 1:
        return []
    if len(space.shape) != 3:
        return [f"{name} is neither a vector nor an image: its shape is {space.shape}; flatten it"]
    problems: list[str] = []
    if space.dtype != np.uint8:
        problems.append(
            f"{name} looks like an image, but its dtype is {space.dtype}, not uint8; flatten it if it is none"
        )
    if np.any(space.low != 0) or np.any(space.high != 255):
        problems.append(f"{name} looks like an image, but its bounds are not 0 and 255, by which CnnPolicy normalizes")
    # Height and width, wherever the channels are.
    sizes = space.shape[1:] if is_image_space_channels_first(space) else space.shape[:2]
    if min(sizes) < 36:
        problems.append(f"{name} is {sizes[0]}x{sizes[1]}; CnnPolicy needs 36x36, or an extractor of yours")
    return problems


def _action_warnings(space: Any) -> list[str]:
    problems = _start_warnings(space, "action")
    if isinstance(space, spaces.Dict | spaces.Tuple):
        problems.append(f"{type(space).__name__} actions are not supported; flatten them with a wrapper")
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim > 1:
        problems.append("MultiDiscrete actions with several dimensions are not supported; flatten them")
    if isinstance(space, spaces.Box):
        if np.any(space.low != -1) or np.any(space.high != 1):
            problems.append("the bounds of the actions are not -1 and 1; policies learn best with these")
        if space.dtype != np.float32:
            problems.append(f"the dtype of the actions is {space.dtype}; float32 needs no conversion")
    return problems


def _check_returned(env: Any, observation: Any, action: Any, goal: bool) -> None:
    """Check what one `reset` and one `step` return."""
    returned = env.reset()
    assert isinstance(returned, tuple), "reset() must return (observation, info)"
    assert len(returned) == 2, f"reset() must return (observation, info), not {len(returned)} values"
    assert isinstance(returned[1], dict), f"reset() must return a dict as info, not {returned[1]!r}"
    _check_observation(returned[0], observation, "reset", goal)
    returned = env.step(action.sample())
    assert len(returned) == 5, (
        f"step() must return (observation, reward, terminated, truncated, info), not {len(returned)} values"
    )
    obs, reward, terminated, truncated, info = returned
    _check_observation(obs, observation, "step", goal)
    assert isinstance(reward, float | int), f"step() must return a float as reward, not {type(reward).__name__}"
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        assert isinstance(flag, bool), f"step() must return a bool as {name}, not {flag!r}"
    assert isinstance(info, dict), f"step() must return a dict as info, not {info!r}"
    if goal:
        _check_goal_reward(env, obs, float(reward), info)


def _check_observation(obs: Any, space: Any, method: str, goal: bool) -> None:
    if not isinstance(space, spaces.Dict):
        _check_part(obs, space, method)
        return
    if goal:
        missing = {"observation", "achieved_goal", "desired_goal"} - space.spaces.keys()
        assert not missing, f"the observation space of a goal env lacks {', '.join(sorted(missing))}"
    assert isinstance(obs, dict), f"{method}() must return a dict as observation, not {type(obs).__name__}"
    assert obs.keys() == space.spaces.keys(), (
        f"{method}() returned an observation with the keys {list(obs)}; the space has {list(space.spaces)}"
    )
    for key, part in space.spaces.items():
        try:
            _check_part(obs[key], part, method)
        except AssertionError as why:
            raise AssertionError(f"Error while checking key={key}: {why}") from why


def _check_part(obs: Any, space: Any, method: str) -> None:
    dtype: Any = space.dtype
    name = f"the observation of {method}()"
    if not isinstance(space, spaces.Tuple):
        assert not isinstance(obs, tuple), f"{name} is a tuple; it must be one value"
    if isinstance(space, spaces.Discrete):
        assert np.issubdtype(type(obs), np.integer), f"{name} is {obs!r}; it must be an int"
    elif not isinstance(space, spaces.Dict | spaces.Tuple):
        assert isinstance(obs, np.ndarray), f"{name} is of type {type(obs).__name__}; it must be a numpy array"
    if isinstance(obs, np.ndarray):
        assert obs.shape == space.shape, (
            f"{name} does not fit {space}. Expected: {space.shape}, actual shape: {obs.shape}"
        )
        assert np.can_cast(obs.dtype, dtype), (
            f"{name} does not fit {space}. Expected: {dtype}, actual dtype: {obs.dtype}"
        )
        if isinstance(space, spaces.Box):
            outside = np.argwhere((obs < space.low) | (obs > space.high))
            lines = [
                f"Expected: {space.low[i]} <= obs[{','.join(map(str, i))}] <= {space.high[i]}, actual value: {obs[i]}"
                for i in map(tuple, outside.tolist())
            ]
            assert not lines, "\n".join([f"{name} is out of bounds of {space}. {len(lines)} invalid indices:", *lines])
    assert space.contains(obs), f"{name} is not in {space}"


def _check_goal_reward(env: Any, obs: dict[str, Any], reward: float, info: dict[str, Any]) -> None:
    """Check that `compute_reward` returns the reward of the step, for one goal and for a batch."""
    achieved, desired = obs["achieved_goal"], obs["desired_goal"]
    assert reward == env.unwrapped.compute_reward(achieved, desired, info), "step() did not use compute_reward"
    pairs = [np.stack([np.asarray(goal)] * 2) for goal in (achieved, desired)]
    pairs = [pair.reshape(2, -1) if pair.ndim == 1 else pair for pair in pairs]
    rewards = env.unwrapped.compute_reward(*pairs, np.array([info, info]))
    assert rewards.shape == (2,), f"compute_reward returned the shape {rewards.shape} for a batch of 2"
    assert rewards[0] == reward, f"compute_reward returned {rewards[0]} for a batch and {reward} for one goal"


def _check_nan(env: Any) -> None:
    """Take ten random steps and warn about NaN and infinity."""
    vec_env = VecCheckNan(DummyVecEnv([lambda: env]))
    vec_env.reset()
    for _ in range(10):
        vec_env.step(np.array([env.action_space.sample()]))
