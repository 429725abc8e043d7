"""Values that change from one update to the next without being learned: schedules, and a rate that follows the KL."""

from __future__ import annotations

from typing import NamedTuple

from surefoot.learn.config import PPOConfig
from surefoot.learn.report_builder import Table
from surefoot.learn.schedule import value_at

# Bounds and step of the adaptive rate: the values of rsl_rl (its schedule "adaptive").
SLOWEST, FASTEST, FACTOR = 1e-5, 1e-2, 1.5


class Knobs(NamedTuple):
    """The scheduled settings of one update."""

    lr: float
    clip: float
    ent_coef: float
    temperature: float


class Pace:
    """Reads the schedules; with `adaptive_kl`, also raises or lowers the learning rate after each update."""

    def __init__(self, config: PPOConfig) -> None:
        self.config = config
        self.kl_scale = 1.0
        """Factor on the learning rate that following the KL has led to so far."""

    def knobs(self, *, progress: float, updates: int, lr_scale: float = 1.0) -> Knobs:
        """Return the current values, constant within an update. `lr_scale` is the factor from rollbacks."""
        config = self.config
        scheduled = (config.lr, config.clip, config.ent_coef, config.temperature)
        lr, *others = [value_at(knob, progress=progress, updates=updates) for knob in scheduled]
        # A schedule that reached 0 stays there: the lower bound would otherwise let learning continue.
        if config.adaptive_kl is not None and lr > 0.0:
            lr = min(max(lr * self.kl_scale, SLOWEST), FASTEST)
        return Knobs(lr * lr_scale, *others)

    def follow(self, table: Table, knobs: Knobs, *, stopped_early: bool) -> None:
        """Raise the rate after a mean KL below half of `adaptive_kl`, lower it above twice that.

        An update that `target_kl` ended early went too far, regardless of the mean over the steps before.
        """
        target = self.config.adaptive_kl
        if target is None or not len(table.epoch) or knobs.lr == 0.0:
            return
        kl = float(table.column("approx_kl").mean())
        # The band of rsl_rl, half to twice the target: inside it the noise of one update does not change the rate.
        if stopped_early or kl > 2.0 * target:
            lr = max(SLOWEST, knobs.lr / FACTOR)
        elif kl < 0.5 * target:
            lr = min(FASTEST, knobs.lr * FACTOR)
        else:
            return
        self.kl_scale *= lr / knobs.lr
