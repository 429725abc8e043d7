"""PPO: one rollout in, the weights moved, one report out. This file is the algorithm."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch

from surefoot.core.batch import Batch
from surefoot.data.rollout import Rollout
from surefoot.data.seeds import seed_for
from surefoot.errors import Diverged
from surefoot.learn.choose_path import choose_path
from surefoot.learn.config import PPOConfig
from surefoot.learn.native import NativeUpdate
from surefoot.learn.optimizer import Optimizer, critic_of
from surefoot.learn.prepare import pieces, to_batch
from surefoot.learn.rate_control import Knobs, Pace
from surefoot.learn.refuse import refuse_bad_masks, refuse_bad_numbers
from surefoot.learn.report import UpdateReport
from surefoot.learn.report_builder import GradientSteps, describe
from surefoot.learn.torch_update import BAD_STEPS_BEFORE_ROLLBACK, TorchUpdate
from surefoot.learn.value_scaling import AnyBatch, ValueScale
from surefoot.nets.heads import at_temperature, discrete_heads
from surefoot.nets.policy import Policy

MakeUpdate = Callable[[Policy, Optimizer, PPOConfig, torch.Generator, torch.device], TorchUpdate]
"""Makes what takes the gradient steps where torch does; `TorchUpdate`, or something of its kind."""


class Learner:
    """Holds a policy, its optimiser and the position in every schedule; `update` is all it does.

    `total_updates` is the length of the run that linear schedules count on; None holds them at their start.
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
        self.native, self.path_reason = choose_path(policy, self.optimizer, config)
        """The kernel's update where it runs, and why it does or does not."""
        self.generator = torch.Generator().manual_seed(seed_for("shuffle", config.seed))
        """Shuffles the minibatches, nothing else."""
        self.pace, self.values = Pace(config), ValueScale(policy, normalize=config.normalize_value)
        if config.temperature != 1.0:
            discrete_heads(policy)  # raises where there are none
        self.updates = 0
        self.lr_scale = 1.0
        """Halved each time an update had to be taken back."""
        self.steps = make_update(policy, self.optimizer, config, self.generator, self.device)
        """Takes the gradient steps where torch does."""
        self.rollbacks_in_a_row = 0

    @property
    def path(self) -> str:
        """`native` if the kernel learns, `torch` if torch does."""
        return "torch" if self.native is None else "native"

    @property
    def policy_version(self) -> int:
        """Counts the policies there have been; a rollout says which one acted."""
        return self.updates

    @property
    def progress(self) -> float:
        """Share of the run that is over, 0 … 1."""
        return min(1.0, self.updates / self.total_updates) if self.total_updates else 0.0

    def knobs(self, progress: float | None = None) -> Knobs:
        """What the schedules say as of now."""
        progress = self.progress if progress is None else progress
        return self.pace.knobs(progress=progress, updates=self.updates, lr_scale=self.lr_scale)

    def acting(self, progress: float | None = None) -> AbstractContextManager[None]:
        """While the block lasts, the policy is the one to collect the next rollout with: at its temperature."""
        temperature = self.knobs(progress).temperature
        return nullcontext() if temperature == 1.0 else at_temperature(self.policy, temperature)

    def update(self, rollout: Rollout, *, progress: float | None = None) -> UpdateReport:
        """Learn from one rollout. Raises before anything moved if the rollout holds a number that must not be.

        `progress` (0 … 1) is where schedules stand; by default it follows from the updates made and `total_updates`.
        """
        config, knobs = self.config, self.knobs(progress)
        valid, stale = self.fresh(rollout)
        samples = int(np.count_nonzero(valid))
        if samples < config.min_samples:
            return self.skipped(
                rollout, samples, knobs, f"{samples} valid steps, fewer than min_samples={config.min_samples}"
            )
        whole = samples == valid.size
        versions = rollout.policy_version if whole else rollout.policy_version[valid]
        lag = self.policy_version - int(versions.min())
        with self.acting(progress):
            if self.native is not None:
                done, described, seconds = self._by_kernel(self.native, rollout, valid, knobs, behind=lag > 0)
            else:
                done, described, seconds = self._by_torch(rollout, valid, knobs, behind=lag > 0)
        if not done.rolled_back:
            self.pace.follow(done.table, knobs, stopped_early=done.stopped_early)
        self.updates += 1
        if self.native is None or self.native.net.flatten.normalizer is not None:  # else there are no statistics
            self.policy.absorb({n: x.reshape(-1, *x.shape[2:]) if whole else x[valid] for n, x in rollout.obs.items()})
        return UpdateReport(
            **self._common(knobs, samples),
            **done.table.averages(),
            **described,
            first_ratio_error=done.first_ratio_error,
            stopped_early=done.stopped_early,
            nonfinite_steps=done.bad_steps,
            rolled_back=done.rolled_back,
            policy_lag=lag,
            action_std=self.policy.action_std(),
            skipped_reason=done.nothing_learned,
            stats={**rollout.stats, **({"stale_steps": float(stale)} if stale else {})},
            seconds=seconds,
        )

    def _by_torch(
        self, rollout: Rollout, valid: np.ndarray, knobs: Knobs, *, behind: bool
    ) -> tuple[GradientSteps, dict[str, Any], dict[str, float]]:
        """The update as it is defined."""
        begin = time.perf_counter()
        raw = self.prepare(rollout, valid)
        counted = {"effective_sample_size": self.steps.sample_size(raw)} if behind else {}
        prepared = time.perf_counter()
        with self._in_critic_units(raw) as batch:
            put_back = self.steps.copy()
            whole = self.config.sequence is None
            done = self.steps.learn(batch if whole else pieces(batch, self.policy, self.config), knobs)
            self._settle(put_back, done)
        seconds = {"prepare": prepared - begin, "learn": time.perf_counter() - prepared}
        return done, describe(raw, rollout, valid) | counted, seconds

    def _by_kernel(
        self, native: NativeUpdate, rollout: Rollout, valid: np.ndarray, knobs: Knobs, *, behind: bool
    ) -> tuple[GradientSteps, dict[str, Any], dict[str, float]]:
        """The same, all epochs in one call of the kernel, on the same memory."""
        begin = time.perf_counter()
        self._refuse_bad(rollout, valid)
        raw = native.prepare(rollout, valid)
        counted = {"effective_sample_size": native.sample_size(raw)} if behind else {}
        prepared = time.perf_counter()
        with self._in_critic_units(raw) as batch:
            native.keep()
            done, self.steps.bad_in_a_row = native.learn(
                batch,
                self.generator,
                knobs,
                bad_in_a_row=self.steps.bad_in_a_row,
                max_bad_steps=BAD_STEPS_BEFORE_ROLLBACK,
            )
            self._settle(native.restore, done)
        return done, raw.described | counted, {"prepare": prepared - begin, "learn": time.perf_counter() - prepared}

    def prepare(self, rollout: Rollout, valid: np.ndarray | None = None) -> Batch:
        """The batch `update` learns from: checked, with advantages, laid out for this policy."""
        valid = rollout.valid if valid is None else valid
        self._refuse_bad(rollout, valid)
        config = self.config
        return to_batch(
            rollout,
            valid,
            gamma=config.gamma,
            lam=config.lam,
            sequential=self.policy.sequential,
            device=self.device,
        )

    def _refuse_bad(self, rollout: Rollout, valid: np.ndarray) -> None:
        """Raise for a number or a mask that must not be."""
        refuse_bad_numbers(rollout, valid)
        if rollout.action_mask is not None:
            refuse_bad_masks(rollout.action_mask, rollout.action, valid, self.policy.choices())

    def fresh(self, rollout: Rollout) -> tuple[np.ndarray, int]:
        """Which steps count: the valid ones whose policy is not too old; and how many were too old."""
        limit = self.config.max_policy_lag
        if limit is None:
            return rollout.valid, 0
        stale = rollout.valid & (self.policy_version - rollout.policy_version > limit)
        return rollout.valid & ~stale, int(stale.sum())

    def _settle(self, put_back: Callable[[], None] | None, done: GradientSteps) -> None:
        """Take an update back that left the finite, and halve the learning rate; the second in a row is the end."""
        if not done.rolled_back:
            self.rollbacks_in_a_row *= not len(done.table.epoch)  # only an update that learned something forgives
            return
        self.steps.bad_in_a_row, self.rollbacks_in_a_row = 0, self.rollbacks_in_a_row + 1
        if put_back is None or self.rollbacks_in_a_row > 1:
            raise Diverged(
                f"{BAD_STEPS_BEFORE_ROLLBACK} gradient steps in a row were not finite, in two updates in a row or without "
                "a copy to go back to; resume from an earlier checkpoint with a smaller lr, or look at the reward's scale"
            )
        put_back()
        self.lr_scale *= 0.5

    def _in_critic_units(self, batch: AnyBatch) -> AbstractContextManager[AnyBatch]:
        """The batch to learn from: as it is, unless the critic learns standardised targets."""
        return self.values.learning(batch) if self.config.normalize_value else nullcontext(batch)

    def skipped(self, rollout: Rollout, samples: int, knobs: Knobs, reason: str) -> UpdateReport:
        """Return the report of an update that learned nothing, and count it."""
        self.updates += 1
        return UpdateReport(**self._common(knobs, samples), skipped_reason=reason, stats=dict(rollout.stats))

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
        """Everything but the weights: optimiser memory, counters, the shuffling generator."""
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
        """Go on from where `state` was taken."""
        self.optimizer.load({name: torch.as_tensor(x) for name, x in state["optimizer"].items()})
        mine = state["learner"]
        self.updates, self.total_updates = mine["updates"], mine["total_updates"]
        self.lr_scale, self.steps.bad_in_a_row = mine["lr_scale"], mine["bad_in_a_row"]
        self.rollbacks_in_a_row = mine["rollbacks_in_a_row"]
        self.pace.kl_scale = mine.get("kl_scale", 1.0)
        self.values.set_state(mine.get("values", {}))
        self.generator.set_state(torch.as_tensor(mine["generator"]))
