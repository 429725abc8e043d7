"""Observation and action spaces: which are images, their sizes, and observations as tensors."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim
from torch import Tensor
from torch.nn import functional

Space = gym.Space[Any]


def is_image_space_channels_first(observation_space: Any) -> bool:
    """Return whether the smallest axis of an image space, its channels, is the first."""
    smallest = int(np.argmin(observation_space.shape))
    if smallest == 1:
        warnings.warn("the smallest axis of this image is in the middle; is it really an image?", stacklevel=2)
    return smallest == 0


def is_image_space(observation_space: Space, check_channels: bool = False, normalized_image: bool = False) -> bool:
    """Return whether a space has three axes and, unless images are normalized already, bytes from 0 to 255.

    With `check_channels` it must have 1, 3 or 4 channels as well.
    """
    if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) != 3:
        return False
    space: Any = observation_space
    if not normalized_image and (space.dtype != np.uint8 or np.any(space.low != 0) or np.any(space.high != 255)):
        return False
    if not check_channels:
        return True
    return space.shape[0 if is_image_space_channels_first(space) else -1] in (1, 3, 4)


def maybe_transpose(observation: np.ndarray, observation_space: Space) -> np.ndarray:
    """Return an image with channels last as the space has it, channels first; anything else unchanged."""
    if is_image_space(observation_space):
        assert observation_space.shape is not None
        expected = observation_space.shape
        if not (observation.shape == expected or observation.shape[1:] == expected):
            moved = np.moveaxis(observation, -1, -3)
            if moved.shape == expected or moved.shape[1:] == expected:
                return moved
    return observation


def preprocess_obs(obs: Any, observation_space: Space, normalize_images: bool = True) -> Any:
    """Return observations as floats: images divided by 255, choices one-hot."""
    if isinstance(observation_space, spaces.Dict):
        assert isinstance(obs, dict), f"a Dict observation must be a dict, not {type(obs).__name__}"
        return {k: preprocess_obs(x, observation_space[k], normalize_images) for k, x in obs.items()}
    assert isinstance(obs, Tensor), f"a tensor is needed, not {type(obs).__name__}"
    match observation_space:
        case spaces.Box():
            return obs.float() / 255.0 if normalize_images and is_image_space(observation_space) else obs.float()
        case spaces.Discrete():
            return functional.one_hot(obs.long(), num_classes=int(observation_space.n)).float()
        case spaces.MultiDiscrete():
            columns = obs.long().reshape(obs.shape[0], -1).unbind(1)
            sizes = observation_space.nvec.ravel()
            rows = [functional.one_hot(c, num_classes=int(n)) for c, n in zip(columns, sizes, strict=True)]
            return torch.cat(rows, dim=-1).float()
        case spaces.MultiBinary():
            return obs.float()
        case _:
            raise NotImplementedError(f"observations in {observation_space} are not supported")


def get_obs_shape(observation_space: Space) -> Any:
    """Return the shape of one observation, or a dict of shapes; a choice has (1,)."""
    match observation_space:
        case spaces.Box():
            return observation_space.shape
        case spaces.Discrete():
            return (1,)
        case spaces.MultiDiscrete():
            return (len(observation_space.nvec),)
        case spaces.MultiBinary():
            return observation_space.shape
        case spaces.Dict():
            return {key: get_obs_shape(part) for key, part in observation_space.spaces.items()}
        case _:
            raise NotImplementedError(f"observations in {observation_space} are not supported")


def get_flattened_obs_dim(observation_space: Space) -> int:
    """Return the number of floats of one observation after `preprocess_obs`."""
    if isinstance(observation_space, spaces.MultiDiscrete):
        return int(sum(observation_space.nvec))
    return flatdim(observation_space)


def get_action_dim(action_space: Space) -> int:
    """Return the number of columns of an action."""
    match action_space:
        case spaces.Box():
            return int(np.prod(action_space.shape))
        case spaces.Discrete():
            return 1
        case spaces.MultiDiscrete():
            return len(action_space.nvec)
        case spaces.MultiBinary():
            assert isinstance(action_space.n, int), (
                f"Multi-dimensional MultiBinary({action_space.n}) action space is not supported; flatten it"
            )
            return int(action_space.n)
        case _:
            raise NotImplementedError(f"actions in {action_space} are not supported")


def check_for_nested_spaces(obs_space: Space) -> None:
    """Raise `NotImplementedError` for a Dict or Tuple inside of another one."""
    if isinstance(obs_space, spaces.Dict | spaces.Tuple):
        parts = obs_space.spaces.values() if isinstance(obs_space, spaces.Dict) else obs_space.spaces
        if any(isinstance(part, spaces.Dict | spaces.Tuple) for part in parts):
            raise NotImplementedError("nested Dict and Tuple observations are not supported; flatten them in the env")


def check_shape_equal(space1: Space, space2: Space) -> None:
    """Raise `AssertionError` unless two spaces have the same type and shapes."""
    if isinstance(space1, spaces.Dict):
        assert isinstance(space2, spaces.Dict), "only one of the spaces is a Dict"
        assert space1.spaces.keys() == space2.spaces.keys(), "the spaces have different keys"
        for key in space1.spaces:
            check_shape_equal(space1.spaces[key], space2.spaces[key])
    elif isinstance(space1, spaces.Box):
        assert space1.shape == space2.shape, f"the shapes differ: {space1.shape} and {space2.shape}"


def check_for_correct_spaces(env: Any, observation_space: Space, action_space: Space) -> None:
    """Raise `ValueError` unless an env has these spaces."""
    for name, wanted in (("observation", observation_space), ("action", action_space)):
        actual = getattr(env, f"{name}_space")
        if wanted != actual:
            raise ValueError(f"the {name} spaces do not match: {wanted} != {actual}")


def is_vectorized_observation(observation: Any, observation_space: Space) -> bool:
    """Return whether `observation` is a batch; raise `ValueError` if it is neither one observation nor a batch."""
    if isinstance(observation_space, spaces.Dict):
        batches = {is_vectorized_observation(observation[k], part) for k, part in observation_space.spaces.items()}
        if len(batches) > 1:
            raise ValueError("some parts of the observation are batches and others are not")
        return batches.pop()
    if not isinstance(observation_space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        raise ValueError(f"cannot tell whether an observation in {observation_space} is a batch")
    expected: tuple[int, ...] = () if isinstance(observation_space, spaces.Discrete) else observation_space.shape
    shape = np.shape(observation)
    if shape == expected:
        return False
    if len(shape) == len(expected) + 1 and shape[1:] == expected:
        return True
    batch = ", ".join(["n", *map(str, expected)])
    raise ValueError(f"the observation has the shape {shape}; {expected} or ({batch}) is needed")
