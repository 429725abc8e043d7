"""Schedule of an agent's background learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSchedule:
    """When an agent learns in the background.

    Args:
        warmup: Runs with feedback before the first learning.
        interval: Runs between two learnings.
        min_samples: Runs needed for a learning.
        lr_after: {runs: learning rate}; from that many runs on, PPO uses this rate.
        save_every: Learnings between two saved versions; needs a directory.
    """

    # 32 fresh decisions fill one PPO update (docs/explain/choosing.md); 10 more change the policy little, but promptly.

    warmup: int = 50
    interval: int = 10
    min_samples: int = 32
    lr_after: Mapping[int, float] | None = None
    save_every: int = 20

    def __post_init__(self) -> None:
        if self.interval < 1 or self.warmup < 0 or self.min_samples < 1:
            raise ConfigError(
                f"warmup is {self.warmup}, interval {self.interval}, min_samples {self.min_samples}; "
                "interval and min_samples must be at least 1, warmup at least 0"
            )

    def lr_at(self, episodes: int) -> float | None:
        """Return the learning rate after that many runs, or None if it is not scheduled."""
        due = [start for start in self.lr_after or {} if episodes >= start]
        return None if not due else (self.lr_after or {})[max(due)]
