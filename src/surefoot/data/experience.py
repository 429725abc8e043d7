"""`Decision` and `Outcome`: the two halves of an experience, joined by an id."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One choice, with everything that learning needs and that cannot be computed later."""

    id: str
    episode: str
    """Decisions of one episode are in the order in which they were taken."""
    obs: dict[str, np.ndarray]
    action: int
    log_prob: float
    """Log-prob of the action under the policy that chose it, stored at that time."""
    value: float
    policy_version: int
    action_mask: np.ndarray | None = None
    """True for allowed actions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a decision."""

    decision: str
    reward: float
    terminated: bool = True
    truncated: bool = False
    bootstrap: float = 0.0
    """The value of the true successor; only read if truncated."""
    stats: dict[str, float] = field(default_factory=dict[str, float])
