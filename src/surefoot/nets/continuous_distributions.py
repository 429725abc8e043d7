"""Distributions over continuous and hybrid actions: normal, squashed normal, Beta, joint."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from surefoot.nets.distributions import MultiCategorical

# The limits of SAC in Spinning Up and SB3.
LOG_STD_RANGE = (-20.0, 2.0)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_LOG_2 = math.log(2.0)
# A Beta action keeps this distance from its bounds, where its density can be 0 or infinite.
_EDGE = 1e-6


@cache
def _hermite() -> tuple[Tensor, Tensor]:
    """Return nodes and weights with E[f(z)] ≈ Σ wᵢ f(zᵢ) for a standard normal z."""
    # On first use: numpy.polynomial takes 2 % of the time from a command to its first step.
    nodes, weights = np.polynomial.hermite_e.hermegauss(32)
    return torch.tensor(nodes, dtype=torch.float32), torch.tensor(weights / weights.sum(), dtype=torch.float32)


class Gaussian:
    """Independent normals; rows [B, A]."""

    __slots__ = ("log_std", "mean", "std")

    def __init__(self, mean: Tensor, log_std: Tensor, *, highest: float = LOG_STD_RANGE[1]) -> None:
        self.mean = mean
        self.log_std = log_std.clamp(LOG_STD_RANGE[0], highest)
        self.std = self.log_std.exp()

    def sample(self, generator: torch.Generator) -> Tensor:
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        return torch.addcmul(self.mean, self.std.expand_as(self.mean), noise)

    def mode(self) -> Tensor:
        return self.mean

    def log_prob(self, action: Tensor) -> Tensor:
        z = (action - self.mean) / self.std
        return -(0.5 * z.square() + self.log_std + _HALF_LOG_2PI).sum(dim=-1)

    def entropy(self) -> Tensor:
        return (self.log_std + (0.5 + _HALF_LOG_2PI)).sum(dim=-1).expand(self.mean.shape[:-1])

    def params(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "std": self.std.expand_as(self.mean)}


class TanhGaussian(Gaussian):
    """A normal squashed by tanh onto (-1, 1) and stretched to half-width `scale`.

    Actions are stored *before* the tanh, so that saturation loses nothing; densities are those of the squashed action.
    """

    __slots__ = ("log_scale",)

    def __init__(self, mean: Tensor, log_std: Tensor, log_scale: Tensor) -> None:
        super().__init__(mean, log_std)
        self.log_scale = log_scale

    def log_prob(self, action: Tensor) -> Tensor:
        return super().log_prob(action) - (log_tanh_slope(action) + self.log_scale).sum(dim=-1)

    def entropy(self) -> Tensor:
        """H[u] + E[log |da/du|], the expectation by 32-point Gauss-Hermite quadrature: no closed form exists."""
        nodes, weights = (x.to(self.mean.device).view(-1, *([1] * self.mean.dim())) for x in _hermite())
        slope = (weights * log_tanh_slope(self.mean + self.std * nodes)).sum(dim=0)
        return super().entropy() + (slope + self.log_scale).sum(dim=-1)


class Beta:
    """Independent Beta(α, β) on (0, 1) with α, β > 1, so that each has one peak; rows [B, A].

    Actions are stored within (0, 1); densities are those of the action stretched to width `scale`. They are computed in
    float64: the difference of log-gammas in the hundreds is off by 1e-4 in float32, and so is the first ratio.
    """

    __slots__ = ("alpha", "beta", "log_scale")

    def __init__(self, alpha: Tensor, beta: Tensor, log_scale: Tensor) -> None:
        self.alpha, self.beta, self.log_scale = alpha, beta, log_scale

    def sample(self, generator: torch.Generator) -> Tensor:
        # A ratio of two gamma variables. torch.distributions uses the same call, but takes no generator.
        a = torch._standard_gamma(self.alpha, generator=generator)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
        b = torch._standard_gamma(self.beta, generator=generator)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
        return (a / (a + b)).clamp(_EDGE, 1.0 - _EDGE)

    def mode(self) -> Tensor:
        return ((self.alpha - 1.0) / (self.alpha + self.beta - 2.0)).clamp(_EDGE, 1.0 - _EDGE)

    def log_prob(self, action: Tensor) -> Tensor:
        a, b, x = self.alpha.double(), self.beta.double(), action.double()
        body = (a - 1.0) * x.log() + (b - 1.0) * (-x).log1p()
        return (body - _log_beta(a, b) - self.log_scale).sum(dim=-1).to(self.alpha.dtype)

    def entropy(self) -> Tensor:
        a, b = self.alpha.double(), self.beta.double()
        inner = (a - 1.0) * a.digamma() + (b - 1.0) * b.digamma() - (a + b - 2.0) * (a + b).digamma()
        return (_log_beta(a, b) - inner + self.log_scale).sum(dim=-1).to(self.alpha.dtype)

    def params(self) -> dict[str, Tensor]:
        return {"alpha": self.alpha, "beta": self.beta}


class Joint:
    """Choices and real numbers, independent given the observation; the first `columns` columns are the choices."""

    __slots__ = ("choices", "columns", "numbers")

    def __init__(self, choices: MultiCategorical, numbers: Gaussian | Beta) -> None:
        self.choices, self.numbers, self.columns = choices, numbers, len(choices.parts)

    def sample(self, generator: torch.Generator) -> Tensor:
        return side_by_side(self.choices.sample(generator), self.numbers.sample(generator))

    def mode(self) -> Tensor:
        return side_by_side(self.choices.mode(), self.numbers.mode())

    def log_prob(self, action: Tensor) -> Tensor:
        chosen, numbers = action[..., : self.columns].long(), action[..., self.columns :]
        return self.choices.log_prob(chosen) + self.numbers.log_prob(numbers)

    def entropy(self) -> Tensor:
        return self.choices.entropy() + self.numbers.entropy()

    def params(self) -> dict[str, Tensor]:
        return {**self.choices.params(), **self.numbers.params()}


def side_by_side(choices: Tensor, numbers: Tensor) -> Tensor:
    """Return one row of floats from indices and numbers; float32 represents integers up to 2²⁴ exactly."""
    return torch.cat([choices.to(numbers.dtype), numbers], dim=-1)


def _log_beta(alpha: Tensor, beta: Tensor) -> Tensor:
    """Return log B(α, β)."""
    return alpha.lgamma() + beta.lgamma() - (alpha + beta).lgamma()


def log_tanh_slope(u: Tensor) -> Tensor:
    """Return log(1 - tanh² u) in the form that stays finite when tanh saturates (P26)."""
    return 2.0 * (_LOG_2 - u - F.softplus(-2.0 * u))
