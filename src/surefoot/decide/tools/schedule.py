"""When an agent learns by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSchedule:
    """When an agent learns by itself: after `warmup` episodes, every `interval`, if there are `min_samples`."""

    warmup: int = 50
    interval: int = 10
    min_samples: int = 32
    lr_after: Mapping[int, float] | None = None
    """{episodes: learning rate}: from that many on, PPO steps by this."""
    save_every: int = 20
    """Learnings between two saved versions; only with a directory."""

    def __post_init__(self) -> None:
        if self.interval < 1 or self.warmup < 0 or self.min_samples < 1:
            raise ConfigError(
                f"warmup is {self.warmup}, interval {self.interval}, min_samples {self.min_samples}; "
                "an interval and min_samples are at least 1, a warmup at least 0"
            )

    def lr_at(self, episodes: int) -> float | None:
        due = [at for at in self.lr_after or {} if episodes >= at]
        return None if not due else (self.lr_after or {})[max(due)]
