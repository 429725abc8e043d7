"""`BaseModel` and `BasePolicy`: construction, saving and prediction of SB3's policies."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from os import PathLike
from typing import Any, Self

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from surefoot.compat.sb3.functions import get_device, obs_as_tensor
from surefoot.compat.sb3.policies.layers import BaseFeaturesExtractor, FlattenExtractor
from surefoot.compat.sb3.spaces import is_image_space, is_vectorized_observation, maybe_transpose, preprocess_obs


class BaseModel(nn.Module):
    """A network with spaces, a feature extractor and an optimizer."""

    optimizer: torch.optim.Optimizer

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        features_extractor_class: type[BaseFeaturesExtractor] = FlattenExtractor,
        features_extractor_kwargs: dict[str, Any] | None = None,
        features_extractor: BaseFeaturesExtractor | None = None,
        normalize_images: bool = True,
        optimizer_class: type[torch.optim.Optimizer] = torch.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.observation_space, self.action_space = observation_space, action_space
        self.features_extractor_class = features_extractor_class
        self.features_extractor_kwargs = features_extractor_kwargs or {}
        self.features_extractor: Any = features_extractor
        self.normalize_images = normalize_images
        self.optimizer_class, self.optimizer_kwargs = optimizer_class, optimizer_kwargs or {}
        # An image that is normalized already has no bytes, so the extractors need an argument.
        if not normalize_images:
            names = features_extractor_class.__init__.__annotations__
            if "normalized_image" in names:
                self.features_extractor_kwargs = {**self.features_extractor_kwargs, "normalized_image": True}

    def make_features_extractor(self) -> BaseFeaturesExtractor:
        return self.features_extractor_class(self.observation_space, **self.features_extractor_kwargs)

    def extract_features(self, obs: Any, features_extractor: BaseFeaturesExtractor) -> Any:
        return features_extractor(preprocess_obs(obs, self.observation_space, self.normalize_images))

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "normalize_images": self.normalize_images,
        }

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next((p.device for p in self.parameters()), get_device("cpu"))

    def save(self, path: str | PathLike[str]) -> None:
        """Write weights and constructor arguments to a zip of safetensors and JSON."""
        from surefoot.compat.sb3.files.model_files import save_policy

        save_policy(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], device: torch.device | str = "auto") -> Self:
        """Return the policy that `save` wrote; call it on the class that was saved."""
        from surefoot.compat.sb3.files.model_files import load_policy

        return load_policy(cls, path, device)

    def load_from_vector(self, vector: np.ndarray) -> None:
        nn.utils.vector_to_parameters(torch.as_tensor(vector, dtype=torch.float, device=self.device), self.parameters())

    def parameters_to_vector(self) -> np.ndarray:
        return nn.utils.parameters_to_vector(self.parameters()).detach().cpu().numpy()

    def set_training_mode(self, mode: bool) -> None:
        """Switch batch normalisation and dropout between learning and acting."""
        self.train(mode)

    def is_vectorized_observation(self, observation: Any) -> bool:
        """Return whether `observation` is a batch; images may have their channels last."""
        space = self.observation_space
        if isinstance(observation, dict):
            assert isinstance(space, spaces.Dict), f"the observation is a dict but the space is {space}"
            turned = {key: maybe_transpose(np.asarray(x), space[key]) for key, x in observation.items()}
            return is_vectorized_observation(turned, space)
        return is_vectorized_observation(maybe_transpose(np.asarray(observation), space), space)

    def obs_to_tensor(self, observation: Any) -> tuple[Any, bool]:
        """Return observations as a batch of tensors, and whether they were a batch."""
        space = self.observation_space
        vectorized = False
        if isinstance(observation, dict):
            assert isinstance(space, spaces.Dict), f"the observation is a dict but the space is {space}"
            observation = copy.copy(observation)
            for key, value in observation.items():
                part = maybe_transpose(np.array(value), space[key]) if is_image_space(space[key]) else np.array(value)
                vectorized = vectorized or is_vectorized_observation(part, space[key])
                observation[key] = part.reshape((-1, *space[key].shape))  # type: ignore[misc]  # parts have shapes
            return obs_as_tensor(observation, self.device), vectorized
        if isinstance(observation, tuple) and len(observation) == 2 and isinstance(observation[1], dict):
            raise ValueError(
                "the observation is a tuple (observation, info): this is mixing Gym API and SB3 VecEnv API. A Gymnasium env "
                "returns both, as in obs, info = env.reset(); a VecEnv returns the observations only"
            )
        array = maybe_transpose(np.array(observation), space)
        if not isinstance(space, spaces.Dict):
            vectorized = is_vectorized_observation(array, space)
        assert space.shape is not None
        return obs_as_tensor(array.reshape((-1, *space.shape)), self.device), vectorized


class BasePolicy(BaseModel, ABC):
    """A policy with SB3's `predict`."""

    def __init__(self, *args: Any, squash_output: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._squash_output = squash_output

    @staticmethod
    def _dummy_schedule(progress_remaining: float) -> float:
        del progress_remaining
        return 0.0

    @property
    def squash_output(self) -> bool:
        """Whether actions are squashed into the bounds by tanh."""
        return self._squash_output

    @staticmethod
    def init_weights(module: nn.Module, gain: float = 1) -> None:
        """Initialise linear and convolutional layers orthogonally, biases at 0."""
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.orthogonal_(module.weight, gain=gain)
            if module.bias is not None:
                module.bias.data.fill_(0.0)

    @abstractmethod
    def _predict(self, observation: Any, deterministic: bool = False) -> Tensor:
        """Return the actions for a batch of tensors."""

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """Return (action for one observation or a batch, state); the state is for recurrent policies."""
        self.set_training_mode(False)
        tensor, vectorized = self.obs_to_tensor(observation)
        with torch.no_grad():
            actions = self._predict(tensor, deterministic=deterministic)
        return self.to_env(actions.cpu().numpy(), vectorized), state

    def to_env(self, actions: np.ndarray, vectorized: bool) -> np.ndarray:
        """Return actions in the shape and within the bounds of the action space."""
        space = self.action_space
        assert space.shape is not None
        actions = actions.reshape((-1, *space.shape))
        if isinstance(space, spaces.Box):
            if self.squash_output:
                actions = self.unscale_action(actions)
            else:
                actions = np.clip(actions, space.low, space.high)
        return actions if vectorized else actions.squeeze(axis=0)

    def scale_action(self, action: np.ndarray) -> np.ndarray:
        """Return an action of the space scaled to [-1, 1]."""
        low, high = self._bounds()
        return 2.0 * ((action - low) / (high - low)) - 1.0

    def unscale_action(self, scaled_action: np.ndarray) -> np.ndarray:
        """Return an action in [-1, 1] as one of the space."""
        low, high = self._bounds()
        return low + (0.5 * (scaled_action + 1.0) * (high - low))

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        assert isinstance(self.action_space, spaces.Box), f"only Box actions can be scaled, not {self.action_space}"
        return self.action_space.low, self.action_space.high
