"""What plugs into a trainer."""

from __future__ import annotations

from typing import Any

from surefoot.errors import ConfigError
from surefoot.learn.schedule import Cosine, Linear, Schedule
from surefoot.nets.actor_critic import ActorCritic
from surefoot.train.algorithms.curiosity import Curiosity
from surefoot.train.config import CollectConfig


class RNDCuriosity:
    """A source of curiosity; its networks are built when a trainer takes it up."""

    def __init__(
        self,
        kind: str = "rnd",
        coef: Any = 1.0,
        ext_coef: float = 1.0,
        learning_rate: float = 1e-4,
        hidden_sizes: tuple[int, ...] = (256, 256),
        *,
        seed: int = 0,
    ) -> None:
        self.config = CollectConfig(
            curiosity=kind,
            curiosity_coef=coef,
            ext_coef=ext_coef,
            curiosity_lr=learning_rate,
            curiosity_hidden=hidden_sizes,
        )
        self.seed = seed

    def __call__(self) -> RNDCuriosity:
        return self

    def snapshot(self) -> dict[str, Any]:
        """The trainer keeps what it has built."""
        return {}

    def restore(self, saved: dict[str, Any]) -> None:
        """Nothing to do."""

    def build(self, policy: Any, streams: int, *, gamma: float) -> Curiosity:
        """For a policy's spaces."""
        if not isinstance(policy, ActorCritic):
            raise ConfigError("curiosity needs an agent of the catalogue, whose spaces are known")
        return Curiosity(self.config, policy.observation, policy.action, streams=streams, gamma=gamma, seed=self.seed)


class ScheduleNode:
    """A schedule as a value."""

    def __init__(self, kind: str = "linear", start: float = 3e-4, end: float = 0.0) -> None:
        self.schedule: float | Schedule = start
        if kind != "constant":
            self.schedule = (Linear if kind == "linear" else Cosine)(start, end)

    def __call__(self) -> float | Schedule:
        return self.schedule
