"""Steps of episodes that were recorded one by one, and the rollout that they make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.errors import ShapeError


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """One decision and its outcome, with everything that learning needs and that cannot be computed later."""

    obs: dict[str, np.ndarray]
    action: int
    log_prob: float
    """Log-prob of the action under the policy that chose it, stored at that time."""
    value: float
    policy_version: int
    reward: float
    terminated: bool = True
    truncated: bool = False
    bootstrap: float = 0.0
    """The value of the true successor; only read if truncated."""
    action_mask: np.ndarray | None = None
    """True for allowed actions."""


def rollout_of(episodes: Sequence[Sequence[RecordedStep]]) -> Rollout:
    """Return a rollout [T, N] with one stream per episode; shorter ones are padded with steps that are not valid.

    Observations of unequal length (rows of candidates) are padded with zeros at the end, masks with False.
    """
    longest, streams = max(map(len, episodes)), len(episodes)
    places = [(t, n, step) for n, episode in enumerate(episodes) for t, step in enumerate(episode)]
    steps = [step for _, _, step in places]

    def column(values: Iterator[float | bool | int], dtype: type) -> np.ndarray:
        array = np.zeros((longest, streams), dtype)
        for (t, n, _), value in zip(places, values, strict=True):
            array[t, n] = value
        return array

    def dense(name: str, parts: list[np.ndarray]) -> np.ndarray:
        for (t, n, _), part in zip(places, parts, strict=True):
            if part.ndim != parts[0].ndim:
                shapes = f"{list(part.shape)}, the first one is {list(parts[0].shape)}"
                raise ShapeError(f"{name} of step {t} of episode {n} is {shapes}; all must have as many axes")
        shape = np.max([part.shape for part in parts], axis=0) if parts[0].ndim else ()
        array = np.zeros((longest, streams, *shape), parts[0].dtype)
        for (t, n, _), part in zip(places, parts, strict=True):
            array[(t, n, *(slice(size) for size in part.shape))] = part
        return array

    value = column((s.value for s in steps), np.float64)
    next_value = np.zeros_like(value)
    next_value[:-1] = value[1:]
    for t, n, step in places:
        if step.truncated:
            next_value[t, n] = step.bootstrap
    masks = [s.action_mask for s in steps if s.action_mask is not None]
    if masks and len(masks) < len(steps):
        raise ShapeError("some decisions have an action mask and some have none; pass a mask for all of them")
    return Rollout(
        obs={name: dense(f"obs[{name!r}]", [s.obs[name] for s in steps]) for name in steps[0].obs},
        action=column((s.action for s in steps), np.int64),
        log_prob=column((s.log_prob for s in steps), np.float64),
        value=value,
        next_value=next_value,
        reward=column((s.reward for s in steps), np.float64),
        terminated=column((s.terminated for s in steps), bool),
        truncated=column((s.truncated and not s.terminated for s in steps), bool),
        start=np.arange(longest)[:, None] == np.zeros(streams, np.int64),
        valid=column((True for _ in steps), bool),
        policy_version=column((s.policy_version for s in steps), np.int64),
        action_mask=dense("action_mask", masks) if masks else None,
    )
