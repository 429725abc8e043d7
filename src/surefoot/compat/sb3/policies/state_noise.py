"""gSDE, and the tanh that squashes actions."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from surefoot.compat.sb3.policies.distribution_base import Distribution, sum_independent_dims


class StateDependentNoiseDistribution(Distribution):
    """gSDE (Raffin et al. 2021): the noise is featuresᵀ·W with a matrix W that is drawn by `sample_weights`."""

    exploration_mat: Tensor
    exploration_matrices: Tensor

    def __init__(
        self,
        action_dim: int,
        full_std: bool = True,
        use_expln: bool = False,
        squash_output: bool = False,
        learn_features: bool = False,
        epsilon: float = 1e-6,
    ) -> None:
        self.action_dim, self.latent_sde_dim = action_dim, 0
        self.full_std, self.use_expln, self.learn_features = full_std, use_expln, learn_features
        self.epsilon = epsilon
        self.bijector = TanhBijector(epsilon) if squash_output else None
        self._latent_sde: Tensor | None = None

    def get_std(self, log_std: Tensor) -> Tensor:
        """Return the deviations [features, actions]: exp, or with `use_expln` 1 + log(1 + x) where x > 0."""
        if self.use_expln:
            # Grows slower than exp above 0, and is continuous there.
            positive = torch.log1p(log_std * (log_std > 0) + self.epsilon) + 1.0
            std = torch.where(log_std > 0, positive, torch.exp(log_std.clamp(max=0.0)))
        else:
            std = torch.exp(log_std)
        return std if self.full_std else torch.ones(self.latent_sde_dim, self.action_dim, device=std.device) * std

    def sample_weights(self, log_std: Tensor, batch_size: int = 1) -> None:
        """Draw new exploration matrices: one for predictions, and one per env."""
        weights = Normal(torch.zeros_like(std := self.get_std(log_std)), std)
        self.exploration_mat = weights.rsample()
        self.exploration_matrices = weights.rsample(torch.Size((batch_size,)))

    def proba_distribution_net(
        self, latent_dim: int, log_std_init: float = -2.0, latent_sde_dim: int | None = None
    ) -> tuple[nn.Module, nn.Parameter]:
        self.latent_sde_dim = latent_dim if latent_sde_dim is None else latent_sde_dim
        columns = self.action_dim if self.full_std else 1
        log_std = nn.Parameter(torch.ones(self.latent_sde_dim, columns) * log_std_init, requires_grad=True)
        self.sample_weights(log_std)
        return nn.Linear(latent_dim, self.action_dim), log_std

    def proba_distribution(self, mean_actions: Tensor, log_std: Tensor, latent_sde: Tensor) -> Self:
        # Detached: only the deviation learns how much to explore.
        self._latent_sde = latent_sde if self.learn_features else latent_sde.detach()
        variance = torch.mm(self._latent_sde**2, self.get_std(log_std) ** 2)
        self.distribution = Normal(mean_actions, torch.sqrt(variance + self.epsilon))
        return self

    def log_prob(self, actions: Tensor) -> Tensor:
        raw = actions if self.bijector is None else self.bijector.inverse(actions)
        log_prob = sum_independent_dims(self.distribution.log_prob(raw))
        return log_prob if self.bijector is None else log_prob - self.bijector.log_prob_correction(raw).sum(dim=1)

    def entropy(self) -> Tensor | None:
        return None if self.bijector is not None else sum_independent_dims(self.distribution.entropy())

    def sample(self) -> Tensor:
        assert self._latent_sde is not None
        return self._squashed(self.distribution.mean + self.get_noise(self._latent_sde))

    def mode(self) -> Tensor:
        return self._squashed(self.distribution.mean)

    def get_noise(self, latent_sde: Tensor) -> Tensor:
        """Return the noise of each row; rows have their own matrix if there are as many matrices as rows."""
        latent = latent_sde if self.learn_features else latent_sde.detach()
        if len(latent) == 1 or len(latent) != len(self.exploration_matrices):
            return torch.mm(latent, self.exploration_mat)
        return torch.bmm(latent.unsqueeze(1), self.exploration_matrices).squeeze(1)

    def _squashed(self, actions: Tensor) -> Tensor:
        return actions if self.bijector is None else self.bijector.forward(actions)


class TanhBijector:
    """tanh with its inverse and the correction of log-probabilities."""

    def __init__(self, epsilon: float = 1e-6) -> None:
        self.epsilon = epsilon

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """Return tanh(x)."""
        return torch.tanh(x)

    @staticmethod
    def atanh(x: Tensor) -> Tensor:
        return 0.5 * (x.log1p() - (-x).log1p())

    @staticmethod
    def inverse(y: Tensor) -> Tensor:
        """Return the inverse of tanh, finite at ±1 too."""
        limit = 1.0 - torch.finfo(y.dtype).eps
        return TanhBijector.atanh(y.clamp(min=-limit, max=limit))

    def log_prob_correction(self, x: Tensor) -> Tensor:
        """Return log(1 - tanh(x)²)."""
        return torch.log(1.0 - torch.tanh(x) ** 2 + self.epsilon)
