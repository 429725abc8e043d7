"""Heads for continuous and hybrid actions, and `make_head` for any action space."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete
from surefoot.errors import ConfigError, SpaceError
from surefoot.nets.config import NetConfig
from surefoot.nets.continuous_distributions import LOG_STD_RANGE, Beta, Gaussian, Joint, TanhGaussian, side_by_side
from surefoot.nets.distributions import Distribution
from surefoot.nets.heads import DiscreteHead, Head, MultiDiscreteHead


class GaussianHead(Head):
    """Independent normals with a state-independent log-std; clipped for the environment, stored as drawn (detail N5)."""

    def __init__(self, space: Box, *, log_std_init: float) -> None:
        super().__init__()
        self.shape, self.outputs = space.shape, space.size
        self.low, self.high = space.bounds()
        self.log_std = nn.Parameter(torch.full((space.size,), log_std_init))

    def distribution(self, raw: Tensor, features: Tensor, mask: Tensor | None) -> Gaussian:
        return Gaussian(raw, self.log_std)

    def env_action(self, action: np.ndarray) -> np.ndarray:
        return np.clip(action.reshape(len(action), *self.shape), self.low, self.high)

    def action_std(self) -> float | None:
        return float(self.log_std.detach().clamp(*LOG_STD_RANGE).exp().mean())


class TanhHead(GaussianHead):
    """A normal squashed into the bounds by tanh, so that no probability lies outside them."""

    log_scale: Tensor

    def __init__(self, space: Box, *, log_std_init: float) -> None:
        super().__init__(space, log_std_init=log_std_init)
        self.middle, self.half_width = _middle_and_half_width(space, "squash=True")
        self.register_buffer("log_scale", torch.from_numpy(np.log(self.half_width)).flatten(), persistent=False)

    def distribution(self, raw: Tensor, features: Tensor, mask: Tensor | None) -> TanhGaussian:
        return TanhGaussian(raw, self.log_std, self.log_scale)

    def env_action(self, action: np.ndarray) -> np.ndarray:
        squashed = self.middle + self.half_width * np.tanh(action.reshape(len(action), *self.shape))
        return np.clip(squashed, self.low, self.high)  # rounding can exceed the bound


class BetaHead(Head):
    """Beta distributions stretched to the bounds: no probability lies outside them."""

    log_scale: Tensor

    def __init__(self, space: Box) -> None:
        super().__init__()
        self.middle, self.half_width = _middle_and_half_width(space, "beta=True")
        self.shape, self.outputs = space.shape, 2 * space.size
        self.low, self.high = space.bounds()
        log_scale = torch.from_numpy(np.log(2.0 * self.half_width)).flatten()
        self.register_buffer("log_scale", log_scale, persistent=False)

    def distribution(self, raw: Tensor, features: Tensor, mask: Tensor | None) -> Beta:
        # Softplus + 1 keeps both parameters above 1: the density then has a single peak.
        alpha, beta = (1.0 + _SMALL + nn.functional.softplus(raw)).chunk(2, dim=-1)
        return Beta(alpha, beta, self.log_scale)

    def env_action(self, action: np.ndarray) -> np.ndarray:
        unit = 2.0 * action.reshape(len(action), *self.shape) - 1.0
        return np.clip(self.middle + self.half_width * unit, self.low, self.high).astype(np.float32)


class StateDependentHead(Head):
    """gSDE (Raffin et al. 2021): noise = featuresᵀ·W with W ~ N(0, std²), the same W for several steps.

    Over W the action is normal with variance Σᵢ fᵢ² stdᵢ². The features are detached there: only the std should learn how
    much to explore.
    """

    def __init__(self, space: Box, features: int, *, log_std_init: float) -> None:
        super().__init__()
        self.shape, self.outputs = space.shape, space.size
        self.low, self.high = space.bounds()
        self.log_std = nn.Parameter(torch.full((features, space.size), log_std_init))

    def distribution(self, raw: Tensor, features: Tensor, mask: Tensor | None) -> Gaussian:
        variance = features.detach().square() @ self._std().square()
        # A sum over many features exceeds the limit of a single std (e²), so its limit is far higher. 1e-6: log(0) is -inf.
        return Gaussian(raw, 0.5 * (variance + 1e-6).log(), highest=20.0)

    def draw(self, streams: int, generator: torch.Generator) -> Tensor:
        """Return new exploration matrices, [streams, F, A]."""
        std = self._std().detach()
        return torch.empty((streams, *std.shape), device=std.device).normal_(generator=generator) * std

    def explore(self, dist: Distribution, features: Tensor, matrix: Tensor, generator: torch.Generator) -> Tensor:
        """Return the actions for these exploration matrices."""
        return dist.mode() + torch.bmm(features.unsqueeze(1), matrix).squeeze(1)

    def env_action(self, action: np.ndarray) -> np.ndarray:
        return np.clip(action.reshape(len(action), *self.shape), self.low, self.high)

    def action_std(self) -> float | None:
        return float(self._std().detach().mean())

    def noise(self) -> StateDependentHead | None:
        return self

    def _std(self) -> Tensor:
        return self.log_std.clamp(*LOG_STD_RANGE).exp()


class HybridHead(Head):
    """Choices and real numbers in one row, choices first; there is one head for each half."""

    def __init__(self, space: Hybrid, numbers: GaussianHead | TanhHead | BetaHead | StateDependentHead) -> None:
        super().__init__()
        self.chosen, self.numbers = MultiDiscreteHead(MultiDiscrete(space.nvec)), numbers
        self.outputs, self.columns = self.chosen.outputs + numbers.outputs, len(space.nvec)

    def distribution(self, raw: Tensor, features: Tensor, mask: Tensor | None) -> Joint:
        choices, numbers = raw.split([self.chosen.outputs, self.numbers.outputs], dim=-1)
        return Joint(
            self.chosen.distribution(choices, features, mask), self.numbers.distribution(numbers, features, None)
        )

    def explore(self, dist: Distribution, features: Tensor, matrix: Tensor, generator: torch.Generator) -> Tensor:
        """Return sampled choices, with the numbers for these exploration matrices."""
        assert isinstance(dist, Joint)
        assert isinstance(self.numbers, StateDependentHead)
        numbers = self.numbers.explore(dist.numbers, features, matrix, generator)
        return side_by_side(dist.choices.sample(generator), numbers)

    def env_action(self, action: np.ndarray) -> np.ndarray:
        numbers = self.numbers.env_action(action[:, self.columns :]).reshape(len(action), -1)
        return np.concatenate([action[:, : self.columns], numbers], axis=1)

    def action_std(self) -> float | None:
        return self.numbers.action_std()

    def choices(self) -> tuple[int, ...]:
        return self.chosen.choices()

    def noise(self) -> StateDependentHead | None:
        return self.numbers.noise()


# Keeps α + β of a Beta above 2: at 2 it is flat, and (α - 1) / (α + β - 2) is 0 / 0.
_SMALL = 1e-4


def _middle_and_half_width(space: Box, setting: str) -> tuple[np.ndarray, np.ndarray]:
    """Return middle and half width of each component's bounds; raise `SpaceError` if a bound is infinite."""
    if not space.bounded:
        raise SpaceError(
            f"{setting} needs an action space with finite bounds on both sides; this one has infinite bounds"
        )
    low, high = space.bounds()
    # Halved first: the difference of two large float32 numbers can overflow.
    middle, half_width = high / 2.0 + low / 2.0, high / 2.0 - low / 2.0
    if not ((half_width > 0) & (half_width < 1e30)).all():
        raise SpaceError(f"{setting} needs bounds with a finite width above 0; these are {space.low} to {space.high}")
    return middle, half_width


AnyHead = DiscreteHead | MultiDiscreteHead | GaussianHead | TanhHead | BetaHead | StateDependentHead | HybridHead


def make_head(space: ActionSpace, features: int, config: NetConfig) -> AnyHead:
    """Return the head for an action space; `features` is the width of the actor's trunk."""
    if isinstance(space, Hybrid):
        return HybridHead(space, _continuous(space.box, features, config))
    if isinstance(space, Box):
        return _continuous(space, features, config)
    for wrong in ("squash", "gsde", "beta"):
        if getattr(config, wrong):
            raise ConfigError(f"{wrong}=True is for continuous actions; {space} is discrete: leave it False")
    return DiscreteHead(space) if isinstance(space, Discrete) else MultiDiscreteHead(space)


def _continuous(
    space: Box, features: int, config: NetConfig
) -> GaussianHead | TanhHead | BetaHead | StateDependentHead:
    if config.gsde:
        return StateDependentHead(space, features, log_std_init=config.log_std_init)
    if config.beta:
        return BetaHead(space)
    return (TanhHead if config.squash else GaussianHead)(space, log_std_init=config.log_std_init)
