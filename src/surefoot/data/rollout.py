"""`Rollout`: dense experience, time first. It is the only input of the learner, for every use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefoot.errors import ShapeError

_FLAGS = ("terminated", "truncated", "start", "valid")
_NUMBERS = ("log_prob", "value", "next_value", "reward")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """T steps of N streams; arrays are [T, N, …].

    `next_value` is the value of each step's true successor, so that horizons, time limits, one-step decisions and ends of
    text need no special case in the learner. It is not read where `terminated`.
    """

    obs: dict[str, np.ndarray]
    action: np.ndarray
    """As the policy sampled it, before clipping or squashing for the environment."""
    log_prob: np.ndarray
    """Log-prob of that action under the policy that sampled it, stored when it acted."""
    value: np.ndarray
    next_value: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    start: np.ndarray
    """True at the first step of an episode."""
    valid: np.ndarray
    """True for steps that count."""
    policy_version: np.ndarray
    """[T, N] int64: the version of the policy that acted."""
    action_mask: np.ndarray | None = None
    """True for allowed actions."""
    ref_log_prob: np.ndarray | None = None
    context: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """[N, …]: the state in which each stream enters (hidden state, or a prompt)."""
    stats: dict[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        shape = self.reward.shape
        if len(shape) != 2:
            raise ShapeError(f"reward is {list(shape)}; a rollout is time-major [T, N]")
        for name in (*_NUMBERS, *_FLAGS, "policy_version"):
            array: np.ndarray = getattr(self, name)
            if array.shape != shape:
                raise ShapeError(f"{name} is {list(array.shape)} but reward is {list(shape)}; they must match, [T, N]")
        for name in _FLAGS:
            if getattr(self, name).dtype.kind != "b":
                raise ShapeError(f"{name} has dtype {getattr(self, name).dtype}; flags are bool")
        parts = {"action": self.action, **{f"obs[{key!r}]": x for key, x in self.obs.items()}}
        if self.action_mask is not None:
            parts["action_mask"] = self.action_mask
        if self.ref_log_prob is not None:
            parts["ref_log_prob"] = self.ref_log_prob
        for name, array in parts.items():
            if array.shape[:2] != shape:
                raise ShapeError(f"{name} is {list(array.shape)} but must begin with [T, N] = {list(shape)}")
        for key, array in self.context.items():
            if array.shape[:1] != shape[1:]:
                raise ShapeError(f"context[{key!r}] is {list(array.shape)} but must begin with [N] = {[shape[1]]}")

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], stats: Mapping[str, float] | None = None) -> Rollout:
        """Return a rollout from arrays that are named as in `arrays`."""
        groups: dict[str, dict[str, np.ndarray]] = {"obs": {}, "context": {}}
        fields: dict[str, Any] = {}
        for name, array in arrays.items():
            group, dot, key = name.partition(".")
            (groups[group] if dot else fields)[key or name] = array
        return cls(**groups, **fields, stats=dict(stats or {}))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return every array by the name of its field; parts of `obs` and `context` as "obs.x" and "context.h"."""
        fields = {name: getattr(self, name) for name in ("action", *_NUMBERS, *_FLAGS, "policy_version")}
        fields |= {"action_mask": self.action_mask, "ref_log_prob": self.ref_log_prob}
        fields |= {f"obs.{name}": x for name, x in self.obs.items()}
        fields |= {f"context.{name}": x for name, x in self.context.items()}
        return {name: x for name, x in fields.items() if x is not None}

    @property
    def ended(self) -> np.ndarray:
        """[T, N]: the episode ended here, by termination or truncation."""
        return self.terminated | self.truncated

    @property
    def samples(self) -> int:
        """The number of valid steps."""
        return int(self.valid.sum())
