"""SB3's `PPO` on the engine: its defaults and behaviour, trained by `Collector` and `Learner`."""

from __future__ import annotations

import signal
import sys
from typing import Any, ClassVar, Self

import numpy as np
import torch
from gymnasium import spaces

from surefoot.compat.sb3.engine.learners import ModelLearner, is_plain_adam
from surefoot.compat.sb3.engine.policies import EnginePolicy, standard
from surefoot.compat.sb3.functions import FloatSchedule, draw_seed
from surefoot.compat.sb3.on_policy import OnPolicyAlgorithm, check_sizes
from surefoot.compat.sb3.policies.actor_critic import (
    ActorCriticCnnPolicy,
    ActorCriticPolicy,
    MultiInputActorCriticPolicy,
)
from surefoot.compat.sb3.stop_callbacks import needs_every_step
from surefoot.learn.config import PPOConfig
from surefoot.learn.rate_control import Knobs
from surefoot.train.device import pin_threads
from surefoot.train.interrupt import GentleStop

MlpPolicy, CnnPolicy, MultiInputPolicy = ActorCriticPolicy, ActorCriticCnnPolicy, MultiInputActorCriticPolicy


class PPO(OnPolicyAlgorithm):
    """Proximal policy optimization with SB3's arguments, defaults, attributes and methods.

    Arguments are those of Stable-Baselines3 2.9. A custom `rollout_buffer_class` is not supported.
    """

    policy_aliases: ClassVar[dict[str, type[Any]]] = {
        "MlpPolicy": ActorCriticPolicy,
        "CnnPolicy": ActorCriticCnnPolicy,
        "MultiInputPolicy": MultiInputActorCriticPolicy,
    }
    settings: ClassVar[tuple[str, ...]] = (
        *("learning_rate", "n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range", "clip_range_vf"),
        *("normalize_advantage", "ent_coef", "vf_coef", "max_grad_norm", "use_sde", "sde_sample_freq", "target_kl"),
        *("tensorboard_log", "policy_kwargs", "verbose", "seed"),
    )

    def __init__(
        self,
        policy: Any,
        env: Any,
        learning_rate: Any = 3e-4,
        n_steps: int = 2048,
        batch_size: int = 64,
        n_epochs: int = 10,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        clip_range: Any = 0.2,
        clip_range_vf: Any = None,
        normalize_advantage: bool = True,
        ent_coef: float = 0.0,
        vf_coef: float = 0.5,
        max_grad_norm: float = 0.5,
        use_sde: bool = False,
        sde_sample_freq: int = -1,
        rollout_buffer_class: Any = None,
        rollout_buffer_kwargs: dict[str, Any] | None = None,
        target_kl: float | None = None,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: torch.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        if rollout_buffer_class is not None or rollout_buffer_kwargs:
            raise NotImplementedError("a custom rollout buffer is not supported: the engine stores rollouts itself")
        self._begin(policy, env, verbose, device, seed, stats_window_size, tensorboard_log)
        self.learning_rate, self.n_steps, self.batch_size, self.n_epochs = learning_rate, n_steps, batch_size, n_epochs
        self.gamma, self.gae_lambda = gamma, gae_lambda
        self.clip_range, self.clip_range_vf = clip_range, clip_range_vf
        self.normalize_advantage, self.ent_coef, self.vf_coef = normalize_advantage, ent_coef, vf_coef
        self.max_grad_norm, self.target_kl = max_grad_norm, target_kl
        self.use_sde, self.sde_sample_freq = use_sde, sde_sample_freq
        self.policy_kwargs = dict(policy_kwargs or {})
        if (
            self.env is not None
            and isinstance(self.observation_space, spaces.Dict)
            and policy in ("MlpPolicy", "CnnPolicy")
        ):
            raise ValueError(f"{policy} does not take Dict observations; use 'MultiInputPolicy'")
        if self.env is not None and use_sde and not isinstance(self.action_space, spaces.Box):
            raise ValueError("use_sde=True is for continuous actions only")
        if normalize_advantage:
            assert batch_size > 1, "batch_size must be above 1 to normalize advantages"
        if self.env is not None:
            check_sizes(n_steps * self.n_envs, batch_size, normalize_advantage)
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        pin_threads()
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.clip_range = FloatSchedule(self.clip_range)
        if self.clip_range_vf is not None:
            if isinstance(self.clip_range_vf, float | int):
                assert self.clip_range_vf > 0, "clip_range_vf must be positive; None turns it off"
            self.clip_range_vf = FloatSchedule(self.clip_range_vf)
        make: Any = self.policy_class
        self.policy = make(self.observation_space, self.action_space, self.lr_schedule, **self._policy_arguments()).to(
            self.device
        )
        self._maybe_recommend_cpu()
        self.rollout_buffer = self._buffer(None)
        self._learner: ModelLearner | None = None
        self._engine = self._collector = None

    def _policy_arguments(self) -> dict[str, Any]:
        return {"use_sde": self.use_sde, **self.policy_kwargs}

    def _adapter(self) -> EnginePolicy:
        return EnginePolicy(self.policy, self.sde_sample_freq)

    def _sequence(self) -> int | None:
        """Return the length of the sequences that a policy with memory learns from; None for whole rollouts."""
        return None

    def _config(self) -> PPOConfig:
        """Return the current settings for the engine, whose value loss is half the squared error."""
        group = self.policy.optimizer.param_groups[0]
        plain = is_plain_adam(self.policy.optimizer)
        return PPOConfig(
            gamma=self.gamma,
            lam=self.gae_lambda,
            epochs=self.n_epochs,
            minibatch_size=self.batch_size,
            rollout_steps=self.n_steps,
            envs=self.n_envs,
            vf_coef=2.0 * self.vf_coef,
            max_grad_norm=self.max_grad_norm,
            target_kl=self.target_kl,
            normalize_advantage="minibatch" if self.normalize_advantage else "off",
            adam_eps=group["eps"] if plain else 1e-5,
            weight_decay=group["weight_decay"] if plain else 0.0,
            path="auto" if plain and self.clip_range_vf is None else "torch",
            min_samples=1,
            sequence=self._sequence(),
        )

    def _prepare_learner(self) -> ModelLearner:
        """Return the learner for the current settings and policy; optimizer state is carried over."""
        config = self._config()
        if self._learner is None or self._learner.config != config or self._engine[0] is not self.policy:
            fast = standard(self.policy, self.sde_sample_freq) if self.device.type == "cpu" else None
            adapter = self._adapter()
            self._engine = (self.policy, fast or adapter, adapter)
            self._learner = ModelLearner(fast or adapter, config, self.policy.optimizer, self.device)
            self._learner.generator.manual_seed(draw_seed())
        self._learner.share_state()
        return self._learner

    def learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        log_interval: int | None = 1,
        tb_log_name: str = "PPO",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
        on_interrupt: str = "raise",
    ) -> Self:
        """Train for at least `total_timesteps` steps.

        Ctrl-C ends the training between two steps or updates, and `KeyboardInterrupt` reaches the caller with the model whole;
        with on_interrupt="stop", `learn` returns instead.
        """
        total, callbacks = self._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)
        callbacks.on_training_start({**locals(), "total_timesteps": total}, globals())
        learner, every_step = self._prepare_learner(), needs_every_step(callbacks)
        self._make_collector(callbacks if every_step else None)
        if self.verbose >= 1:
            where = f"called in every step ({every_step})" if every_step else "called after each rollout"
            print(f"learning by {learner.path}: {learner.path_reason}; callbacks are {where}")
        iteration = 0
        with GentleStop((signal.SIGINT,)) as self._stop:
            while self.num_timesteps < total and not self._stop.requested:
                if not self._collect(callbacks, every_step is not None) or self._stop.requested:
                    break
                iteration += 1
                self._current_progress_remaining = 1.0 - self.num_timesteps / total
                if log_interval is not None and iteration % log_interval == 0:
                    self.dump_logs(iteration)
                self.train()
        callbacks.on_training_end()
        if self._stop.requested:
            self._last_obs = self._collector = None
            if on_interrupt != "stop":
                raise KeyboardInterrupt
            print(f"stopped after {self.num_timesteps:,} steps", file=sys.stderr)
        return self

    def train(self) -> None:
        """Learn from the last rollout, and record the results under SB3's names."""
        learner, left = self._prepare_learner(), self._current_progress_remaining
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        clip: Any = self.clip_range
        learner.current = Knobs(self.lr_schedule(left), clip(left), self.ent_coef, 1.0)
        value_clip = None if self.clip_range_vf is None else self.clip_range_vf(left)
        torch_update: Any = learner.by_torch
        torch_update.value_range = value_clip
        rollout = self._rollout
        if not np.array_equal(rollout.policy_version, np.full_like(rollout.policy_version, learner.policy_version)):
            rollout.policy_version[:] = learner.policy_version
        if learner.native is not None and "obs" in rollout.obs and rollout.obs["obs"].ndim != 3:
            rollout.obs["obs"] = rollout.obs["obs"].reshape(*rollout.reward.shape, -1)
        self._record(learner.update(rollout), value_clip)
