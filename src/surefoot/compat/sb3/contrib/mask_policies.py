"""sb3-contrib's policies with action masks."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.compat.sb3.contrib.mask_distributions import MaskableDistribution, make_masked_proba_distribution
from surefoot.compat.sb3.policies.actor_critic import ActorCriticPolicy
from surefoot.compat.sb3.policies.layers import CombinedExtractor, NatureCNN


class MaskableActorCriticPolicy(ActorCriticPolicy):
    """`ActorCriticPolicy` whose methods take `action_masks`."""

    _masks: Any = None

    def _make_distribution(self) -> MaskableDistribution:
        return make_masked_proba_distribution(self.action_space)

    @contextmanager
    def _masked(self, masks: Any) -> Generator[None]:
        """Apply masks to every distribution that is made inside; the base class has no argument for them."""
        self._masks = masks
        try:
            yield
        finally:
            self._masks = None

    def _get_action_dist_from_latent(self, latent_pi: Tensor) -> Any:
        distribution: Any = super()._get_action_dist_from_latent(latent_pi)
        if self._masks is not None:
            distribution.apply_masking(self._masks)
        return distribution

    def forward(self, obs: Any, deterministic: bool = False, action_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
        with self._masked(action_masks):
            return super().forward(obs, deterministic)

    def evaluate_actions(
        self, obs: Any, actions: Tensor, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        with self._masked(action_masks):
            return super().evaluate_actions(obs, actions)

    def get_distribution(self, obs: Any, action_masks: Any = None) -> Any:
        with self._masked(action_masks):
            return super().get_distribution(obs)

    def _predict(self, observation: Any, deterministic: bool = False, action_masks: Any = None) -> Tensor:
        return self.get_distribution(observation, action_masks).get_actions(deterministic=deterministic)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[np.ndarray, Any]:
        """Return (action for one observation or a batch, `state` unchanged)."""
        self.set_training_mode(False)
        tensor, vectorized = self.obs_to_tensor(observation)
        with torch.no_grad():
            actions = self._predict(tensor, deterministic, action_masks)
        return self.to_env(actions.cpu().numpy(), vectorized), state


class MaskableActorCriticCnnPolicy(MaskableActorCriticPolicy):
    """`MaskableActorCriticPolicy` with `NatureCNN`."""

    default_extractor = NatureCNN


class MaskableMultiInputActorCriticPolicy(MaskableActorCriticPolicy):
    """`MaskableActorCriticPolicy` with `CombinedExtractor`, for Dict observations."""

    default_extractor = CombinedExtractor
