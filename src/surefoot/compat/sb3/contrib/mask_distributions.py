"""sb3-contrib's distributions over the allowed actions."""

from __future__ import annotations

from typing import Any, Self

import torch
from gymnasium import spaces
from torch import Tensor
from torch.distributions import Categorical

from surefoot.compat.sb3.policies.distributions import (
    CategoricalDistribution,
    Distribution,
    MultiCategoricalDistribution,
)

# sb3-contrib's logit of a forbidden action: with -inf, gradients would be NaN.
FORBIDDEN = -1e8


class MaskableCategorical(Categorical):
    """torch's `Categorical` with forbidden outcomes; `masks` is True for the allowed ones."""

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: Any = None, masks: Any = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self._original_logits = self.logits
        self.masks: Tensor | None = None
        self.apply_masking(masks)

    def apply_masking(self, masks: Any) -> None:
        """Replace the masks; None allows everything."""
        logits, self.masks = self._original_logits, None
        if masks is not None:
            self.masks = torch.as_tensor(masks, dtype=torch.bool, device=logits.device).reshape(logits.shape)
            logits = torch.where(self.masks, logits, torch.tensor(FORBIDDEN, dtype=logits.dtype, device=logits.device))
        # Probabilities are computed once and kept; those of the old logits would fail torch's check of their sum.
        self.__dict__.pop("probs", None)
        super().__init__(logits=logits, validate_args=self._validate_args)

    def entropy(self) -> Tensor:
        """Return the entropies; forbidden outcomes count 0."""
        if self.masks is None:
            return super().entropy()
        terms = self.logits * self.probs
        return -torch.where(self.masks, terms, torch.zeros_like(terms)).sum(-1)


class MaskableDistribution(Distribution):
    """A distribution with masks."""

    def apply_masking(self, masks: Any) -> None:
        """Forbid the actions where the mask is False; None allows all."""
        raise NotImplementedError


class MaskableCategoricalDistribution(CategoricalDistribution, MaskableDistribution):
    """One of n choices."""

    def proba_distribution(self, action_logits: Tensor) -> Self:
        self.distribution = MaskableCategorical(logits=action_logits.view(-1, self.action_dim))
        return self

    def apply_masking(self, masks: Any) -> None:
        self.distribution.apply_masking(masks)


class MaskableMultiCategoricalDistribution(MultiCategoricalDistribution, MaskableDistribution):
    """Several choices; the mask has the options of all of them in a row."""

    def __init__(self, action_dims: list[int]) -> None:
        super().__init__(action_dims)
        self.distributions: list[MaskableCategorical] = []

    @property
    def distribution(self) -> list[MaskableCategorical]:  # pyright: ignore[reportIncompatibleVariableOverride]  # another name
        """The distributions of the choices, under the name of the base class."""
        assert self.distributions, "set the parameters first, by proba_distribution"
        return self.distributions

    def proba_distribution(self, action_logits: Tensor) -> Self:
        rows = action_logits.view(-1, sum(self.action_dims))
        self.distributions = [MaskableCategorical(logits=x) for x in torch.split(rows, list(self.action_dims), dim=1)]
        return self

    def log_prob(self, actions: Tensor) -> Tensor:
        return super().log_prob(actions.view(-1, len(self.action_dims)))

    def apply_masking(self, masks: Any) -> None:
        parts: Any = [None] * len(self.distribution)
        if masks is not None:
            parts = torch.split(torch.as_tensor(masks).view(-1, sum(self.action_dims)), list(self.action_dims), dim=1)
        for distribution, mask in zip(self.distribution, parts, strict=True):
            distribution.apply_masking(mask)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "distributions": []}


class MaskableBernoulliDistribution(MaskableMultiCategoricalDistribution):
    """Several bits, each a choice of two; the mask has two entries per bit."""

    def __init__(self, action_dim: int) -> None:
        super().__init__([2] * action_dim)


def make_masked_proba_distribution(action_space: Any) -> MaskableDistribution:
    match action_space:
        case spaces.Discrete():
            return MaskableCategoricalDistribution(int(action_space.n))
        case spaces.MultiDiscrete():
            return MaskableMultiCategoricalDistribution([int(n) for n in action_space.nvec])
        case spaces.MultiBinary() if isinstance(action_space.n, int):
            return MaskableBernoulliDistribution(action_space.n)
        case _:
            raise NotImplementedError(
                f"actions in {action_space} cannot be masked; use Discrete, MultiDiscrete or a flat MultiBinary"
            )
