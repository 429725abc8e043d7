"""`RolloutBuffer`: the last rollout under SB3's names, to read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch

from surefoot.core.advantage import gae
from surefoot.data.rollout import Rollout


class RolloutBufferSamples(NamedTuple):
    """A minibatch."""

    observations: Any
    actions: torch.Tensor
    old_values: torch.Tensor
    old_log_prob: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor


class RolloutBuffer:
    """The steps of the last rollout, arrays [n_steps, n_envs, …]. Changing them does not change what is learned."""

    def __init__(self, rollout: Rollout | None, n_steps: int, n_envs: int, gamma: float, gae_lambda: float) -> None:
        self._rollout, self.buffer_size, self.n_envs = rollout, n_steps, n_envs
        self.gamma, self.gae_lambda = gamma, gae_lambda

    @property
    def rollout(self) -> Rollout:
        if self._rollout is None:
            raise ValueError("the rollout buffer is empty; call learn first")
        return self._rollout

    @property
    def full(self) -> bool:
        return self._rollout is not None

    def reset(self) -> None:
        self._rollout = None
        vars(self).pop("advantages", None)

    def size(self) -> int:
        """Return the number of steps per env."""
        return self.buffer_size if self.full else 0

    @property
    def observations(self) -> Any:
        """Observations, or a dict of them."""
        obs = self.rollout.obs
        return obs["obs"] if list(obs) == ["obs"] else obs

    @property
    def actions(self) -> np.ndarray:
        """Actions as sampled, [T, N, columns]."""
        action = self.rollout.action
        return action.reshape(*action.shape[:2], -1)

    @property
    def rewards(self) -> np.ndarray:
        """Rewards; that of a truncated episode's last step includes the value of its end, as in SB3."""
        rollout = self.rollout
        return rollout.reward + np.where(rollout.truncated, self.gamma * rollout.next_value, 0.0).astype(np.float32)

    @property
    def values(self) -> np.ndarray:
        return self.rollout.value

    @property
    def log_probs(self) -> np.ndarray:
        return self.rollout.log_prob

    @property
    def episode_starts(self) -> np.ndarray:
        """1 at the first step of an episode."""
        return self.rollout.start.astype(np.float32)

    @cached_property
    def advantages(self) -> np.ndarray:
        rollout = self.rollout
        names = (rollout.reward, rollout.value, rollout.next_value)
        numbers = [torch.from_numpy(np.asarray(x, np.float32)) for x in names]
        flags = [torch.from_numpy(np.asarray(x)) for x in (rollout.terminated, rollout.ended)]
        return gae(*numbers, *flags, gamma=self.gamma, lam=self.gae_lambda).numpy()

    @property
    def returns(self) -> np.ndarray:
        """Advantages plus values: the targets of the critic."""
        return self.advantages + self.values

    def get(self, batch_size: int | None = None) -> Iterator[RolloutBufferSamples]:
        count = self.buffer_size * self.n_envs
        order = np.random.permutation(count)  # noqa: NPY002

        def tensor(x: np.ndarray, rows: np.ndarray) -> torch.Tensor:
            return torch.as_tensor(x.reshape(count, *x.shape[2:])[rows])

        size = batch_size or count
        obs = self.observations
        for begin in range(0, count, size):
            rows = order[begin : begin + size]
            observed = {k: tensor(x, rows) for k, x in obs.items()} if isinstance(obs, dict) else tensor(obs, rows)
            arrays = (self.actions, self.values, self.log_probs, self.advantages, self.returns)
            yield RolloutBufferSamples(observed, *(tensor(x, rows) for x in arrays))


class DictRolloutBuffer(RolloutBuffer):
    """The same for Dict observations."""
