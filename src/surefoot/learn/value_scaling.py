"""Targets with mean 0 and standard deviation 1 for the critic; everything else keeps values in units of the return.

The statistics concern only the critic's last layer (PopArt, van Hasselt et al. 2016). At the start of an update that layer
is divided so that it outputs (V - mean) / std and learns targets in the same units; at the end it is multiplied back, so
its output is preserved exactly while the statistics change. Between updates its weights are plain: acting, GAE, files and
the kernel see ordinary values. Adam's slots belong to the divided layer, so they do not depend on the scale.
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

# Earlier rollouts together count at most as much as 20 of the newest: returns grow while a policy learns, and with an
# unlimited count the scale would lag behind. Smaller follows faster but is noisier.
MEMORY = 20.0

AnyBatch = TypeVar("AnyBatch", Batch, NativeBatch)
Moments = Callable[[np.ndarray], tuple[float, float, float]]
"""Returns (mean, variance, count) of some numbers."""


def _moments(target: np.ndarray) -> tuple[float, float, float]:
    wide = target.astype(np.float64)
    return float(wide.mean()), float(wide.var()), float(wide.size)


class ValueScale:
    """The running mean and standard deviation of the critic's targets; does nothing unless `normalize` is set.

    `moments` computes the moments of one rollout's targets; processes that learn together pass a function that pools them.
    """

    def __init__(self, policy: Policy, *, normalize: bool, moments: Moments = _moments) -> None:
        self.policy, self.normalize, self.moments = policy, normalize, moments
        self.mean, self.std, self.count = 0.0, 1.0, 0.0
        self.layer()

    def layer(self) -> nn.Linear | None:
        """Return the critic's last layer, which is looked up in every update: it may have been replaced; None if unused."""
        if not self.normalize:
            return None
        layers = [m.value_out for m in self.policy.modules() if isinstance(m, Trunks)]
        if len(layers) != 1:
            raise ConfigError(
                "normalize_value=True scales the last layer of the standard critic, which this policy does not have; "
                "set normalize_value to False, scale the values in your network, or set normalize_reward"
            )
        return layers[0]

    @contextmanager
    def learning(self, batch: AnyBatch) -> Generator[AnyBatch]:
        """Yield the batch in the critic's units, and keep the last layer divided until the block ends."""
        layer = self.layer()
        if layer is None:
            yield batch
            return
        self.count_in(batch.target if batch.valid is None else batch.target[batch.valid])
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
        """Add the targets of one rollout to the statistics."""
        self.merge(*self.moments(np.asarray(target.detach().cpu() if isinstance(target, torch.Tensor) else target)))

    def merge(self, mean: float, var: float, count: float) -> None:
        """Add one rollout's targets by their moments (Chan et al. 1979), in float64."""
        before = min(self.count, MEMORY * count)
        total, delta = before + count, mean - self.mean
        var = (self.std**2 * before + var * count + delta * delta * before * count / total) / total
        self.mean += delta * count / total
        self.count = total
        # Equal targets have no scale, and dividing by their rounding error would blow the layer up: keep the old scale.
        if var > (1e-6 * max(1e-6, abs(self.mean))) ** 2:
            self.std = float(np.sqrt(var))

    def state(self) -> dict[str, float]:
        return {"mean": self.mean, "std": self.std, "count": self.count}

    def set_state(self, state: dict[str, float]) -> None:
        """Restore what `state` returned; missing entries get their initial values."""
        self.mean, self.std = state.get("mean", 0.0), state.get("std", 1.0)
        self.count = state.get("count", 0.0)
