"""W1 to W3 in numbers, the same for everyone who runs them. Every net is 64×64 tanh, actor and critic apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Shape:
    """One workload: who plays, how much is collected, how it is learned from."""

    env: str
    envs: int
    steps: int
    epochs: int
    minibatch: int
    warm_up: int
    """Updates before the clock starts."""
    updates: int
    """Updates that are measured."""
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """What differs from SB3's defaults, by SB3's names."""

    @property
    def rollout(self) -> int:
        return self.envs * self.steps

    @property
    def minibatches(self) -> int:
        return self.rollout // self.minibatch


SHAPES = {
    "W1": Shape("CartPole-v1", envs=8, steps=128, epochs=4, minibatch=256, warm_up=10, updates=60),
    "W1-pendulum": Shape("Pendulum-v1", envs=8, steps=128, epochs=4, minibatch=256, warm_up=10, updates=60),
    "W2-pendulum": Shape("Pendulum-v1", envs=1, steps=2048, epochs=10, minibatch=64, warm_up=1, updates=3),
    "W2-halfcheetah": Shape("HalfCheetah-v5", envs=1, steps=2048, epochs=10, minibatch=64, warm_up=1, updates=3),
    # RL Zoo's entry Pendulum-v1.
    "W2-zoo-pendulum": Shape(
        "Pendulum-v1",
        envs=4,
        steps=1024,
        epochs=10,
        minibatch=64,
        warm_up=1,
        updates=2,
        settings={
            "learning_rate": 1e-3,
            "gamma": 0.9,
            "gae_lambda": 0.95,
            "ent_coef": 0.0,
            "clip_range": 0.2,
            "use_sde": True,
            "sde_sample_freq": 4,
        },
    ),
    "W3": Shape("CartPole-v1", envs=2048, steps=32, epochs=4, minibatch=16384, warm_up=3, updates=8),
}
