"""`BaseAlgorithm`: env, logger, counters, parameters and files of an SB3 model."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np

from surefoot.compat.sb3.callbacks import BaseCallback, CallbackList, ConvertCallback
from surefoot.compat.sb3.files.load_save import load_model, save_model
from surefoot.compat.sb3.files.model_files import optimizer_state, policy_weights, read_zip, tensors_of
from surefoot.compat.sb3.functions import (
    FloatSchedule,
    Schedule,
    configure_logger,
    get_device,
    get_system_info,
    set_random_seed,
    update_learning_rate,
)
from surefoot.compat.sb3.record.logger import Logger
from surefoot.compat.sb3.record.monitor import Monitor
from surefoot.compat.sb3.spaces import check_for_correct_spaces, check_for_nested_spaces, is_image_space
from surefoot.compat.sb3.spaces import is_image_space_channels_first as channels_first
from surefoot.compat.sb3.stop_callbacks import ProgressBarCallback
from surefoot.compat.sb3.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecNormalize,
    VecTransposeImage,
    is_vecenv_wrapped,
    unwrap_vec_normalize,
)
from surefoot.compat.sb3.vec_env.foreign import ForeignVecEnv, as_vec_env
from surefoot.envs.gym.atari import is_atari, register_games


class BaseAlgorithm:
    """What all of SB3's models share."""

    policy_aliases: ClassVar[dict[str, type[Any]]] = {}
    settings: ClassVar[tuple[str, ...]] = ()
    """Constructor arguments that are saved, by name."""

    policy: Any
    lr_schedule: Schedule

    def _begin(self, policy: Any, env: Any, verbose: int, device: Any, seed: int | None, window: int, tb: Any) -> None:
        self.policy_class = self._policy_class(policy)
        self.verbose, self.seed, self.tensorboard_log = verbose, seed, tb
        self.device = get_device(device)
        self.num_timesteps = self._total_timesteps = self._n_updates = self._num_timesteps_at_start = 0
        self._current_progress_remaining = 1.0
        self._last_obs: Any = None
        self._last_episode_starts: Any = None
        self._infos: list[list[dict[str, Any]]] = []
        self._stats_window_size = window
        self.ep_info_buffer: Any = None
        self.ep_success_buffer: Any = None
        self.start_time = 0
        self._logger: Logger | None = None
        self._custom_logger = False
        self.env: VecEnv | None = None
        if env is not None:
            self.env = self._wrap_env(env, verbose)
            self.observation_space, self.action_space = self.env.observation_space, self.env.action_space
            self.n_envs = self.env.num_envs

    def _policy_class(self, policy: Any) -> type[Any]:
        if not isinstance(policy, str):
            return policy
        if policy not in self.policy_aliases:
            raise ValueError(f"there is no policy {policy!r}; use one of {', '.join(self.policy_aliases)} or a class")
        return self.policy_aliases[policy]

    @staticmethod
    def _wrap_env(env: Any, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        """Return the env as a vec env: monitored, and with the channels of images first."""
        if isinstance(env, str) and is_atari(env):
            register_games(env)
        env = gym.make(env, render_mode="rgb_array") if isinstance(env, str) else as_vec_env(env)
        if not isinstance(env, VecEnv):
            if not isinstance(env, gym.Env):
                raise TypeError(
                    f"env is a {type(env).__name__}; pass an id, a gymnasium.Env or a VecEnv of surefoot.sb3"
                )
            single: Any = env
            if monitor_wrapper and not DummyVecEnv([lambda: single]).env_is_wrapped(Monitor)[0]:
                single = Monitor(single)
            env = DummyVecEnv([lambda: single])
        check_for_nested_spaces(env.observation_space)
        space: Any = env.observation_space
        parts = list(space.spaces.values()) if isinstance(space, gym.spaces.Dict) else [space]
        turned = [part for part in parts if is_image_space(part) and not channels_first(part)]
        if turned and not is_vecenv_wrapped(env, VecTransposeImage):
            env = VecTransposeImage(env)
        return env

    def get_env(self) -> VecEnv | None:
        """Return the vec env of the model; one of an installed SB3 as it was passed."""
        env: Any = self.env
        return env.venv if isinstance(env, ForeignVecEnv) else env

    def get_vec_normalize_env(self) -> VecNormalize | None:
        """Return the `VecNormalize` around the env, if there is one."""
        return None if self.env is None else unwrap_vec_normalize(self.env)

    def set_env(self, env: Any, force_reset: bool = True) -> None:
        """Replace the env by one with the same spaces; `force_reset` starts new episodes at the next `learn`."""
        env = self._wrap_env(env, self.verbose)
        assert env.num_envs == self.n_envs, f"the env has {env.num_envs} envs; the model was made for {self.n_envs}"
        check_for_correct_spaces(env, self.observation_space, self.action_space)
        if force_reset:
            self._last_obs = None
        self.n_envs, self.env = env.num_envs, env

    @property
    def logger(self) -> Logger:
        assert self._logger is not None, "there is no logger before learn; call set_logger"
        return self._logger

    def set_logger(self, logger: Logger) -> None:
        """Use this logger instead of the one that `learn` makes."""
        self._logger, self._custom_logger = logger, True

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed Python, numpy, torch, the action space and the env."""
        if seed is None:
            return
        set_random_seed(seed, using_cuda=self.device.type == "cuda")
        self.action_space.seed(seed)
        if self.env is not None:
            self.env.seed(seed)

    def _setup_lr_schedule(self) -> None:
        self.lr_schedule = FloatSchedule(self.learning_rate)  # type: ignore[attr-defined]  # set by subclasses

    def _update_learning_rate(self, optimizers: Any) -> None:
        self.logger.record("train/learning_rate", self.lr_schedule(self._current_progress_remaining))
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            update_learning_rate(optimizer, self.lr_schedule(self._current_progress_remaining))

    def _update_info_buffer(self, infos: Any, dones: Any = None) -> None:
        for i, info in enumerate(infos):
            if "episode" in info:
                self.ep_info_buffer.append(info["episode"])
            if dones is not None and dones[i] and info.get("is_success") is not None:
                self.ep_success_buffer.append(info["is_success"])

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        """Start the counters, the logger and the callbacks of a training."""
        assert self.env is not None, "the model has no env; call set_env(env) first"
        self.start_time = time.time_ns()
        if self.ep_info_buffer is None or reset_num_timesteps:
            self.ep_info_buffer = deque(maxlen=self._stats_window_size)
            self.ep_success_buffer = deque(maxlen=self._stats_window_size)
        total = total_timesteps
        if reset_num_timesteps:
            self.num_timesteps = 0
            self._last_obs = None
        else:
            total += self.num_timesteps
        self._total_timesteps, self._num_timesteps_at_start = total, self.num_timesteps
        if not self._custom_logger:
            self._logger = configure_logger(self.verbose, self.tensorboard_log, tb_log_name, reset_num_timesteps)
        return total, self._init_callback(callback, progress_bar)

    def _init_callback(self, callback: Any, progress_bar: bool = False) -> BaseCallback:
        if isinstance(callback, list):
            callback = CallbackList(callback)
        if not isinstance(callback, BaseCallback):
            callback = _foreign(callback) or ConvertCallback(callback)
        if progress_bar:
            callback = CallbackList([callback, ProgressBarCallback()])
        callback.init_callback(self)
        return callback

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """Return (action for one observation or a batch, state of a recurrent policy)."""
        return self.policy.predict(observation, state, episode_start, deterministic)

    def get_parameters(self) -> dict[str, dict[str, Any]]:
        """Return the weights and the optimizer's state."""
        return {"policy": policy_weights(self), "policy.optimizer": self.policy.optimizer.state_dict()}

    def set_parameters(self, load_path_or_dict: Any, exact_match: bool = True, device: Any = "auto") -> None:
        """Set weights and optimizer from a saved model or from what `get_parameters` returned.

        With `exact_match`, all parts and all of their weights must be there; otherwise the missing ones stay unchanged.
        """
        optimizer = self.policy.optimizer
        known: dict[str, Any] = {"policy": self.policy, "policy.optimizer": optimizer}
        parameters = load_path_or_dict
        if not isinstance(parameters, dict):
            saved = read_zip(load_path_or_dict)
            slots = optimizer_state(optimizer, saved["optimizer"])
            parameters = {"policy": tensors_of(saved["policy"]), "policy.optimizer": slots}
        if unknown := parameters.keys() - known.keys():
            raise ValueError(f"{sorted(unknown)} are not parts of the model; its parts are {', '.join(known)}")
        if exact_match and parameters.keys() != known.keys():
            raise ValueError(f"the parameters are {sorted(parameters)}; exact_match=True needs {sorted(known)}")
        for name, values in parameters.items():
            strict = {} if name == "policy.optimizer" else {"strict": exact_match}
            known[name].load_state_dict(values, **strict)

    def _excluded_save_params(self) -> list[str]:
        return ["policy", "device", "env", "rollout_buffer", "_logger"]

    def save(self, path: Any, exclude: Iterable[str] | None = None, include: Iterable[str] | None = None) -> None:
        """Write the model to a zip of JSON and safetensors; `path` may be a file object."""
        save_model(self, path, set(exclude or ()) - set(include or ()))

    @classmethod
    def load(
        cls,
        path: Any,
        env: Any = None,
        device: Any = "auto",
        custom_objects: Mapping[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Return a saved model; `kwargs` and `custom_objects` replace saved settings."""
        if print_system_info:
            get_system_info()
        return load_model(cls, path, env, device, dict(custom_objects or {}), force_reset, kwargs)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies: without logger, rollout and engine, which the next `learn` makes."""
        state = {name: x for name, x in vars(self).items() if name not in ("_rollout", "rollout_buffer", "_stop")}
        # Observations of a built-in world are not those of the vec env.
        if (collector := state.get("_collector")) is not None and not hasattr(collector.world, "last_obs"):
            state["_last_obs"] = None
        return {**state, **dict.fromkeys(("_logger", "_learner", "_engine", "_collector")), "_infos": []}

    def _setup_model(self) -> None:
        raise NotImplementedError


def _foreign(callback: Any) -> BaseCallback | None:
    """Return a callback of an installed Stable-Baselines3 (such as W&B's) unchanged: the hooks have the same names."""
    return callback if hasattr(callback, "init_callback") and hasattr(callback, "on_step") else None
