"""SB3's `EvalCallback`."""

from __future__ import annotations

import os
import warnings
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.compat.sb3.callbacks import BaseCallback, EventCallback
from surefoot.compat.sb3.evaluation import evaluate_policy
from surefoot.compat.sb3.vec_env import DummyVecEnv, VecEnv, sync_envs_normalization


class EvalCallback(EventCallback):
    """Evaluates every `eval_freq` calls; saves the best model, and all results to evaluations.npz."""

    def __init__(
        self,
        eval_env: Any,
        callback_on_new_best: BaseCallback | None = None,
        callback_after_eval: BaseCallback | None = None,
        n_eval_episodes: int = 5,
        eval_freq: int = 10000,
        log_path: str | os.PathLike[str] | None = None,
        best_model_save_path: str | os.PathLike[str] | None = None,
        deterministic: bool = True,
        render: bool = False,
        verbose: int = 1,
        warn: bool = True,
    ) -> None:
        super().__init__(callback_after_eval, verbose=verbose)
        self.callback_on_new_best = callback_on_new_best
        if callback_on_new_best is not None:
            callback_on_new_best.parent = self
        self.n_eval_episodes, self.eval_freq = n_eval_episodes, eval_freq
        self.best_mean_reward = self.last_mean_reward = -np.inf
        self.deterministic, self.render, self.warn = deterministic, render, warn
        single: Any = eval_env
        is_single = isinstance(single, gym.Env)
        self.eval_env: VecEnv = DummyVecEnv([lambda: single]) if is_single else single
        self.best_model_save_path = best_model_save_path
        self.log_path = None if log_path is None else os.path.join(log_path, "evaluations")
        self.evaluations_timesteps: list[int] = []
        self.evaluations_results: list[list[float]] = []
        self.evaluations_length: list[list[int]] = []
        self.evaluations_successes: list[list[bool]] = []
        self._is_success_buffer: list[bool] = []

    def _init_callback(self) -> None:
        if type(self.training_env) is not type(self.eval_env):
            warnings.warn(
                f"the training env is a {type(self.training_env).__name__}, the evaluation env a "
                f"{type(self.eval_env).__name__}",
                stacklevel=2,
            )
        for folder in (self.best_model_save_path, self.log_path and os.path.dirname(self.log_path)):
            if folder:
                os.makedirs(folder, exist_ok=True)
        if self.callback_on_new_best is not None:
            self.callback_on_new_best.init_callback(self.model)

    def _log_success_callback(self, locals_: dict[str, Any], globals_: dict[str, Any]) -> None:
        if locals_["done"] and (success := locals_["info"].get("is_success")) is not None:
            self._is_success_buffer.append(success)

    def _on_step(self) -> bool:
        if self.eval_freq <= 0 or self.n_calls % self.eval_freq != 0:
            return True
        if self.model.get_vec_normalize_env() is not None:
            sync_envs_normalization(self.training_env, self.eval_env)
        self._is_success_buffer = []
        rewards, lengths = self._evaluate(
            n_eval_episodes=self.n_eval_episodes,
            render=self.render,
            deterministic=self.deterministic,
            return_episode_rewards=True,
            warn=self.warn,
            callback=self._log_success_callback,
        )
        self._write(rewards, lengths)
        self.last_mean_reward = float(np.mean(rewards))
        if self.verbose >= 1:
            print(
                f"Eval num_timesteps={self.num_timesteps}, episode_reward={np.mean(rewards):.2f} +/- {np.std(rewards):.2f}"
            )
        self.logger.record("eval/mean_reward", self.last_mean_reward)
        self.logger.record("eval/mean_ep_length", float(np.mean(lengths)))
        if self._is_success_buffer:
            self.logger.record("eval/success_rate", float(np.mean(self._is_success_buffer)))
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)
        proceed = True
        if self.last_mean_reward > self.best_mean_reward:
            if self.best_model_save_path is not None:
                self.model.save(os.path.join(self.best_model_save_path, "best_model"))
            self.best_mean_reward = self.last_mean_reward
            if self.callback_on_new_best is not None:
                proceed = self.callback_on_new_best.on_step()
        return proceed and self._on_event() if self.callback is not None else proceed

    def _evaluate(self, **arguments: Any) -> Any:
        return evaluate_policy(self.model, self.eval_env, **arguments)

    def _write(self, rewards: Any, lengths: Any) -> None:
        if self.log_path is None:
            return
        self.evaluations_timesteps.append(self.num_timesteps)
        self.evaluations_results.append(rewards)
        self.evaluations_length.append(lengths)
        arrays: dict[str, Any] = {
            "timesteps": self.evaluations_timesteps,
            "results": self.evaluations_results,
            "ep_lengths": self.evaluations_length,
        }
        if self._is_success_buffer:
            self.evaluations_successes.append(self._is_success_buffer)
            arrays["successes"] = self.evaluations_successes
        np.savez(self.log_path, **arrays)

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        super().update_child_locals(locals_)
        if self.callback_on_new_best is not None:
            self.callback_on_new_best.update_locals(locals_)
