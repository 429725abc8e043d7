"""Targets of mean 0 and deviation 1 for the critic, while everybody else goes on reading values in units of the return.

The statistics belong to the last layer of the critic alone. As an update begins, that layer is divided so that it gives
(V - mean) / std, learns targets in the same units, and is multiplied back when the update ends (van Hasselt et al. 2016:
what it says is preserved exactly while the statistics move). Between updates its weights are plain: acting, GAE, files
and the kernel see ordinary values. Adam's memory is that of the divided layer, so it does not notice the scale either.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from surefoot.core.batch import Batch
from surefoot.errors import ConfigError
from surefoot.learn.native import NativeBatch
from surefoot.nets.networks import Trunks
from surefoot.nets.policy import Policy

MEMORY = 20.0
"""All rollouts before weigh at most this many times as much as the newest: returns grow while a policy learns."""

AnyBatch = TypeVar("AnyBatch", Batch, NativeBatch)


Moments = Callable[[np.ndarray], tuple[float, float, float]]
"""Returns (mean, variance, count) of some numbers."""


def _moments(target: np.ndarray) -> tuple[float, float, float]:
    wide = target.astype(np.float64)
    return float(wide.mean()), float(wide.var()), float(wide.size)


class ValueScale:
    """The running mean and deviation of the critic's targets; does nothing unless `normalize` is set."""

    def __init__(self, policy: Policy, *, normalize: bool, moments: Moments | None = None) -> None:
        """`moments` computes the moments of one rollout's targets; processes that learn together share theirs."""
        self.layer = _value_layer(policy) if normalize else None
        self._moments = moments or _moments
        self.mean, self.std, self.count = 0.0, 1.0, 0.0

    @contextmanager
    def learning(self, batch: AnyBatch) -> Generator[AnyBatch]:
        """The batch to learn from, in the units that the critic speaks in until the block ends."""
        layer = self.layer
        if layer is None:
            yield batch
            return
        valid = batch.valid if isinstance(batch, Batch) else None
        self.count_in(batch.target if valid is None else batch.target[valid])
        mean, std = self.mean, self.std
        with torch.no_grad():
            layer.weight.div_(std)
            layer.bias.sub_(mean).div_(std)
        try:
            yield replace(batch, value=(batch.value - mean) / std, target=(batch.target - mean) / std)
        finally:
            with torch.no_grad():
                layer.weight.mul_(std)
                layer.bias.mul_(std).add_(mean)

    def count_in(self, target: np.ndarray | torch.Tensor) -> None:
        """Take one rollout's targets in."""
        self.merge(*self._moments(np.asarray(target.detach().cpu() if isinstance(target, torch.Tensor) else target)))

    def merge(self, mean: float, var: float, count: float) -> None:
        """Take one rollout's targets in, of which only these are known (Chan et al. 1979), in float64."""
        before = min(self.count, MEMORY * count)
        total, delta = before + count, mean - self.mean
        var = (self.std**2 * before + var * count + delta * delta * before * count / total) / total
        self.mean += delta * count / total
        self.count = total
        # Where all targets are alike there is no scale to take; what was known before is kept.
        if var > (1e-6 * max(1e-6, abs(self.mean))) ** 2:
            self.std = float(np.sqrt(var))

    def state(self) -> dict[str, float]:
        """Everything that moves."""
        return {"mean": self.mean, "std": self.std, "count": self.count}

    def set_state(self, state: dict[str, float]) -> None:
        """Go on from where `state` was taken."""
        self.mean, self.std, self.count = (state.get(*entry) for entry in (("mean", 0.0), ("std", 1.0), ("count", 0.0)))


def _value_layer(policy: Policy) -> nn.Linear:
    layers = [m.value_out for m in policy.modules() if isinstance(m, Trunks)]
    if len(layers) != 1:
        raise ConfigError(
            "normalize_value=True needs the standard critic, whose last layer it scales; a network of your own has to "
            "scale its values itself: leave normalize_value False, or set normalize_reward"
        )
    return layers[0]
