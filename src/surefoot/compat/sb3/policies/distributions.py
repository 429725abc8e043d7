"""SB3's action distributions, with torch's distributions inside. Random numbers come from torch's global generator."""

from __future__ import annotations

from typing import Any, Self

import gymnasium as gym
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.distributions import Bernoulli, Categorical, Normal
from torch.distributions import kl_divergence as torch_kl

from surefoot.compat.sb3.policies.distribution_base import Distribution, sum_independent_dims, validated
from surefoot.compat.sb3.policies.state_noise import StateDependentNoiseDistribution, TanhBijector
from surefoot.compat.sb3.spaces import get_action_dim


class DiagGaussianDistribution(Distribution):
    """Independent normal distributions; the deviations do not depend on the observation."""

    def __init__(self, action_dim: int) -> None:
        self.action_dim = action_dim

    def proba_distribution_net(self, latent_dim: int, log_std_init: float = 0.0) -> tuple[nn.Module, nn.Parameter]:
        log_std = torch.ones(self.action_dim) * log_std_init
        return nn.Linear(latent_dim, self.action_dim), nn.Parameter(log_std, requires_grad=True)

    def proba_distribution(self, mean_actions: Tensor, log_std: Tensor) -> Self:
        std = torch.ones_like(mean_actions) * log_std.exp()
        self.distribution = Normal(mean_actions, std, validate_args=validated())
        return self

    def log_prob(self, actions: Tensor) -> Tensor:
        return sum_independent_dims(self.distribution.log_prob(actions))

    def entropy(self) -> Tensor | None:
        return sum_independent_dims(self.distribution.entropy())

    def sample(self) -> Tensor:
        return self.distribution.rsample()

    def mode(self) -> Tensor:
        return self.distribution.mean


class SquashedDiagGaussianDistribution(DiagGaussianDistribution):
    """Normal distributions squashed into (-1, 1) by tanh."""

    def __init__(self, action_dim: int, epsilon: float = 1e-6) -> None:
        super().__init__(action_dim)
        # Keeps log(1 - tanh²) finite.
        self.epsilon = epsilon
        self.gaussian_actions: Tensor | None = None

    def log_prob(self, actions: Tensor, gaussian_actions: Tensor | None = None) -> Tensor:
        raw = TanhBijector.inverse(actions) if gaussian_actions is None else gaussian_actions
        density = super().log_prob(raw)
        correction = torch.log(1 - actions**2 + self.epsilon)
        return density - (correction.sum(dim=1) if correction.dim() > 1 else correction.sum())

    def entropy(self) -> Tensor | None:
        return None

    def sample(self) -> Tensor:
        self.gaussian_actions = super().sample()
        return torch.tanh(self.gaussian_actions)

    def mode(self) -> Tensor:
        self.gaussian_actions = super().mode()
        return torch.tanh(self.gaussian_actions)

    def log_prob_from_params(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        action = self.actions_from_params(*args, **kwargs)
        return action, self.log_prob(action, self.gaussian_actions)


class CategoricalDistribution(Distribution):
    """One of n choices."""

    def __init__(self, action_dim: int) -> None:
        self.action_dim = action_dim

    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return nn.Linear(latent_dim, self.action_dim)

    def proba_distribution(self, action_logits: Tensor) -> Self:
        self.distribution = Categorical(logits=action_logits, validate_args=validated())
        return self

    def log_prob(self, actions: Tensor) -> Tensor:
        return self.distribution.log_prob(actions)

    def entropy(self) -> Tensor | None:
        return self.distribution.entropy()

    def sample(self) -> Tensor:
        return self.distribution.sample()

    def mode(self) -> Tensor:
        return torch.argmax(self.distribution.probs, dim=1)


class MultiCategoricalDistribution(Distribution):
    """Several independent choices."""

    def __init__(self, action_dims: list[int]) -> None:
        self.action_dims = action_dims

    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return nn.Linear(latent_dim, sum(self.action_dims))

    def proba_distribution(self, action_logits: Tensor) -> Self:
        parts = torch.split(action_logits, list(self.action_dims), dim=1)
        self.distribution = [Categorical(logits=part, validate_args=validated()) for part in parts]
        return self

    def log_prob(self, actions: Tensor) -> Tensor:
        columns = torch.unbind(actions, dim=1)
        parts = [dist.log_prob(a) for dist, a in zip(self.distribution, columns, strict=True)]
        return torch.stack(parts, dim=1).sum(dim=1)

    def entropy(self) -> Tensor | None:
        return torch.stack([dist.entropy() for dist in self.distribution], dim=1).sum(dim=1)

    def sample(self) -> Tensor:
        return torch.stack([dist.sample() for dist in self.distribution], dim=1)

    def mode(self) -> Tensor:
        return torch.stack([torch.argmax(dist.probs, dim=1) for dist in self.distribution], dim=1)


class BernoulliDistribution(Distribution):
    """Several independent bits."""

    def __init__(self, action_dims: int) -> None:
        self.action_dims = action_dims

    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return nn.Linear(latent_dim, self.action_dims)

    def proba_distribution(self, action_logits: Tensor) -> Self:
        self.distribution = Bernoulli(logits=action_logits, validate_args=validated())
        return self

    def log_prob(self, actions: Tensor) -> Tensor:
        return self.distribution.log_prob(actions).sum(dim=1)

    def entropy(self) -> Tensor | None:
        return self.distribution.entropy().sum(dim=1)

    def sample(self) -> Tensor:
        return self.distribution.sample()

    def mode(self) -> Tensor:
        return torch.round(self.distribution.probs)


def make_proba_distribution(
    action_space: gym.Space[Any], use_sde: bool = False, dist_kwargs: dict[str, Any] | None = None
) -> Distribution:
    kwargs = dist_kwargs or {}
    match action_space:
        case spaces.Box():
            kind = StateDependentNoiseDistribution if use_sde else DiagGaussianDistribution
            return kind(get_action_dim(action_space), **kwargs)
        case spaces.Discrete():
            return CategoricalDistribution(int(action_space.n), **kwargs)
        case spaces.MultiDiscrete():
            return MultiCategoricalDistribution([int(n) for n in action_space.nvec], **kwargs)
        case spaces.MultiBinary():
            return BernoulliDistribution(get_action_dim(action_space), **kwargs)
        case _:
            raise NotImplementedError(
                f"actions in {action_space} are not supported; use Box, Discrete, MultiDiscrete or MultiBinary"
            )


def kl_divergence(dist_true: Distribution, dist_pred: Distribution) -> Tensor:
    """Return KL(true || pred) of two distributions of the same class, per row."""
    assert type(dist_true) is type(dist_pred), "the distributions have different classes"
    if isinstance(dist_true, MultiCategoricalDistribution):
        assert isinstance(dist_pred, MultiCategoricalDistribution)
        pairs = zip(dist_true.distribution, dist_pred.distribution, strict=True)
        return torch.stack([torch_kl(p, q) for p, q in pairs], dim=1).sum(dim=1)
    return torch_kl(dist_true.distribution, dist_pred.distribution)
