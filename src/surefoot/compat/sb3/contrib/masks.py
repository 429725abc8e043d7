"""Action masks of envs: `ActionMasker`, `get_action_masks`, `is_masking_supported`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.compat.sb3.vec_env.base import VecEnv

METHOD = "action_masks"


class ActionMasker(gym.Wrapper[Any, Any, Any, Any]):
    """Adds the method `action_masks` to an env: a function of the env, or the name of one of its methods."""

    def __init__(self, env: gym.Env[Any, Any], action_mask_fn: str | Callable[[Any], Any]) -> None:
        super().__init__(env)
        if isinstance(action_mask_fn, str):
            action_mask_fn = getattr(self.env, action_mask_fn)
            if not callable(action_mask_fn):
                raise ValueError(f"action_mask_fn names {action_mask_fn!r}, which is not a method of the env")
        self._action_mask_fn: Callable[[Any], Any] = action_mask_fn

    def action_masks(self) -> Any:
        """Return True for each action that is allowed."""
        return self._action_mask_fn(self.env)


def get_action_masks(env: Any) -> np.ndarray:
    """Return the masks of an env, or of all envs of a vec env, [N, choices]."""
    return np.stack(env.env_method(METHOD)) if isinstance(env, VecEnv) else env.get_wrapper_attr(METHOD)()


def is_masking_supported(env: Any) -> bool:
    """Return whether the env, or each env of a vec env, has the method `action_masks`."""
    if isinstance(env, VecEnv):
        return env.has_attr(METHOD)
    try:
        env.get_wrapper_attr(METHOD)
    except AttributeError:
        return False
    return True


def require_masks(env: Any) -> None:
    """Raise `ValueError` if the env has no masks."""
    if not is_masking_supported(env):
        raise ValueError("the env has no method action_masks(); wrap it in ActionMasker, or pass use_masking=False")
