"""SB3's callbacks: the base class, lists, events, checkpoints."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from surefoot.compat.sb3.record.logger import Logger
from surefoot.compat.sb3.vec_env import VecEnv


class BaseCallback(ABC):
    """Override any of the hooks; `_on_step` returns False to stop the training.

    Attributes: `model`, `training_env`, `logger`, `num_timesteps`, `n_calls`, `locals`, `globals`, `parent`.
    """

    model: Any

    def __init__(self, verbose: int = 0) -> None:
        self.n_calls = self.num_timesteps = 0
        self.verbose = verbose
        self.locals: dict[str, Any] = {}
        self.globals: dict[str, Any] = {}
        self.parent: BaseCallback | None = None

    @property
    def training_env(self) -> VecEnv:
        env = self.model.get_env()
        assert env is not None, "the model has no env"
        return env

    @property
    def logger(self) -> Logger:
        return self.model.logger

    def init_callback(self, model: Any) -> None:
        """Set the model; called before training."""
        self.model = model
        self._init_callback()

    def _init_callback(self) -> None:  # noqa: B027  hooks may be left out
        """Do nothing; override it."""

    def on_training_start(self, locals_: dict[str, Any], globals_: dict[str, Any]) -> None:
        self.locals, self.globals = locals_, globals_
        self.num_timesteps = self.model.num_timesteps
        self._on_training_start()

    def _on_training_start(self) -> None:  # noqa: B027  hooks may be left out
        """Do nothing; override it."""

    def on_rollout_start(self) -> None:
        self._on_rollout_start()

    def _on_rollout_start(self) -> None:  # noqa: B027  hooks may be left out
        """Do nothing; override it."""

    @abstractmethod
    def _on_step(self) -> bool:
        """Return False to stop the training."""

    def on_step(self) -> bool:
        """Count a step and call `_on_step`."""
        self.n_calls += 1
        self.num_timesteps = self.model.num_timesteps
        return self._on_step()

    def on_training_end(self) -> None:
        self._on_training_end()

    def _on_training_end(self) -> None:  # noqa: B027  hooks may be left out
        """Do nothing; override it."""

    def on_rollout_end(self) -> None:
        self._on_rollout_end()

    def _on_rollout_end(self) -> None:  # noqa: B027  hooks may be left out
        """Do nothing; override it."""

    def update_locals(self, locals_: dict[str, Any]) -> None:
        """Set the local variables of the training loop."""
        self.locals.update(locals_)
        self.update_child_locals(locals_)

    def update_child_locals(self, locals_: dict[str, Any]) -> None:  # noqa: B027  most have no children
        """Pass the local variables to callbacks inside this one."""


class EventCallback(BaseCallback):
    """Calls another callback at an event."""

    def __init__(self, callback: BaseCallback | None = None, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.callback = callback
        if callback is not None:
            callback.parent = self

    def init_callback(self, model: Any) -> None:
        super().init_callback(model)
        if self.callback is not None:
            self.callback.init_callback(self.model)

    def _on_training_start(self) -> None:
        if self.callback is not None:
            self.callback.on_training_start(self.locals, self.globals)

    def _on_event(self) -> bool:
        return True if self.callback is None else self.callback.on_step()

    def _on_step(self) -> bool:
        return True

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        if self.callback is not None:
            self.callback.update_locals(locals_)


class CallbackList(BaseCallback):
    """Several callbacks; the training stops if one of them returns False."""

    def __init__(self, callbacks: list[BaseCallback]) -> None:
        super().__init__()
        assert isinstance(callbacks, list), "callbacks must be a list"
        self.callbacks = callbacks

    def _init_callback(self) -> None:
        for callback in self.callbacks:
            callback.init_callback(self.model)
            # A list hands its parent on, so that children see the callback around the list.
            callback.parent = self.parent

    def _on_training_start(self) -> None:
        for callback in self.callbacks:
            callback.on_training_start(self.locals, self.globals)

    def _on_rollout_start(self) -> None:
        for callback in self.callbacks:
            callback.on_rollout_start()

    def _on_step(self) -> bool:
        results = [callback.on_step() for callback in self.callbacks]
        return all(results)

    def _on_rollout_end(self) -> None:
        for callback in self.callbacks:
            callback.on_rollout_end()

    def _on_training_end(self) -> None:
        for callback in self.callbacks:
            callback.on_training_end()

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        for callback in self.callbacks:
            callback.update_locals(locals_)


class ConvertCallback(BaseCallback):
    """A function (locals, globals) → bool as a callback."""

    def __init__(self, callback: Callable[[dict[str, Any], dict[str, Any]], bool] | None, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.callback = callback

    def _on_step(self) -> bool:
        return True if self.callback is None else self.callback(self.locals, self.globals)


class CheckpointCallback(BaseCallback):
    """Saves the model every `save_freq` calls, with the statistics of `VecNormalize` if `save_vecnormalize`."""

    def __init__(
        self,
        save_freq: int,
        save_path: str | os.PathLike[str],
        name_prefix: str = "rl_model",
        save_replay_buffer: bool = False,
        save_vecnormalize: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        self.save_freq, self.save_path, self.name_prefix = save_freq, save_path, name_prefix
        self.save_replay_buffer, self.save_vecnormalize = save_replay_buffer, save_vecnormalize

    def _init_callback(self) -> None:
        os.makedirs(self.save_path, exist_ok=True)

    def _checkpoint_path(self, checkpoint_type: str = "", extension: str = "") -> str:
        name = f"{self.name_prefix}_{checkpoint_type}{self.num_timesteps}_steps.{extension}"
        return os.path.join(self.save_path, name)

    def _on_step(self) -> bool:
        if self.n_calls % self.save_freq == 0:
            path = self._checkpoint_path(extension="zip")
            self.model.save(path)
            if self.verbose >= 2:
                print(f"saved the model to {path}")
            if self.save_vecnormalize and (normalize := self.model.get_vec_normalize_env()) is not None:
                normalize.save(self._checkpoint_path("vecnormalize_", extension="pkl"))
        return True
