"""PPO (Schulman et al. 2017, algorithm 1): one rollout in, one update of the weights, one report out."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import torch

from surefoot.core.batch import Batch
from surefoot.data.rollout import Rollout
from surefoot.data.seeds import seed_for
from surefoot.errors import Diverged
from surefoot.learn.checkpoint.typed_state import LearnerState, restoring, typed
from surefoot.learn.choose_path import choose_path, refuse_if_required, supported
from surefoot.learn.config import PPOConfig
from surefoot.learn.optimizer import Optimizer, critic_of
from surefoot.learn.rate_control import Knobs, Pace
from surefoot.learn.refuse import refuse_bad_masks, refuse_bad_numbers
from surefoot.learn.report import UpdateReport
from surefoot.learn.report_builder import GradientSteps, advantage_error
from surefoot.learn.torch_update import BAD_STEPS_BEFORE_ROLLBACK, TorchUpdate
from surefoot.learn.value_scaling import AnyBatch, ValueScale
from surefoot.nets.heads import at_temperature, discrete_heads
from surefoot.nets.policy import Policy

MakeUpdate = Callable[[Policy, Optimizer, PPOConfig, torch.Generator, torch.device], TorchUpdate]
"""Returns the torch implementation of the gradient steps: `TorchUpdate` or a subclass."""


class Implementation(Protocol[AnyBatch]):
    """Takes the gradient steps of an update: `TorchUpdate`, which is the definition, or `NativeUpdate`, the kernel."""

    bad_in_a_row: int

    def prepare(self, rollout: Rollout, valid: np.ndarray) -> tuple[AnyBatch, dict[str, Any]]: ...
    def sample_size(self, batch: AnyBatch) -> float: ...
    def copy(self) -> Callable[[], None] | None: ...
    def learn(self, batch: AnyBatch, knobs: Knobs) -> GradientSteps: ...


class Learner:
    """A policy, its optimiser and the position in every schedule. `update` learns from one rollout.

    Args:
        policy: The policy to train; it is moved to `device`.
        config: The settings of PPO.
        total_updates: Length of the run, over which linear schedules fall; None holds them at their start.
        device: Where to learn.
        make_update: Makes the torch implementation of the gradient steps; a subclass of `TorchUpdate` may, for example,
            split a minibatch to save memory.
    """

    def __init__(
        self,
        policy: Policy,
        config: PPOConfig,
        *,
        total_updates: int | None = None,
        device: str | torch.device = "cpu",
        make_update: MakeUpdate = TorchUpdate,
    ) -> None:
        self.policy, self.config, self.total_updates = policy, config, total_updates
        self.device = torch.device(device)
        policy.to(self.device)
        self.optimizer = Optimizer(policy.parameters(), config, critic=critic_of(policy, config))
        self.generator = torch.Generator().manual_seed(seed_for("shuffle", config.seed))
        """Shuffles the minibatches, nothing else."""
        self.by_torch = make_update(policy, self.optimizer, config, self.generator, self.device)
        self.native, self.path_reason = choose_path(policy, self.optimizer, config, self.generator)
        """The kernel's implementation if it could learn this policy when the learner was made, else None; and the reason."""
        self.steps: Implementation[Any] = self.native or self.by_torch
        """The implementation in use. `update` chooses anew: a policy may have been changed since."""
        self.pace, self.values = Pace(config), ValueScale(policy, normalize=config.normalize_value)
        if config.temperature != 1.0:
            discrete_heads(policy)  # raises if the policy has none
        self.updates = self.rollbacks_in_a_row = 0
        self.lr_scale = 1.0
        """Halved by every rollback."""

    @property
    def path(self) -> str:
        """Return "native" if the kernel learns, "torch" otherwise."""
        return "native" if self.steps is self.native else "torch"

    @property
    def policy_version(self) -> int:
        """Return the number of the current policy; rollouts carry the number of the policy that acted."""
        return self.updates

    def knobs(self, progress: float | None = None) -> Knobs:
        """Return the current values of the schedules; `progress` as in `update`."""
        if progress is None:
            progress = min(1.0, self.updates / self.total_updates) if self.total_updates else 0.0
        return self.pace.knobs(progress=progress, updates=self.updates, lr_scale=self.lr_scale)

    def acting(self, progress: float | None = None) -> AbstractContextManager[None]:
        """Set the policy to its sampling temperature within the block, for collecting a rollout."""
        return at_temperature(self.policy, self.knobs(progress).temperature)

    def _choose_steps(self) -> None:
        """Bring kernel and optimiser in line with the policy as it is now, or let torch learn and say why."""
        reason = None if self.native is None else self.native.refresh()
        steps: Implementation[Any] = self.by_torch
        if self.native is not None:
            self.path_reason = supported(self.native) if reason is None else refuse_if_required(self.config, reason)
            steps = self.native if reason is None else self.by_torch
        if steps is self.by_torch:
            self.optimizer.follow(self.policy.parameters(), critic=critic_of(self.policy, self.config))
        steps.bad_in_a_row, self.steps = self.steps.bad_in_a_row, steps

    def update(self, rollout: Rollout, *, progress: float | None = None) -> UpdateReport:
        """Learn from one rollout and return what was measured. Raise before any change if a number in it is bad.

        Args:
            rollout: The experience, time-major [T, N, …].
            progress: Share of the run that is over, 0 to 1, for the schedules; None: `updates / total_updates`.
        """
        knobs, (valid, stale) = self.knobs(progress), self.fresh(rollout)
        samples = int(np.count_nonzero(valid))
        if samples < self.config.min_samples:
            reason = f"{samples} valid steps, fewer than min_samples={self.config.min_samples}"
            return self.skipped(rollout, samples, knobs, reason)
        complete = samples == valid.size
        versions = rollout.policy_version if complete else rollout.policy_version[valid]
        lag = self.policy_version - int(versions.min())
        begin = time.perf_counter()
        self._refuse_bad(rollout, valid)
        self._choose_steps()
        # The ratio compares log-probs at the temperature that the actions were sampled at.
        with at_temperature(self.policy, knobs.temperature):
            # Advantages A_t and targets A_t + V(s_t) by GAE, before any weight changes.
            batch, moments = self.steps.prepare(rollout, valid)
            mismatch = advantage_error(batch)
            if lag > 0:
                moments["effective_sample_size"] = self.steps.sample_size(batch)
            prepared = time.perf_counter()
            # Several epochs of minibatch steps on the clipped objective (eq. 7 and 9).
            with self.values.learning(batch) as scaled:
                restore = self.steps.copy()
                done = self.steps.learn(scaled, knobs)
                self._settle(restore, done)
        seconds = {"prepare": prepared - begin, "learn": time.perf_counter() - prepared}
        if not done.rolled_back:
            self.pace.follow(done.table, knobs, stopped_early=done.stopped_early)
        self.updates += 1
        # Only now: a normaliser that moved during the update would make the first ratio differ from 1.
        if self.native is None or self.path == "torch" or self.native.net.torsos[0].normalizer is not None:
            rows = {n: x.reshape(-1, *x.shape[2:]) if complete else x[valid] for n, x in rollout.obs.items()}
            self.policy.absorb(rows)
        return UpdateReport(
            **self._common(knobs, samples),
            **done.table.averages(),
            **moments,
            first_ratio_error=done.first_ratio_error,
            stopped_early=done.stopped_early,
            nonfinite_steps=done.bad_steps,
            rolled_back=done.rolled_back,
            policy_lag=lag,
            action_std=self.policy.action_std(),
            skipped_reason=done.nothing_learned,
            stats={
                **rollout.stats,
                **({"stale_steps": float(stale)} if stale else {}),
                **({"advantage_error": mismatch} if mismatch > 1e-3 else {}),
            },
            seconds=seconds,
        )

    def prepare(self, rollout: Rollout) -> Batch:
        """Return the batch that the torch implementation learns from: checked, with advantages and targets."""
        self._refuse_bad(rollout, rollout.valid)
        return self.by_torch.prepare(rollout, rollout.valid)[0]

    def fresh(self, rollout: Rollout) -> tuple[np.ndarray, int]:
        """Return the mask of steps to learn from, [T, N], and how many were dropped because their policy is too old."""
        limit = self.config.max_policy_lag
        if limit is None:
            return rollout.valid, 0
        stale = rollout.valid & (self.policy_version - rollout.policy_version > limit)
        return rollout.valid & ~stale, int(stale.sum())

    def skipped(self, rollout: Rollout, samples: int, knobs: Knobs, reason: str) -> UpdateReport:
        """Count an update that learned nothing, and return its report."""
        self.updates += 1
        return UpdateReport(**self._common(knobs, samples), skipped_reason=reason, stats=dict(rollout.stats))

    def _refuse_bad(self, rollout: Rollout, valid: np.ndarray) -> None:
        refuse_bad_numbers(rollout, valid)
        if rollout.action_mask is not None:
            refuse_bad_masks(rollout.action_mask, rollout.action, valid, self.policy.choices())

    def _settle(self, restore: Callable[[], None] | None, done: GradientSteps) -> None:
        """Roll back a non-finite update and halve the learning rate; raise `Diverged` on the second in a row."""
        if not done.rolled_back:
            # An update without a gradient step proves nothing about the weights, so it does not reset the count.
            self.rollbacks_in_a_row *= not len(done.table.epoch)
            return
        self.steps.bad_in_a_row, self.rollbacks_in_a_row = 0, self.rollbacks_in_a_row + 1
        if restore is None or self.rollbacks_in_a_row > 1:
            raise Diverged(
                f"{BAD_STEPS_BEFORE_ROLLBACK} gradient steps in a row were not finite, in two updates in a row or in a "
                "model too large for a rollback copy. Resume from an earlier checkpoint with a smaller lr, or check the "
                "scale of the reward"
            )
        restore()
        # With the same rate the next update would most likely diverge again.
        self.lr_scale *= 0.5

    def _common(self, knobs: Knobs, samples: int) -> dict[str, Any]:
        return {
            "update": self.updates,
            "policy_version": self.policy_version,
            "samples": samples,
            "path": self.path,
            "path_reason": self.path_reason,
            "value_scale": self.values.std,
            **knobs._asdict(),
        }

    def state(self) -> dict[str, Any]:
        """Return everything but the weights: optimiser slots, counters, the shuffling generator."""
        return {
            "optimizer": {name: x.clone() for name, x in self.optimizer.tensors().items()},
            "learner": {
                "updates": self.updates,
                "total_updates": self.total_updates,
                "lr_scale": self.lr_scale,
                "bad_in_a_row": self.steps.bad_in_a_row,
                "rollbacks_in_a_row": self.rollbacks_in_a_row,
                "kl_scale": self.pace.kl_scale,
                "values": self.values.state(),
                "generator": self.generator.get_state(),
            },
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned; raise `CheckpointCorrupt` if a value is missing or out of range."""
        saved = typed(state, "learner", LearnerState)
        with restoring("optimizer"):
            self.optimizer.load({name: torch.as_tensor(x) for name, x in state["optimizer"].items()})
            self.generator.set_state(torch.as_tensor(saved.generator))
        self.updates, self.total_updates = saved.updates, saved.total_updates
        self.lr_scale, self.steps.bad_in_a_row = saved.lr_scale, saved.bad_in_a_row
        self.rollbacks_in_a_row = saved.rollbacks_in_a_row
        self.pace.kl_scale = saved.kl_scale
        self.values.set_state(saved.values)
