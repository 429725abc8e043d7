"""SB3's action noise. PPO does not use it; scripts import it."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np


class ActionNoise(ABC):
    """Noise that is added to actions."""

    def reset(self) -> None:  # noqa: B027  noise without memory has nothing to reset
        """Start an episode."""

    @abstractmethod
    def __call__(self) -> np.ndarray:
        """Return the next noise."""


class NormalActionNoise(ActionNoise):
    """Independent normal noise."""

    def __init__(self, mean: np.ndarray, sigma: np.ndarray, dtype: Any = np.float32) -> None:
        self._mu, self._sigma, self._dtype = mean, sigma, dtype

    def __call__(self) -> np.ndarray:
        return np.random.normal(self._mu, self._sigma).astype(self._dtype)  # noqa: NPY002  set_random_seed determines it

    def __repr__(self) -> str:
        return f"NormalActionNoise(mu={self._mu}, sigma={self._sigma})"


class OrnsteinUhlenbeckActionNoise(ActionNoise):
    """x ← x + θ (μ - x) dt + σ √dt N(0, 1)."""

    def __init__(
        self,
        mean: np.ndarray,
        sigma: np.ndarray,
        theta: float = 0.15,
        dt: float = 1e-2,
        initial_noise: np.ndarray | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self._mu, self._sigma, self._theta, self._dt, self._dtype = mean, sigma, theta, dt, dtype
        self.initial_noise = initial_noise
        self.reset()

    def __call__(self) -> np.ndarray:
        normal = np.random.normal(size=self._mu.shape)  # noqa: NPY002  set_random_seed determines it
        pull = self._theta * (self._mu - self.noise_prev) * self._dt
        self.noise_prev = self.noise_prev + pull + self._sigma * np.sqrt(self._dt) * normal
        return self.noise_prev.astype(self._dtype)

    def reset(self) -> None:
        self.noise_prev = np.zeros_like(self._mu) if self.initial_noise is None else self.initial_noise

    def __repr__(self) -> str:
        return f"OrnsteinUhlenbeckActionNoise(mu={self._mu}, sigma={self._sigma})"


class VectorizedActionNoise(ActionNoise):
    """One copy of `base_noise` per env."""

    def __init__(self, base_noise: Any, n_envs: Any) -> None:
        if not isinstance(n_envs, int) or n_envs < 1:
            raise ValueError(f"n_envs is {n_envs!r}; it must be a positive integer")
        if base_noise is None:
            raise ValueError("base_noise is None; pass an ActionNoise")
        if not isinstance(base_noise, ActionNoise):
            raise TypeError(f"base_noise is a {type(base_noise).__name__}; pass an ActionNoise")
        self.n_envs: int = n_envs
        self.base_noise: ActionNoise = base_noise
        self.noises = [copy.deepcopy(base_noise) for _ in range(n_envs)]

    @property
    def noises(self) -> list[ActionNoise]:
        return self._noises

    @noises.setter
    def noises(self, noises: Iterable[ActionNoise]) -> None:
        each = list(noises)
        assert len(each) == self.n_envs, f"{len(each)} noises for {self.n_envs} envs"
        if other := [i for i, noise in enumerate(each) if not isinstance(noise, type(self.base_noise))]:
            raise ValueError(f"the noises {other} are not of the class {type(self.base_noise).__name__}")
        self._noises = each
        self.reset()

    def reset(self, indices: Iterable[int] | None = None) -> None:
        """Reset the noise of some envs, or of all."""
        for i in range(self.n_envs) if indices is None else indices:
            self._noises[i].reset()

    def __call__(self) -> np.ndarray:
        return np.stack([noise() for noise in self._noises])

    def __repr__(self) -> str:
        return f"VecNoise(BaseNoise={self.base_noise!r}, n_envs={self.n_envs})"
