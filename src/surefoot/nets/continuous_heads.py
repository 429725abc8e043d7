"""Heads for real-valued actions, and for choices and real numbers together; and the head for any action space."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete
from surefoot.errors import ConfigError, SpaceError
from surefoot.nets.config import NetConfig
from surefoot.nets.continuous_distributions import LOG_STD_RANGE, Beta, Gaussian, Joint, TanhGaussian, side_by_side
from surefoot.nets.distributions import Distribution
from surefoot.nets.heads import DiscreteHead, Head
from surefoot.nets.multi_discrete import MultiDiscreteHead


class GaussianHead(Head):
    """Independent normals with a state-independent log-std; clipped for the world, stored as drawn (detail N5)."""

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
    """A normal squashed into the bounds, so that no probability lies outside them."""

    log_scale: Tensor

    def __init__(self, space: Box, *, log_std_init: float) -> None:
        super().__init__(space, log_std_init=log_std_init)
        self.middle, self.half_width = _middle_and_half_width(space, "squash=True")
        self.register_buffer("log_scale", torch.from_numpy(np.log(self.half_width)).flatten(), persistent=False)

    def distribution(self, raw: Tensor, features: Tensor, mask: Tensor | None) -> TanhGaussian:
        return TanhGaussian(raw, self.log_std, self.log_scale)

    def env_action(self, action: np.ndarray) -> np.ndarray:
        squashed = self.middle + self.half_width * np.tanh(action.reshape(len(action), *self.shape))
        return np.clip(squashed, self.low, self.high)  # rounding may step over the bound


class BetaHead(Head):
    """Beta distributions stretched to the bounds: no probability outside them, and no infinite tails at them."""

    log_scale: Tensor

    def __init__(self, space: Box) -> None:
        super().__init__()
        self.middle, self.half_width = _middle_and_half_width(space, "beta=True")
        self.shape, self.outputs = space.shape, 2 * space.size
        self.low, self.high = space.bounds()
        log_scale = torch.from_numpy(np.log(2.0 * self.half_width)).flatten()
        self.register_buffer("log_scale", log_scale, persistent=False)

    def distribution(self, raw: Tensor, features: Tensor, mask: Tensor | None) -> Beta:
        # Softplus + 1 keeps both above 1: one peak, and it may lie anywhere.
        alpha, beta = (1.0 + _SMALL + nn.functional.softplus(raw)).chunk(2, dim=-1)
        return Beta(alpha, beta, self.log_scale)

    def env_action(self, action: np.ndarray) -> np.ndarray:
        unit = 2.0 * action.reshape(len(action), *self.shape) - 1.0
        return np.clip(self.middle + self.half_width * unit, self.low, self.high).astype(np.float32)


class StateDependentHead(Head):
    """gSDE (Raffin et al. 2021): noise = featuresᵀ·W with W ~ N(0, std²), kept for several steps.

    Over W the action is normal with variance Σᵢ fᵢ² stdᵢ²; features are detached there, as the std alone should
    learn how much to explore.
    """

    def __init__(self, space: Box, features: int, *, log_std_init: float) -> None:
        super().__init__()
        self.shape, self.outputs = space.shape, space.size
        self.low, self.high = space.bounds()
        self.log_std = nn.Parameter(torch.full((features, space.size), log_std_init))

    def distribution(self, raw: Tensor, features: Tensor, mask: Tensor | None) -> Gaussian:
        variance = features.detach().square() @ self._std().square()
        # The sum over many features may well be larger than any one std may be.
        return Gaussian(raw, 0.5 * (variance + 1e-6).log(), highest=20.0)

    def draw(self, streams: int, generator: torch.Generator) -> Tensor:
        """[streams, F, A] fresh exploration matrices."""
        std = self._std().detach()
        return torch.empty((streams, *std.shape), device=std.device).normal_(generator=generator) * std

    def explore(self, dist: Distribution, features: Tensor, matrix: Tensor, generator: torch.Generator) -> Tensor:
        """The action that goes with these exploration matrices."""
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
    """Choices and real numbers in one row, choices first; each half is a head of its own."""

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
        """Choices as drawn, numbers as the exploration matrices have them."""
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


_SMALL = 1e-4
"""Keeps a Beta's α + β away from 2, where it is flat and has no mode."""


def _middle_and_half_width(space: Box, asked: str) -> tuple[np.ndarray, np.ndarray]:
    """Of each component's bounds; a space that has none on some side is refused."""
    if not space.bounded:
        raise SpaceError(f"{asked} needs an action space with finite bounds on both sides; this one is open")
    low, high = space.bounds()
    # Halved first: the difference of two large float32 may not be one.
    middle, half_width = high / 2.0 + low / 2.0, high / 2.0 - low / 2.0
    if not ((half_width > 0) & (half_width < 1e30)).all():
        raise SpaceError(f"{asked} needs bounds with a finite width above 0; these are {space.low} to {space.high}")
    return middle, half_width


AnyHead = DiscreteHead | MultiDiscreteHead | GaussianHead | TanhHead | BetaHead | StateDependentHead | HybridHead


def make_head(space: ActionSpace, features: int, config: NetConfig) -> AnyHead:
    """The head for an action space; `features` is the width of what the actor's trunk gives."""
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
