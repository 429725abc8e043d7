"""Names of Stable-Baselines3. Each works, or raises an error that names its replacement."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from surefoot.envs.api import World
from surefoot.envs.make import make_world
from surefoot.errors import ConfigError
from surefoot.learn.report import UpdateReport

SingleEnv = gym.Env[Any, Any]
Callback = Callable[[UpdateReport], Any]
"""Called after each update; training stops if it returns False."""
_SB3 = {"stable_baselines3", "sb3_contrib", "rl_zoo3"}


class VecNormalize:
    """Make `PPO` normalize the observations and rewards of a world. The world itself is not changed.

    The statistics are part of the policy and the collector, so they are saved and loaded with the model. There is no
    separate file, and evaluations never update them.

    Args:
        venv: The environment.
        training: Accepted for compatibility; evaluations never update the statistics.
        norm_obs: Normalize observations.
        norm_reward: Divide rewards by the running deviation of the discounted return.
        clip_obs: Limit of normalized observations.
        clip_reward: Limit of scaled rewards.
        gamma: Discount; must be the learner's. Default: the learner's.
    """

    def __init__(
        self,
        venv: World | VectorEnv[Any, Any, Any] | SingleEnv,
        training: bool = True,
        norm_obs: bool = True,
        norm_reward: bool = True,
        clip_obs: float = 10.0,
        clip_reward: float = 10.0,
        gamma: float | None = None,
    ) -> None:
        self.world = make_world(venv)
        self.training = training
        self.gamma = gamma
        self.settings: dict[str, Any] = {
            "normalize_obs": norm_obs,
            "normalize_reward": norm_reward,
            "obs_clip": clip_obs,
            "reward_clip": clip_reward,
        }

    @property
    def num_envs(self) -> int:
        """Number of streams."""
        return self.world.num_envs

    def save(self, path: str) -> NoReturn:
        """Raise `ConfigError`: `model.save` writes the statistics with the weights."""
        raise ConfigError(f"{path} was not written: the statistics are part of the policy; call model.save(…)")

    @classmethod
    def load(cls, path: str, venv: Any = None) -> NoReturn:
        """Raise `ConfigError`: `PPO.load` reads the statistics with the weights."""
        raise ConfigError(f"{path} was not read: the statistics are part of the policy; call PPO.load(…)")


def set_random_seed(seed: int, using_cuda: bool = False) -> None:
    """Seed the global generators of Python, numpy and torch. Only your code uses them; this package does not.

    Args:
        seed: The seed.
        using_cuda: Seed all GPUs too.
    """
    import torch

    random.seed(seed)
    # SB3's function seeds the global generator, so this one does too.
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)
    if using_cuda:
        torch.cuda.manual_seed_all(seed)


_CALLBACK_RULE = (
    "a callback is a function that takes one UpdateReport after each update; training stops if it returns False"
)


def as_callbacks(callback: Any) -> list[Callback]:
    """Return the callables in `callback` (None, one, or a list). Raise `ConfigError` for SB3's callback classes."""
    callbacks: list[Any] = []
    for each in callback if isinstance(callback, list | tuple) else [] if callback is None else [callback]:
        # A class is sometimes passed instead of an instance.
        kind = each if isinstance(each, type) else type(each)
        if {base.__module__.partition(".")[0] for base in kind.__mro__} & _SB3:
            raise ConfigError(
                f"{kind.__name__} is a callback of Stable-Baselines3, for surefoot.sb3.PPO; {_CALLBACK_RULE}"
            )
        if not callable(each):
            raise ConfigError(f"callback is {each!r}; {_CALLBACK_RULE}")
        _refuse_other_arguments(each)
        callbacks.append(each)
    return callbacks


def stops_training(result: Any) -> bool:
    """Return whether the result of a callback is False (Python's or numpy's)."""
    # A function without a return statement returns None, which must not stop the training.
    return isinstance(result, bool | np.bool_) and not result


def _refuse_other_arguments(callback: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(callback)
    # Some built-in functions have no signature.
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None)
    except TypeError:
        name = getattr(callback, "__name__", repr(callback))
        raise ConfigError(
            f"the callback {name}{signature} cannot be called with one argument; {_CALLBACK_RULE}"
        ) from None


# Arguments of SB3's PPO and entries of policy_kwargs that have no setting of the same meaning.
_SB3_ONLY = (
    *("features_extractor_class", "features_extractor_kwargs", "share_features_extractor", "normalize_images"),
    *("optimizer_class", "optimizer_kwargs", "rollout_buffer_class", "rollout_buffer_kwargs"),
    *("stats_window_size", "_init_setup_model", "monitor_wrapper"),
)


def refuse_replaced(settings: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for an argument of SB3's PPO or policy_kwargs that this package's `PPO` does not have."""
    inner = settings.get("policy_kwargs") or {}
    for name in (*settings, *(inner if isinstance(inner, Mapping) else ())):
        if name in _SB3_ONLY:
            raise ConfigError(
                f"{name} is not supported here; surefoot.sb3.PPO has it, and docs/how-to/from-sb3.md names replacements"
            )


def refuse_attribute(name: str) -> NoReturn:
    """Raise `AttributeError` that names the class with SB3's attributes."""
    raise AttributeError(f"PPO has no {name!r}; surefoot.sb3.PPO has the attributes of SB3's PPO")
