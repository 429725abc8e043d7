"""`ActorCriticPolicy` and its variants for images and dicts, with SB3's constructor, methods and weight names."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import torch
from torch import Tensor, nn

from surefoot.compat.sb3.functions import Schedule
from surefoot.compat.sb3.policies.base import BasePolicy
from surefoot.compat.sb3.policies.distributions import (
    DiagGaussianDistribution,
    Distribution,
    StateDependentNoiseDistribution,
    make_proba_distribution,
)
from surefoot.compat.sb3.policies.layers import (
    BaseFeaturesExtractor,
    CombinedExtractor,
    FlattenExtractor,
    MlpExtractor,
    NatureCNN,
)


class ActorCriticPolicy(BasePolicy):
    """Policy and value on one feature extractor, or on one each. Subclass it to change any part."""

    default_extractor: ClassVar[type[BaseFeaturesExtractor]] = FlattenExtractor
    """The class of the feature extractor unless another one is passed."""
    action_net: nn.Module
    log_std: nn.Parameter
    mlp_extractor: Any

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        lr_schedule: Schedule,
        net_arch: Any = None,
        activation_fn: type[nn.Module] = nn.Tanh,
        ortho_init: bool = True,
        use_sde: bool = False,
        log_std_init: float = 0.0,
        full_std: bool = True,
        use_expln: bool = False,
        squash_output: bool = False,
        features_extractor_class: type[BaseFeaturesExtractor] | None = None,
        features_extractor_kwargs: dict[str, Any] | None = None,
        share_features_extractor: bool = True,
        normalize_images: bool = True,
        optimizer_class: type[torch.optim.Optimizer] = torch.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if optimizer_kwargs is None:
            # PPO has always used 1e-5, not torch's 1e-8.
            optimizer_kwargs = {"eps": 1e-5} if optimizer_class is torch.optim.Adam else {}
        super().__init__(
            observation_space,
            action_space,
            features_extractor_class or self.default_extractor,
            features_extractor_kwargs,
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
            squash_output=squash_output,
            normalize_images=normalize_images,
        )
        assert use_sde or not squash_output, "squash_output=True needs gSDE: pass use_sde=True"
        self.net_arch = self._net_arch(net_arch, self.features_extractor_class)
        self.activation_fn, self.ortho_init = activation_fn, ortho_init
        self.share_features_extractor = share_features_extractor
        self.features_extractor = self.make_features_extractor()
        self.features_dim = self.features_extractor.features_dim
        self.pi_features_extractor = self.vf_features_extractor = self.features_extractor
        if not share_features_extractor:
            self.vf_features_extractor = self.make_features_extractor()
        self.log_std_init, self.use_sde = log_std_init, use_sde
        self.dist_kwargs: dict[str, Any] | None = None
        if use_sde:
            noise = {"full_std": full_std, "squash_output": squash_output, "use_expln": use_expln}
            self.dist_kwargs = {**noise, "learn_features": False}
        self.action_dist = self._make_distribution()
        self._build(lr_schedule)

    def _make_distribution(self) -> Distribution:
        return make_proba_distribution(self.action_space, use_sde=self.use_sde, dist_kwargs=self.dist_kwargs)

    @staticmethod
    def _net_arch(net_arch: Any, extractor: type[BaseFeaturesExtractor]) -> Any:
        if isinstance(net_arch, list) and net_arch and isinstance(net_arch[-1], dict):
            # Before 1.8: shared layers, then one dict. The shared ones were removed from SB3; here each branch gets them.
            warnings.warn("net_arch=[…, dict(pi=…, vf=…)] is the old form; pass dict(pi=…, vf=…)", stacklevel=4)
            shared, split = net_arch[:-1], net_arch[-1]
            return {"pi": [*shared, *split.get("pi", [])], "vf": [*shared, *split.get("vf", [])]}
        if net_arch is None:
            return [] if extractor is NatureCNN else {"pi": [64, 64], "vf": [64, 64]}
        return net_arch

    def _get_constructor_parameters(self) -> dict[str, Any]:
        noise = self.dist_kwargs or {}
        return {
            **super()._get_constructor_parameters(),
            "net_arch": self.net_arch,
            "activation_fn": self.activation_fn,
            "ortho_init": self.ortho_init,
            "use_sde": self.use_sde,
            "log_std_init": self.log_std_init,
            "share_features_extractor": self.share_features_extractor,
            **{name: value for name, value in noise.items() if name != "learn_features"},
            "lr_schedule": self._dummy_schedule,
            "optimizer_class": self.optimizer_class,
            "optimizer_kwargs": self.optimizer_kwargs,
            "features_extractor_class": self.features_extractor_class,
            "features_extractor_kwargs": self.features_extractor_kwargs,
        }

    def reset_noise(self, n_envs: int = 1) -> None:
        """Draw new exploration matrices of gSDE."""
        assert isinstance(self.action_dist, StateDependentNoiseDistribution), "only gSDE has exploration matrices"
        self.action_dist.sample_weights(self.log_std, batch_size=n_envs)

    def _build_mlp_extractor(self) -> None:
        """Create `mlp_extractor`; subclasses may replace it."""
        self.mlp_extractor = MlpExtractor(
            self.features_dim, net_arch=self.net_arch, activation_fn=self.activation_fn, device=self.device
        )

    def _build(self, lr_schedule: Schedule) -> None:
        """Create the networks and the optimizer."""
        self._build_mlp_extractor()
        self._build_outputs(self.mlp_extractor.latent_dim_pi, self.mlp_extractor.latent_dim_vf)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]  # every optimizer has lr

    def _build_outputs(self, latent_pi: int, latent_vf: int) -> None:
        """Create the output layers and initialise all weights."""
        if isinstance(self.action_dist, DiagGaussianDistribution | StateDependentNoiseDistribution):
            layers = self.action_dist.proba_distribution_net(latent_dim=latent_pi, log_std_init=self.log_std_init)
            self.action_net, self.log_std = layers
        else:
            self.action_net = self.action_dist.proba_distribution_net(latent_dim=latent_pi)
        self.value_net = nn.Linear(latent_vf, 1)
        if not self.ortho_init:
            return
        # Gains of the original implementation: √2 for hidden layers, a nearly uniform first policy.
        gains: dict[Any, float] = {self.pi_features_extractor: math.sqrt(2), self.vf_features_extractor: math.sqrt(2)}
        gains |= {self.mlp_extractor: math.sqrt(2), self.action_net: 0.01, self.value_net: 1.0}
        for module, gain in gains.items():
            module.apply(partial(self.init_weights, gain=gain))

    def forward(self, obs: Any, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Return (actions, values, log-probabilities)."""
        latent_pi, latent_vf = self._latents(obs)
        values = self.value_net(latent_vf)
        distribution = self._get_action_dist_from_latent(latent_pi)
        actions = distribution.get_actions(deterministic=deterministic)
        log_prob = distribution.log_prob(actions)
        assert self.action_space.shape is not None
        return actions.reshape((-1, *self.action_space.shape)), values, log_prob

    def _latents(self, obs: Any) -> tuple[Tensor, Tensor]:
        features = self.extract_features(obs)
        if self.share_features_extractor:
            return self.mlp_extractor(features)
        pi_features, vf_features = features
        return self.mlp_extractor.forward_actor(pi_features), self.mlp_extractor.forward_critic(vf_features)

    def extract_features(self, obs: Any, features_extractor: BaseFeaturesExtractor | None = None) -> Any:
        """Return the features, or (policy's, value's) if the extractor is not shared."""
        if self.share_features_extractor:
            return super().extract_features(obs, features_extractor or self.features_extractor)
        if features_extractor is not None:
            warnings.warn("features_extractor is ignored: policy and value have their own", UserWarning, stacklevel=2)
        pi_features = super().extract_features(obs, self.pi_features_extractor)
        return pi_features, super().extract_features(obs, self.vf_features_extractor)

    def _get_action_dist_from_latent(self, latent_pi: Tensor) -> Distribution:
        outputs = self.action_net(latent_pi)
        if isinstance(self.action_dist, DiagGaussianDistribution):
            return self.action_dist.proba_distribution(outputs, self.log_std)
        if isinstance(self.action_dist, StateDependentNoiseDistribution):
            return self.action_dist.proba_distribution(outputs, self.log_std, latent_pi)
        return self.action_dist.proba_distribution(outputs)

    def _predict(self, observation: Any, deterministic: bool = False) -> Tensor:
        return self.get_distribution(observation).get_actions(deterministic=deterministic)

    def evaluate_actions(self, obs: Any, actions: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return (values, log-probabilities, entropies) of stored actions."""
        latent_pi, latent_vf = self._latents(obs)
        distribution = self._get_action_dist_from_latent(latent_pi)
        return self.value_net(latent_vf), distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Any) -> Distribution:
        features = super().extract_features(obs, self.pi_features_extractor)
        return self._get_action_dist_from_latent(self.mlp_extractor.forward_actor(features))

    def predict_values(self, obs: Any) -> Tensor:
        """Return the values, [N, 1]."""
        features = super().extract_features(obs, self.vf_features_extractor)
        return self.value_net(self.mlp_extractor.forward_critic(features))


class ActorCriticCnnPolicy(ActorCriticPolicy):
    """`ActorCriticPolicy` with `NatureCNN`."""

    default_extractor = NatureCNN


class MultiInputActorCriticPolicy(ActorCriticPolicy):
    """`ActorCriticPolicy` with `CombinedExtractor`, for Dict observations."""

    default_extractor = CombinedExtractor
