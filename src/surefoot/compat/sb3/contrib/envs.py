"""sb3-contrib's test envs with forbidden actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from surefoot.compat.sb3.envs.identity import IdentityEnv


class InvalidActionEnv(IdentityEnv):
    """Identity env in which `n_invalid_actions` options are forbidden in each step, never the right ones."""

    def __init__(self, space: Any, sizes: list[int], ep_length: int, n_invalid_actions: int) -> None:
        self.n_invalid_actions, self.possible_actions = n_invalid_actions, np.arange(sum(sizes))
        self._first = np.cumsum([0, *sizes[:-1]])
        self.invalid_actions: list[int] = []
        super().__init__(space=space, ep_length=ep_length)

    def _choose_next_state(self) -> None:
        self.state = self.action_space.sample()
        right = set((self._first + self.state).tolist())
        others = [i for i in self.possible_actions if int(i) not in right]
        self.invalid_actions = np.random.choice(others, self.n_invalid_actions, replace=False).tolist()  # noqa: NPY002  as IdentityEnv

    def action_masks(self) -> list[bool]:
        """Return True for each option that is allowed."""
        return [action not in self.invalid_actions for action in self.possible_actions]


class InvalidActionEnvDiscrete(InvalidActionEnv):
    """One choice of `dim` options."""

    def __init__(self, dim: int | None = None, ep_length: int = 100, n_invalid_actions: int = 0) -> None:
        size = dim or 1
        assert n_invalid_actions < size, f"n_invalid_actions is {n_invalid_actions}; {size} options allow {size - 1}"
        super().__init__(spaces.Discrete(size), [size], ep_length, n_invalid_actions)


class InvalidActionEnvMultiDiscrete(InvalidActionEnv):
    """Several choices."""

    def __init__(self, dims: list[int] | None = None, ep_length: int = 100, n_invalid_actions: int = 0) -> None:
        sizes = dims or [1, 1]
        if n_invalid_actions > (most := sum(sizes) - len(sizes)):
            raise ValueError(f"n_invalid_actions is {n_invalid_actions}; these choices allow at most {most}")
        super().__init__(spaces.MultiDiscrete(sizes), sizes, ep_length, n_invalid_actions)


class InvalidActionEnvMultiBinary(InvalidActionEnv):
    """Several bits."""

    def __init__(self, dims: int | None = None, ep_length: int = 100, n_invalid_actions: int = 0) -> None:
        self.n_dims = dims or 1
        if n_invalid_actions > self.n_dims:
            raise ValueError(
                f"n_invalid_actions is {n_invalid_actions}; {self.n_dims} bits allow at most {self.n_dims}"
            )
        super().__init__(spaces.MultiBinary(self.n_dims), [2] * self.n_dims, ep_length, n_invalid_actions)
