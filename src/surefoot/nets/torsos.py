"""From observations to features: linear layers, MLPs, flattening, normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.data.spaces import Box, ObservationSpace
from surefoot.errors import SpaceError
from surefoot.nets.normalizer import Normalizer

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "leaky_relu": nn.LeakyReLU,
}


def layer(inputs: int, outputs: int, *, gain: float, ortho_init: bool) -> nn.Linear:
    """Return a linear layer with orthogonal weights and zero biases (detail C2), or torch's default initialisation."""
    linear = nn.Linear(inputs, outputs)
    if ortho_init:
        nn.init.orthogonal_(linear.weight, gain)
        nn.init.zeros_(linear.bias)
    return linear


def mlp(inputs: int, hidden: Sequence[int], *, activation: str, ortho_init: bool) -> nn.Sequential:
    """Return linear → activation for each width in `hidden`; gain √2."""
    modules: list[nn.Module] = []
    for width in hidden:
        modules += [layer(inputs, width, gain=math.sqrt(2.0), ortho_init=ortho_init), ACTIVATIONS[activation]()]
        inputs = width
    return nn.Sequential(*modules)


class Flatten(nn.Module):
    """All observation parts as one float row, optionally normalised; bytes are divided by 255."""

    def __init__(self, observation: ObservationSpace, *, normalize: bool, clip: float) -> None:
        super().__init__()
        if not observation:
            raise SpaceError("the observation has no parts; this policy needs at least one Box")
        # Sorted: a dict in another order must give the same row.
        self.parts: list[tuple[str, Box]] = sorted(observation.items())
        self.size = sum(box.size for _, box in self.parts)
        self.normalizer = Normalizer(self.size, clip=clip) if normalize else None

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        if len(self.parts) == 1:
            flat = _as_row(obs[self.parts[0][0]], self.parts[0][1])
        else:
            flat = torch.cat([_as_row(obs[name], box) for name, box in self.parts], dim=-1)
        return flat if self.normalizer is None else self.normalizer(flat)

    def rows(self, obs: dict[str, np.ndarray], dtype: type[np.floating[Any]] = np.float32) -> np.ndarray:
        """Return the rows [M, size] by numpy, not normalised."""
        rows = [obs[name].reshape(len(obs[name]), -1).astype(dtype, copy=False) for name, _ in self.parts]
        scaled = [r / dtype(255) if box.dtype == "uint8" else r for r, (_, box) in zip(rows, self.parts, strict=True)]
        return scaled[0] if len(scaled) == 1 else np.concatenate(scaled, axis=1)

    def absorb(self, obs: dict[str, np.ndarray]) -> None:
        """Add raw rows to the normaliser, if there is one."""
        if self.normalizer is not None:
            self.normalizer.update(self.rows(obs, np.float64))


def _as_row(x: Tensor, box: Box) -> Tensor:
    if len(box.shape) != 1:
        x = x.reshape((*x.shape[: x.dim() - len(box.shape)], box.size))
    if x.dtype == torch.uint8:
        return x.float() / 255.0
    return x if x.dtype == torch.float32 else x.float()
