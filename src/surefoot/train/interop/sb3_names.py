"""Names of Stable-Baselines3. Each works, or raises an error that names its replacement."""

from __future__ import annotations

import inspect
import os
import random
import signal
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
Callback = Callable[[UpdateReport], Any]
"""Called after each update; training stops if it returns False."""
AnyEnv = TypeVar("AnyEnv")


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


def Monitor(env: AnyEnv, filename: str | None = None, **options: Any) -> AnyEnv:
    """Return the env unchanged: raw returns and lengths of episodes are always recorded.

    Args:
        env: The environment.
        filename: Not supported; raises `ConfigError`.
        options: Ignored.
    """
    if filename is not None:
        raise ConfigError(
            f"Monitor(filename={filename!r}) is not supported; train with `surefoot train` and convert "
            "its record: surefoot.telemetry.export.formats.to_monitor_csv(run, out)"
        )
    return env


def DummyVecEnv(env_fns: Sequence[Callable[[], SingleEnv]]) -> World:
    """Return a world of envs that are stepped in this process.

    Args:
        env_fns: Functions that each build one env.
    """
    return EnvsWorld(list(env_fns))


def SubprocVecEnv(env_fns: Sequence[Callable[[], SingleEnv]], start_method: str | None = None) -> World:
    """Return a world of envs with one process each. It pays off for envs slower than about 1 ms per step.

    Args:
        env_fns: Functions that each build one env.
        start_method: Start method of the processes, such as "fork" or "spawn".
    """
    # SAME_STEP: the step that ends an episode also returns the last observation, which bootstrapping needs.
    functions = [_without_interrupts(make, os.getpid()) for make in env_fns]
    vector = AsyncVectorEnv(functions, context=start_method, autoreset_mode=AutoresetMode.SAME_STEP)
    return VectorWorld(vector)


def _without_interrupts(make: Callable[[], SingleEnv], main: int) -> Callable[[], SingleEnv]:
    """Return `make` for a worker process, which leaves Ctrl-C to the process `main`."""

    def build() -> SingleEnv:
        # The main process builds an env too, to look at its spaces.
        if os.getpid() != main:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return make()

    return build


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


# SB3's callback classes, with the replacement that the error names.
_CALLBACKS = {
    "EvalCallback": "`surefoot train --eval-every N` evaluates, or call evaluate_policy in a callback",
    "CheckpointCallback": "call model.save(…) in a callback; `surefoot train` saves checkpoints automatically",
    "StopTrainingOnRewardThreshold": "return False from a callback once model.recent_return is high enough",
    "StopTrainingOnMaxEpisodes": "return False from a callback after the desired number of episodes",
    "StopTrainingOnNoModelImprovement": "return False from a callback once model.recent_return no longer rises",
    "ProgressBarCallback": "pass progress_bar=True to learn",
    "EveryNTimesteps": "check model.num_timesteps in a callback",
    "CallbackList": "pass a list of functions to learn",
    "ConvertCallback": "pass the function itself; its argument is an UpdateReport",
}
_CALLBACK_RULE = (
    "a callback is a function that takes one UpdateReport after each update; training stops if it returns False"
)


def as_callbacks(callback: Any) -> list[Callback]:
    """Return the callables in `callback` (None, one, or a list). Raise `ConfigError` for SB3's callback classes."""
    callbacks: list[Any] = []
    for each in callback if isinstance(callback, list | tuple) else [] if callback is None else [callback]:
        name, foreign = _sb3_class(each)
        if foreign:
            advice = _CALLBACKS.get(name, "turn its _on_rollout_end into a function")
            raise ConfigError(f"{name} is a callback of Stable-Baselines3; {advice}. {_CALLBACK_RULE}")
        if not callable(each):
            raise ConfigError(f"callback is {each!r}; {_CALLBACK_RULE}")
        _refuse_other_arguments(each)
        callbacks.append(each)
    return callbacks


def stops_training(result: Any) -> bool:
    """Return whether the result of a callback is False (Python's or numpy's)."""
    # A function without a return statement returns None, which must not stop the training.
    return isinstance(result, bool | np.bool_) and not result


def _sb3_class(callback: Any) -> tuple[str, bool]:
    """Return the name of a callback's class, or of its base in `_CALLBACKS`, and whether it is derived from SB3."""
    # A class is sometimes passed instead of an instance.
    kind = callback if isinstance(callback, type) else type(callback)
    modules = {base.__module__.partition(".")[0] for base in kind.__mro__}
    named = next((base.__name__ for base in kind.__mro__ if base.__name__ in _CALLBACKS), kind.__name__)
    return named, bool(modules & {"stable_baselines3", "sb3_contrib", "rl_zoo3"})


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


_TORSO = (
    "build a policy with your module, ActorCritic(world.observation, world.action, torso=YourModule()), and pass it "
    "instead of 'MlpPolicy'"
)
# Arguments of SB3's PPO and entries of policy_kwargs that have no setting of the same meaning.
_REPLACED = {
    "features_extractor_class": _TORSO,
    "features_extractor_kwargs": _TORSO,
    "share_features_extractor": "set shared=True to share one trunk between policy and critic",
    "optimizer_class": "set optimizer to 'adam', 'adamw', 'sgd' or 'rmsprop'",
    "optimizer_kwargs": "set adam_eps, weight_decay and momentum",
    "normalize_images": "uint8 images are always divided by 255",
    "rollout_buffer_class": "there is only one type of rollout, surefoot.Rollout",
    "rollout_buffer_kwargs": "there is only one type of rollout, surefoot.Rollout",
    "stats_window_size": "model.recent_return is over the last 100 episodes",
    "_init_setup_model": "the model is always set up",
    "monitor_wrapper": "episodes are always recorded",
}


def refuse_replaced(settings: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for an argument of SB3's PPO or policy_kwargs that has a replacement here."""
    inner = settings.get("policy_kwargs") or {}
    for name in (*settings, *(inner if isinstance(inner, Mapping) else ())):
        if name in _REPLACED:
            raise ConfigError(f"{name} is not supported: {_REPLACED[name]}")


# Attributes of SB3's PPO with their replacements.
_ATTRIBUTES = {
    "logger": "learn(callback=…) receives all metrics in an UpdateReport; tensorboard_log=… writes curves",
    "rollout_buffer": "model.training.collector.collect() returns a Rollout",
    "ep_info_buffer": "model.recent_return is the mean over the last 100 episodes",
    "get_parameters": "model.policy.state_dict() has the weights",
    "set_parameters": "model.policy.load_state_dict(…) sets the weights",
    "get_vec_normalize_env": "the statistics are part of the policy",
    "lr_schedule": "model.spec.ppo.lr is the schedule",
    "observation_space": "use model.spaces.gym_observation",
    "action_space": "use model.spaces.gym_action",
    "n_envs": "use model.spec.ppo.envs",
    "n_steps": "use model.spec.ppo.rollout_steps",
}


def refuse_attribute(name: str) -> NoReturn:
    """Raise `AttributeError` that names the replacement of an attribute of SB3's PPO."""
    advice = f"; {_ATTRIBUTES[name]}" if name in _ATTRIBUTES else ""
    raise AttributeError(f"PPO has no {name!r}{advice}")
