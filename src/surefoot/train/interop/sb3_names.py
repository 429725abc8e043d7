"""Names of Stable-Baselines3: each works here, or raises an error that names its replacement."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv

from surefoot.envs.api import World
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.gym.vector_env import VectorWorld
from surefoot.envs.make import make_world
from surefoot.errors import ConfigError
from surefoot.learn.report import UpdateReport

SingleEnv = gym.Env[Any, Any]
Watcher = Callable[[UpdateReport], Any]
"""Called after each update; False ends the training."""
AnyEnv = TypeVar("AnyEnv")


class VecNormalize:
    """Tells `PPO` to normalize observations and rewards of a world; the world itself is not changed.

    The statistics are part of the policy and the collector, so they are saved and loaded with the model: there is no second
    file, and nothing to switch off before an evaluation.

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
        """Not needed: `model.save` writes the statistics with the weights."""
        raise ConfigError(f"{path} was not written: the statistics are in the policy; call model.save(…)")

    @classmethod
    def load(cls, path: str, venv: Any = None) -> NoReturn:
        """Not needed: `PPO.load` brings the statistics with the weights."""
        raise ConfigError(f"{path} was not read: the statistics are in the policy; call PPO.load(…)")


def Monitor(env: AnyEnv, filename: str | None = None, **options: Any) -> AnyEnv:
    """Return the env unchanged: raw returns and lengths of episodes are always recorded.

    Args:
        env: The environment.
        filename: Not supported; raises `ConfigError`.
        options: Ignored.
    """
    if filename is not None:
        raise ConfigError(
            f"Monitor(filename={filename!r}) writes nothing here; train with `surefoot train` and write the file from "
            "its record: surefoot.telemetry.export.formats.to_monitor_csv(run, out)"
        )
    return env


def DummyVecEnv(env_fns: Sequence[Callable[[], SingleEnv]]) -> World:
    """Return a world of the envs that these functions build, stepped in this process."""
    return EnvsWorld(list(env_fns))


def SubprocVecEnv(env_fns: Sequence[Callable[[], SingleEnv]], start_method: str | None = None) -> World:
    """Return a world of the envs that these functions build, one process each: for envs slower than about 1 ms."""
    vector = AsyncVectorEnv(list(env_fns), context=start_method, autoreset_mode=AutoresetMode.SAME_STEP)
    return VectorWorld(vector)


def set_random_seed(seed: int, using_cuda: bool = False) -> None:
    """Seed the global generators of Python, numpy and torch. Only your own code uses them; this package does not."""
    import torch

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (the global one is the point)
    torch.manual_seed(seed)
    if using_cuda:
        torch.cuda.manual_seed_all(seed)


_CALLBACKS = {
    "EvalCallback": "`surefoot train --eval-every N` evaluates, or call evaluate_policy in a callback",
    "CheckpointCallback": "call model.save(…) in a callback; `surefoot train` saves by itself",
    "StopTrainingOnRewardThreshold": "return False from a callback once model.recent_return is high enough",
    "StopTrainingOnMaxEpisodes": "return False from a callback after as many episodes as you want",
    "StopTrainingOnNoModelImprovement": "return False from a callback once model.recent_return no longer rises",
    "ProgressBarCallback": "learn(…, progress_bar=True) shows one",
    "EveryNTimesteps": "look at model.num_timesteps in a callback",
    "CallbackList": "learn takes a list of callables",
    "ConvertCallback": "pass the function itself; it gets one UpdateReport",
}
_CALLBACK_RULE = (
    "a callback here is a function that gets one UpdateReport after each update and stops by returning False"
)


def watchers(callback: Any) -> list[Watcher]:
    """Return the callables in `callback` (None, one, or a list). Raise `ConfigError` for SB3's callback classes."""
    callbacks: list[Any] = []
    for watcher in callback if isinstance(callback, list | tuple) else [] if callback is None else [callback]:
        name, foreign = _sb3_class(watcher)
        if foreign:
            advice = _CALLBACKS.get(name, "its _on_rollout_end becomes such a function")
            raise ConfigError(f"{name} is a callback of Stable-Baselines3; {advice}. {_CALLBACK_RULE}")
        if not callable(watcher):
            raise ConfigError(f"callback is {watcher!r}; {_CALLBACK_RULE}")
        _refuse_other_arguments(watcher)
        callbacks.append(watcher)
    return callbacks


def says_stop(answer: Any) -> bool:
    """Return whether a callback returned False (Python's or numpy's); None continues."""
    return isinstance(answer, bool | np.bool_) and not answer


def _sb3_class(thing: Any) -> tuple[str, bool]:
    """Name of a thing's class (the best known among its bases), and whether it comes from SB3."""
    kind = thing if isinstance(thing, type) else type(thing)
    modules = {base.__module__.partition(".")[0] for base in kind.__mro__}
    named = next((base.__name__ for base in kind.__mro__ if base.__name__ in _CALLBACKS), kind.__name__)
    return named, bool(modules & {"stable_baselines3", "sb3_contrib", "rl_zoo3"})


def _refuse_other_arguments(watcher: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(watcher)
    except (TypeError, ValueError):  # some built-ins do not tell
        return
    try:
        signature.bind(None)
    except TypeError:
        name = getattr(watcher, "__name__", repr(watcher))
        raise ConfigError(
            f"the callback {name}{signature} cannot be called with one argument; {_CALLBACK_RULE}"
        ) from None


_TORSO = (
    "build the policy with a module of your own, ActorCritic(world.observation, world.action, torso=YourModule()), and "
    "pass it in place of 'MlpPolicy'"
)
_REPLACED = {
    "features_extractor_class": _TORSO,
    "features_extractor_kwargs": _TORSO,
    "share_features_extractor": "shared=True lets policy and critic share one trunk",
    "optimizer_class": "optimizer='adam', 'adamw', 'sgd' or 'rmsprop' chooses one",
    "optimizer_kwargs": "adam_eps=, weight_decay= and momentum= are settings of their own",
    "normalize_images": "bytes are always divided by 255",
    "rollout_buffer_class": "there is one kind of rollout, surefoot.Rollout",
    "rollout_buffer_kwargs": "there is one kind of rollout, surefoot.Rollout",
    "stats_window_size": "model.recent_return is over the last 100 episodes",
    "_init_setup_model": "the model is always set up",
    "monitor_wrapper": "episodes are always counted",
}


def refuse_replaced(settings: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for an argument of SB3's PPO or policy_kwargs that has a replacement here."""
    inner = settings.get("policy_kwargs") or {}
    for name in (*settings, *(inner if isinstance(inner, Mapping) else ())):
        if name in _REPLACED:
            raise ConfigError(f"{name} is not supported: {_REPLACED[name]}")


_ATTRIBUTES = {
    "logger": "learn(callback=…) gets every number in an UpdateReport, tensorboard_log=… writes curves",
    "rollout_buffer": "model.training.collector.collect() makes a Rollout",
    "ep_info_buffer": "model.recent_return is the mean over the last 100 episodes",
    "get_parameters": "model.policy.state_dict() has the weights",
    "set_parameters": "model.policy.load_state_dict(…) sets the weights",
    "get_vec_normalize_env": "the statistics are part of the policy",
    "lr_schedule": "model.spec.ppo.lr is the schedule",
    "observation_space": "model.spaces.gym_observation is Gymnasium's",
    "action_space": "model.spaces.gym_action is Gymnasium's",
    "n_envs": "use model.spec.ppo.envs",
    "n_steps": "use model.spec.ppo.rollout_steps",
}


def refuse_attribute(name: str) -> NoReturn:
    """Raise `AttributeError`, with the replacement of an attribute of SB3's PPO."""
    advice = f"; {_ATTRIBUTES[name]}" if name in _ATTRIBUTES else ""
    raise AttributeError(f"PPO has no {name!r}{advice}")
