"""`OnPolicyAlgorithm`: rollouts of a model, with callbacks, and its log under SB3's names."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

from surefoot.compat.sb3.algorithm import BaseAlgorithm
from surefoot.compat.sb3.callbacks import ConvertCallback
from surefoot.compat.sb3.engine.learners import ModelLearner
from surefoot.compat.sb3.engine.policies import EnginePolicy
from surefoot.compat.sb3.engine.worlds import VecEnvWorld, built_in_world
from surefoot.compat.sb3.functions import draw_seed, safe_mean
from surefoot.compat.sb3.rollout_buffer import RolloutBuffer
from surefoot.compat.sb3.stop_callbacks import needs_every_step
from surefoot.data.rollout import Rollout
from surefoot.learn.report import UpdateReport
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.episodes import Episode
from surefoot.train.interrupt import GentleStop


class _Stop(Exception):
    """A callback returned False, or Ctrl-C was pressed, in the middle of a rollout."""


class OnPolicyAlgorithm(BaseAlgorithm):
    """SB3's base class of PPO: collects rollouts and writes the log."""

    n_steps: int
    gamma: float
    gae_lambda: float
    use_sde: bool
    _stop = GentleStop(())
    """Notes Ctrl-C during `learn`."""
    use_masking = False
    """Whether the policy gets the action masks of the env."""
    rollout_buffer: RolloutBuffer
    _engine: Any
    _learner: ModelLearner | None
    _collector: Collector | None
    _rollout: Rollout

    def _prepare_learner(self) -> ModelLearner:
        raise NotImplementedError

    def _make_collector(self, callbacks: Any) -> None:
        """Make the collector: a built-in world if there is one and no callback needs the steps, else the vec env."""
        assert self.env is not None
        _, engine, adapter = self._engine
        fast = engine is not adapter
        plain = fast and callbacks is None and not self.use_masking
        world: Any = built_in_world(self.env) if plain else None
        before = self._collector
        if before is not None and self._last_obs is not None and type(before.world) is type(world):
            before.policy = engine
            if before.steps == self.n_steps:
                return
        acting = engine if callbacks is None else adapter
        if world is None:

            def on_step(obs: Any, rewards: Any, dones: Any, infos: Any) -> None:
                self._after_step(callbacks, obs, rewards, dones, infos)

            # A callback's training acts by the adapter, on observations as the env returns them.
            rows = fast and callbacks is None
            world = VecEnvWorld(self.env, rows=rows, last_obs=self._last_obs, masks=self.use_masking, on_step=on_step)
        path = "auto" if callbacks is None else "torch"
        self._collector = Collector(
            world, acting, steps=self.n_steps, gamma=self.gamma, seed=draw_seed(), device=self.device, path=path
        )
        if not isinstance(world, VecEnvWorld):
            self._last_obs = self._collector.view.obs["obs"]
        else:
            self._last_obs = world.last_obs

    def _after_step(self, callbacks: Any, obs: Any, rewards: Any, dones: Any, infos: Any) -> None:
        if self._stop.requested:
            raise _Stop
        if callbacks is not None:
            self.num_timesteps += self.n_envs
            step = {"new_obs": obs, "rewards": rewards, "dones": dones, "infos": infos, "self": self, "env": self.env}
            adapter: EnginePolicy = self._engine[2]
            callbacks.update_locals({**step, **adapter.last})
            if not callbacks.on_step():
                self._last_obs = obs
                raise _Stop
        else:
            self._infos.append(infos)
        self._update_info_buffer(infos, dones)

    def _collect(self, callbacks: Any, every_step: bool) -> bool:
        """Collect one rollout; return False if a callback stopped the training."""
        collector, learner = self._collector, self._learner
        assert collector is not None
        assert learner is not None
        self.policy.set_training_mode(False)
        if self.use_sde:
            self.policy.reset_noise(self.n_envs)
        callbacks.on_rollout_start()
        self._infos.clear()
        try:
            self._rollout = collector.collect(learner.policy_version)
        except _Stop:
            self._collector = None
            return False
        self.rollout_buffer = self._buffer(self._rollout)
        if isinstance(collector.world, VecEnvWorld):
            self._last_obs = collector.world.last_obs
        else:
            self._last_obs = collector.view.obs["obs"]
            self._infos = self._infos_of(collector.episodes.take_fresh())
            for infos in self._infos:
                self._update_info_buffer(infos)
        if not every_step and not self._replay(callbacks):
            return False
        callbacks.update_locals({"rollout_buffer": self.rollout_buffer, "self": self, "env": self.env})
        callbacks.on_rollout_end()
        return True

    def _replay(self, callbacks: Any) -> bool:
        """Call the callbacks once per step of the rollout; return False if one stopped the training."""
        if type(callbacks) is ConvertCallback and callbacks.callback is None:
            self.num_timesteps += self.n_steps * self.n_envs
            callbacks.n_calls, callbacks.num_timesteps = callbacks.n_calls + self.n_steps, self.num_timesteps
            return True
        rollout, ended = self._rollout, self._rollout.ended
        obs = self.rollout_buffer.observations
        for t in range(self.n_steps):
            self.num_timesteps += self.n_envs
            new_obs = self._last_obs
            if t + 1 < self.n_steps:
                new_obs = {k: x[t + 1] for k, x in obs.items()} if isinstance(obs, dict) else obs[t + 1]
            step = {"new_obs": new_obs, "rewards": rollout.reward[t], "dones": ended[t], "actions": rollout.action[t]}
            callbacks.update_locals({**step, "infos": self._infos[t]})
            if not callbacks.on_step():
                return False
        return True

    def _infos_of(self, episodes: list[Episode]) -> list[list[dict[str, Any]]]:
        """Return infos for all steps in a built-in world, which has none: where episodes ended, and their statistics."""
        rollout, seconds = self._rollout, round((time.time_ns() - self.start_time) / 1e9, 6)
        infos: list[list[dict[str, Any]]] = [[{} for _ in range(self.n_envs)] for _ in range(self.n_steps)]
        per_env = [iter([e for e in episodes if e.stream == i]) for i in range(self.n_envs)]
        for t, i in np.argwhere(rollout.ended).tolist():
            infos[t][i]["TimeLimit.truncated"] = bool(rollout.truncated[t, i])
            if (episode := next(per_env[i], None)) is not None:
                infos[t][i]["episode"] = {"r": round(episode.return_, 6), "l": episode.length, "t": seconds}
        return infos

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.rollout_buffer = self._buffer(None)

    def _buffer(self, rollout: Rollout | None) -> RolloutBuffer:
        return RolloutBuffer(rollout, self.n_steps, self.n_envs, self.gamma, self.gae_lambda)

    def collect_rollouts(self, env: Any, callback: Any, rollout_buffer: Any, n_rollout_steps: int) -> bool:
        """Collect one rollout of `n_steps` without learning from it; return False if the callback stopped it.

        `env` and `rollout_buffer` must be those of the model, as in `learn`.
        """
        assert env is self.env, "collect_rollouts needs the env of the model; call set_env first"
        assert n_rollout_steps == self.n_steps, f"n_rollout_steps is {n_rollout_steps}; n_steps is {self.n_steps}"
        every_step = needs_every_step(callback)
        self._prepare_learner()
        self._make_collector(callback if every_step else None)
        return self._collect(callback, every_step is not None)

    def _record(self, report: UpdateReport, value_clip: float | None) -> None:
        self._n_updates += len(report.epochs)
        record = self.logger.record
        record("train/entropy_loss", -report.entropy)
        record("train/policy_gradient_loss", report.policy_loss)
        record("train/value_loss", 2.0 * report.value_loss)
        record("train/approx_kl", report.approx_kl)
        record("train/clip_fraction", report.clip_fraction)
        record("train/loss", report.loss)
        record("train/explained_variance", report.explained_variance)
        if report.action_std is not None:
            record("train/std", report.action_std)
        record("train/n_updates", self._n_updates, exclude="tensorboard")
        record("train/clip_range", report.clip)
        if value_clip is not None:
            record("train/clip_range_vf", value_clip)

    def _maybe_recommend_cpu(self, mlp_class_name: str = "ActorCriticPolicy") -> None:
        """Warn if a policy without convolutions is on a GPU."""
        if self.device.type != "cpu" and self.policy_class.__name__ == mlp_class_name:
            warnings.warn(
                f"You are trying to run PPO on the GPU ({self.device}), but MlpPolicy learns faster with device='cpu'",
                UserWarning,
                stacklevel=4,
            )

    def dump_logs(self, iteration: int = 0) -> None:
        """Record episodes and time, and write everything that was recorded."""
        seconds = max((time.time_ns() - self.start_time) / 1e9, sys.float_info.epsilon)
        if iteration > 0:
            self.logger.record("time/iterations", iteration, exclude="tensorboard")
        if self.ep_info_buffer:
            self.logger.record("rollout/ep_rew_mean", safe_mean([e["r"] for e in self.ep_info_buffer]))
            self.logger.record("rollout/ep_len_mean", safe_mean([e["l"] for e in self.ep_info_buffer]))
        self.logger.record("time/fps", int((self.num_timesteps - self._num_timesteps_at_start) / seconds))
        self.logger.record("time/time_elapsed", int(seconds), exclude="tensorboard")
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        if self.ep_success_buffer:
            self.logger.record("rollout/success_rate", safe_mean(self.ep_success_buffer))
        self.logger.dump(step=self.num_timesteps)


def check_sizes(size: int, batch_size: int, normalize: bool) -> None:
    """Raise for a rollout of one step with normalized advantages; warn if `size` is not a multiple of `batch_size`."""
    assert size > 1 or not normalize, f"n_steps * n_envs is {size}; advantages of a single step cannot be normalized"
    if rest := size % batch_size:
        warnings.warn(
            f"n_steps * n_envs = {size} is not a multiple of batch_size={batch_size}: in SB3 there will be a truncated "
            f"mini-batch of size {rest}. Here the steps are split evenly",
            UserWarning,
            stacklevel=3,
        )
