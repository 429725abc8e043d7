"""Feature extractors and MLPs of SB3's policies, with the same names in their state dicts."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch
from gymnasium import spaces
from torch import Tensor, nn

from surefoot.compat.sb3.functions import get_device
from surefoot.compat.sb3.spaces import get_flattened_obs_dim, is_image_space


class BaseFeaturesExtractor(nn.Module):
    """Base class of feature extractors: observations to rows of `features_dim` numbers."""

    def __init__(self, observation_space: gym.Space[Any], features_dim: int = 0) -> None:
        super().__init__()
        assert features_dim > 0, f"features_dim is {features_dim}; it must be at least 1"
        self._observation_space, self._features_dim = observation_space, features_dim

    @property
    def features_dim(self) -> int:
        return self._features_dim


class FlattenExtractor(BaseFeaturesExtractor):
    """The observation as one row."""

    def __init__(self, observation_space: gym.Space[Any]) -> None:
        super().__init__(observation_space, get_flattened_obs_dim(observation_space))
        self.flatten = nn.Flatten()

    def forward(self, observations: Tensor) -> Tensor:
        return self.flatten(observations)


class NatureCNN(BaseFeaturesExtractor):
    """The convolutions of Mnih et al. (2015) for images of at least 36 × 36, channels first."""

    def __init__(
        self, observation_space: gym.Space[Any], features_dim: int = 512, normalized_image: bool = False
    ) -> None:
        assert isinstance(observation_space, spaces.Box), f"NatureCNN needs images, not {observation_space}"
        super().__init__(observation_space, features_dim)
        assert is_image_space(observation_space, check_channels=False, normalized_image=normalized_image), (
            f"NatureCNN needs images of bytes from 0 to 255, not {observation_space}; use 'MlpPolicy' for vectors, "
            "'MultiInputPolicy' for Dict observations, or pass normalize_images=False for images that are normalized"
        )
        channels = observation_space.shape[0]
        self.cnn = nn.Sequential(
            nn.Conv2d(channels, 32, kernel_size=8, stride=4, padding=0),
            nn.ReLU(),
            nn.Conv2d(32, 64, kernel_size=4, stride=2, padding=0),
            nn.ReLU(),
            nn.Conv2d(64, 64, kernel_size=3, stride=1, padding=0),
            nn.ReLU(),
            nn.Flatten(),
        )
        with torch.no_grad():
            width = self.cnn(torch.as_tensor(observation_space.sample()[None]).float()).shape[1]
        self.linear = nn.Sequential(nn.Linear(width, features_dim), nn.ReLU())

    def forward(self, observations: Tensor) -> Tensor:
        return self.linear(self.cnn(observations))


class CombinedExtractor(BaseFeaturesExtractor):
    """For Dict observations: `NatureCNN` for each image, everything else flattened, side by side."""

    def __init__(
        self, observation_space: spaces.Dict, cnn_output_dim: int = 256, normalized_image: bool = False
    ) -> None:
        # The size is known after the loop; 1 is replaced below.
        super().__init__(observation_space, features_dim=1)
        extractors: dict[str, nn.Module] = {}
        total = 0
        for key, part in observation_space.spaces.items():
            if is_image_space(part, normalized_image=normalized_image):
                extractors[key] = NatureCNN(part, cnn_output_dim, normalized_image)
                total += cnn_output_dim
            else:
                extractors[key] = nn.Flatten()
                total += get_flattened_obs_dim(part)
        self.extractors = nn.ModuleDict(extractors)
        self._features_dim = total

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        return torch.cat([extract(observations[key]) for key, extract in self.extractors.items()], dim=1)


def create_mlp(
    input_dim: int,
    output_dim: int,
    net_arch: list[int],
    activation_fn: type[nn.Module] = nn.ReLU,
    squash_output: bool = False,
    with_bias: bool = True,
    pre_linear_modules: list[type[nn.Module]] | None = None,
    post_linear_modules: list[type[nn.Module]] | None = None,
) -> list[nn.Module]:
    """Return the layers of an MLP; without an output layer if `output_dim` is not positive.

    `pre_linear_modules` are put before every linear layer, `post_linear_modules` after each but the last.
    """
    modules: list[nn.Module] = []
    for width in net_arch:
        modules += [make(input_dim) for make in pre_linear_modules or ()]
        modules.append(nn.Linear(input_dim, width, bias=with_bias))
        modules += [make(width) for make in post_linear_modules or ()]
        modules.append(activation_fn())
        input_dim = width
    if output_dim > 0:
        modules += [make(input_dim) for make in pre_linear_modules or ()]
        modules.append(nn.Linear(input_dim, output_dim, bias=with_bias))
    return [*modules, nn.Tanh()] if squash_output else modules


class MlpExtractor(nn.Module):
    """Two MLPs, for the policy and the value, on the same features.

    `net_arch` is a list of widths for both, or dict(pi=[…], vf=[…]).
    """

    def __init__(
        self,
        feature_dim: int,
        net_arch: list[int] | dict[str, list[int]],
        activation_fn: type[nn.Module],
        device: torch.device | str = "auto",
    ) -> None:
        super().__init__()
        pi, vf = get_actor_critic_arch(net_arch)
        self.latent_dim_pi, self.latent_dim_vf = (widths[-1] if widths else feature_dim for widths in (pi, vf))
        where = get_device(device)
        self.policy_net = nn.Sequential(*create_mlp(feature_dim, -1, pi, activation_fn)).to(where)
        self.value_net = nn.Sequential(*create_mlp(feature_dim, -1, vf, activation_fn)).to(where)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Tensor) -> Tensor:
        return self.policy_net(features)

    def forward_critic(self, features: Tensor) -> Tensor:
        return self.value_net(features)


def get_actor_critic_arch(net_arch: list[int] | dict[str, list[int]]) -> tuple[list[int], list[int]]:
    """Return the widths of the policy's and the value's layers."""
    if isinstance(net_arch, list):
        return net_arch, net_arch
    assert isinstance(net_arch, dict), f"net_arch is {net_arch!r}; it must be a list or a dict"
    return net_arch.get("pi", []), net_arch.get("vf", [])
