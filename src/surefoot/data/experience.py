"""A choice that was made, and what came of it: the two halves of an experience, joined by an id."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One choice, with all that learning will need and that cannot be worked out again later."""

    id: str
    episode: str
    """Decisions of one episode follow each other in the order they were made."""
    obs: dict[str, np.ndarray]
    action: int
    log_prob: float
    """Of the action, by the policy that chose it, when it chose it."""
    value: float
    policy_version: int
    action_mask: np.ndarray | None = None
    """True = allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the world answered to a decision."""

    decision: str
    reward: float
    terminated: bool = True
    truncated: bool = False
    bootstrap: float = 0.0
    """What the true successor was worth; only read where truncated."""
    stats: dict[str, float] = field(default_factory=dict[str, float])
