"""Callbacks that stop a training, or act every N steps; and which callbacks a training must stop at each step for."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from surefoot.compat.sb3.callbacks import (
    BaseCallback,
    CallbackList,
    CheckpointCallback,
    ConvertCallback,
    EventCallback,
)
from surefoot.compat.sb3.eval_callback import EvalCallback


class StopTrainingOnRewardThreshold(BaseCallback):
    """Stops once the best mean reward of the `EvalCallback` around it reaches a threshold."""

    parent: Any

    def __init__(self, reward_threshold: float, verbose: int = 0) -> None:
        super().__init__(verbose=verbose)
        self.reward_threshold = reward_threshold

    def _on_step(self) -> bool:
        assert self.parent is not None, "StopTrainingOnRewardThreshold must be inside an EvalCallback"
        return bool(self.parent.best_mean_reward < self.reward_threshold)


class StopTrainingOnNoModelImprovement(BaseCallback):
    """Stops after more than `max_no_improvement_evals` evaluations without a new best one."""

    parent: Any

    def __init__(self, max_no_improvement_evals: int, min_evals: int = 0, verbose: int = 0) -> None:
        super().__init__(verbose=verbose)
        self.max_no_improvement_evals, self.min_evals = max_no_improvement_evals, min_evals
        self.last_best_mean_reward = -np.inf
        self.no_improvement_evals = 0

    def _on_step(self) -> bool:
        assert self.parent is not None, "StopTrainingOnNoModelImprovement must be inside an EvalCallback"
        proceed = True
        if self.n_calls > self.min_evals:
            if self.parent.best_mean_reward > self.last_best_mean_reward:
                self.no_improvement_evals = 0
            else:
                self.no_improvement_evals += 1
                proceed = self.no_improvement_evals <= self.max_no_improvement_evals
        self.last_best_mean_reward = self.parent.best_mean_reward
        return proceed


class StopTrainingOnMaxEpisodes(BaseCallback):
    """Stops after `max_episodes` episodes per env."""

    def __init__(self, max_episodes: int, verbose: int = 0) -> None:
        super().__init__(verbose=verbose)
        self.max_episodes, self._total_max_episodes, self.n_episodes = max_episodes, max_episodes, 0

    def _init_callback(self) -> None:
        self._total_max_episodes = self.max_episodes * self.training_env.num_envs

    def _on_step(self) -> bool:
        assert "dones" in self.locals, "the locals have no `dones`"
        self.n_episodes += int(np.sum(self.locals["dones"]))
        return self.n_episodes < self._total_max_episodes


class EveryNTimesteps(EventCallback):
    """Calls a callback every `n_steps` timesteps."""

    def __init__(self, n_steps: int, callback: BaseCallback) -> None:
        super().__init__(callback)
        self.n_steps, self.last_time_trigger = n_steps, 0

    def _on_step(self) -> bool:
        if self.num_timesteps - self.last_time_trigger >= self.n_steps:
            self.last_time_trigger = self.num_timesteps
            return self._on_event()
        return True


class LogEveryNTimesteps(EveryNTimesteps):
    """Writes the log every `n_steps` timesteps."""

    def __init__(self, n_steps: int) -> None:
        super().__init__(n_steps, ConvertCallback(None))

    def _on_event(self) -> bool:
        self.model.dump_logs()
        return True


class ProgressBarCallback(BaseCallback):
    """Shows a progress bar; `learn(progress_bar=True)` adds it."""

    def __init__(self) -> None:
        super().__init__()
        self.pbar: Any = None

    def _on_training_start(self) -> None:
        from rich.progress import Progress

        self.pbar = Progress(transient=True)
        left = self.locals["total_timesteps"] - self.model.num_timesteps
        self._task, self._first = self.pbar.add_task("learning", total=left), self.model.num_timesteps
        self._shown = 0.0
        self.pbar.start()

    def _on_step(self) -> bool:
        # Twenty times per second is as often as a terminal can show it.
        if time.monotonic() - self._shown > 0.05:
            self._shown = time.monotonic()
            self.pbar.update(self._task, completed=self.num_timesteps - self._first)
        return True

    def _on_training_end(self) -> None:
        self.pbar.stop()


# These read nothing of a step that the rollout does not have, so they are called after it, once per step.
_AFTER_ROLLOUT = (
    CheckpointCallback,
    StopTrainingOnRewardThreshold,
    StopTrainingOnNoModelImprovement,
    StopTrainingOnMaxEpisodes,
    LogEveryNTimesteps,
    ProgressBarCallback,
)


def _true(self: BaseCallback) -> bool:
    return True


def _hook(kind: type[Any]) -> Any:
    return getattr(kind, "_on_step")  # noqa: B009  # a protected name


def needs_every_step(callback: BaseCallback | None) -> str | None:
    """Return the name of a callback that must be called during each step; None if after the rollout is enough.

    Weights do not change within a rollout, so an evaluation at one of its steps gives the same result after it.
    """
    if isinstance(callback, CallbackList) and type(callback) is CallbackList:
        return next((name for each in callback.callbacks if (name := needs_every_step(each))), None)
    evaluates = isinstance(callback, EvalCallback) and _hook(type(callback)) is _hook(EvalCallback)
    if evaluates or type(callback) is EveryNTimesteps:
        assert isinstance(callback, EventCallback)
        inner = [callback.callback, getattr(callback, "callback_on_new_best", None)]
        return next((name for each in inner if (name := needs_every_step(each))), None)
    if (
        callback is None
        or type(callback) in _AFTER_ROLLOUT
        or (type(callback) is ConvertCallback and not callback.callback)
    ):
        return None
    code = getattr(_hook(type(callback)), "__code__", None)
    constants = () if code is None else tuple(x for x in code.co_consts if not isinstance(x, str | None.__class__))
    trivial = code is not None and code.co_code == _true.__code__.co_code and constants == (True,)
    return None if trivial and type(callback).on_step is BaseCallback.on_step else type(callback).__name__
