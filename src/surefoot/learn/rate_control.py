"""What moves from one update to the next without being learned: the schedules' values, and a rate that follows the KL."""

from __future__ import annotations

from typing import NamedTuple

from surefoot.learn.config import PPOConfig
from surefoot.learn.report_builder import Table
from surefoot.learn.schedule import value_at

SLOWEST, FASTEST, FACTOR = 1e-5, 1e-2, 1.5
"""Between which learning rates, and in which steps, the rate follows the KL (Schulman 2017, as Isaac's trainers do)."""


class Knobs(NamedTuple):
    """What the schedules say for this update."""

    lr: float
    clip: float
    ent_coef: float
    temperature: float


class Pace:
    """Reads the schedules; with `adaptive_kl`, also answers each update with a larger or a smaller rate."""

    def __init__(self, config: PPOConfig) -> None:
        self.config = config
        self.kl_scale = 1.0
        """What following the KL has made of the learning rate so far, as a factor."""

    def knobs(self, *, progress: float, updates: int, lr_scale: float = 1.0) -> Knobs:
        """The values of now: they change per update, not per minibatch. `lr_scale` is what rollbacks left of the rate."""
        config = self.config
        knobs = (config.lr, config.clip, config.ent_coef, config.temperature)
        lr, *others = [value_at(knob, progress=progress, updates=updates) for knob in knobs]
        if config.adaptive_kl is not None and lr > 0.0:
            lr = min(max(lr * self.kl_scale, SLOWEST), FASTEST)
        return Knobs(lr * lr_scale, *others)

    def follow(self, table: Table, knobs: Knobs, *, stopped_early: bool) -> None:
        """Answer an update's gradient steps: faster after a mean KL below half of what is wanted, slower above twice it.

        An update that the target KL ended early went too far, whatever the mean of the steps before that.
        """
        wanted = self.config.adaptive_kl
        if wanted is None or not len(table.epoch) or knobs.lr == 0.0:
            return
        moved = float(table.column("approx_kl").mean())
        if stopped_early or moved > 2.0 * wanted:
            answer = max(SLOWEST, knobs.lr / FACTOR)
        elif moved < 0.5 * wanted:
            answer = min(FASTEST, knobs.lr * FACTOR)
        else:
            return
        self.kl_scale *= answer / knobs.lr
