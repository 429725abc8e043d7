"""What plugs into a trainer."""

from __future__ import annotations

from typing import Any

from surefoot.errors import ConfigError
from surefoot.graph.runtime.base import RuntimeNode
from surefoot.learn.schedule import Cosine, Linear, Schedule
from surefoot.nets.actor_critic import ActorCritic
from surefoot.train.algorithms.curiosity import Curiosity
from surefoot.train.config import CollectConfig


class RNDCuriosityNode(RuntimeNode):
    """A source of curiosity; its networks are built when a trainer takes it up, and kept there."""

    def __call__(self) -> RNDCuriosityNode:
        return self

    def snapshot(self) -> dict[str, Any]:
        """Return nothing: the trainer keeps the networks."""
        return {}

    def restore(self, saved: dict[str, Any]) -> None:
        """Do nothing."""

    def build(self, policy: Any, streams: int, *, gamma: float) -> Curiosity:
        """Return the networks for a policy's spaces."""
        if not isinstance(policy, ActorCritic):
            raise ConfigError("curiosity needs an agent of the catalogue, whose spaces are known")
        config = self.settings(CollectConfig, curiosity=self.params.kind)
        return Curiosity(config, policy.observation, policy.action, streams=streams, gamma=gamma, seed=self.seed)


class ScheduleNode(RuntimeNode):
    """A schedule as a value."""

    def __call__(self) -> float | Schedule:
        kind, start, end = self.params.kind, self.params.start, self.params.end
        return start if kind == "constant" else (Linear if kind == "linear" else Cosine)(start, end)
