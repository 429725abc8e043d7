"""What memory, masks and pictures are measured with, the same numbers for everyone; networks are the peers' defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Odd:
    """One workload."""

    envs: int
    steps: int
    epochs: int
    minibatch: int
    warm_up: int
    updates: int
    memory: int = 0
    """Width of the memory."""

    @property
    def rollout(self) -> int:
        return self.envs * self.steps


ODD = {
    "memory": Odd(envs=8, steps=128, epochs=10, minibatch=128, warm_up=1, updates=2, memory=256),
    "masks": Odd(envs=8, steps=128, epochs=4, minibatch=256, warm_up=3, updates=20),
    "pictures": Odd(envs=8, steps=128, epochs=4, minibatch=256, warm_up=1, updates=2),
}
