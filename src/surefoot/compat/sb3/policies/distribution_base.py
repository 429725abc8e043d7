"""Base class of SB3's action distributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import torch
from torch import Tensor


def sum_independent_dims(tensor: Tensor) -> Tensor:
    """Return the sum over the actions' columns; of a single action, over everything."""
    return tensor.sum(dim=1) if tensor.dim() > 1 else tensor.sum()


def validated() -> bool | None:
    """Return torch's `validate_args`: the default, or False in an export, where no branch may depend on values."""
    return False if torch.compiler.is_exporting() else None


class Distribution(ABC):
    """One distribution per row. `proba_distribution` sets the parameters and returns the object itself."""

    distribution: Any

    @abstractmethod
    def proba_distribution_net(self, *args: Any, **kwargs: Any) -> Any:
        """Return the layer that computes the parameters, with a parameter for the deviation if there is one."""

    @abstractmethod
    def proba_distribution(self, *args: Any, **kwargs: Any) -> Self:
        """Set the parameters."""

    @abstractmethod
    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log-probabilities of actions, [N]."""

    @abstractmethod
    def entropy(self) -> Tensor | None:
        """Return the entropies, [N]; None if there is no closed form."""

    @abstractmethod
    def sample(self) -> Tensor:
        """Return sampled actions."""

    @abstractmethod
    def mode(self) -> Tensor:
        """Return the most likely actions."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies: without the last distribution, whose tensors belong to a graph of gradients."""
        parts = {name: x for name, x in vars(self).items() if name != "distribution"}
        return {name: x.detach() if isinstance(x, Tensor) else x for name, x in parts.items()}

    def get_actions(self, deterministic: bool = False) -> Tensor:
        """Return the most likely actions, or sampled ones."""
        return self.mode() if deterministic else self.sample()

    def actions_from_params(self, *args: Any, deterministic: bool = False, **kwargs: Any) -> Tensor:
        """Set the parameters and return actions."""
        return self.proba_distribution(*args, **kwargs).get_actions(deterministic=deterministic)

    def log_prob_from_params(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Set the parameters and return sampled actions with their log-probabilities."""
        actions = self.actions_from_params(*args, **kwargs)
        return actions, self.log_prob(actions)
