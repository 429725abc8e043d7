"""The base class of all runtime nodes: parameters, settings of the run, snapshots. Nothing here imports torch."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from surefoot.data.seeds import seed_for
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.params import complete_params

C = TypeVar("C")
COMPLETE = "complete"
"""The value of a trigger."""


class RuntimeNode:
    """A running node. Subclasses are named after their node type; calling one fires the node.

    Args:
        seed: Seed of the node.
        total_steps: Length of the run.
        path: Implementation of the update: auto, native or torch.
        into: Directory of the run.
        **params: Parameters of the node, by any of their names.
    """

    def __init__(
        self, *, seed: int = 0, total_steps: int = 100_000, path: str = "auto", into: Path | str = ".", **params: Any
    ) -> None:
        # Found by class name, so that exported scripts can construct nodes directly.
        declared = REGISTRY.by_runtime(type(self).__name__)
        assert declared is not None, f"{type(self).__name__} has no declaration in surefoot.graph.nodes"
        self.declared, self.seed, self.total_steps, self.path, self.into = declared, seed, total_steps, path, Path(into)
        self.params: Any = SimpleNamespace(**complete_params(declared, params))
        self.setup()

    def setup(self) -> None:
        """Prepare the state that the node keeps between two calls."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as arrays and JSON values; {} for a node without state."""
        return {}

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot, after the first tick has built networks and learners."""

    def settings(self, config: type[C], **changed: Any) -> C:
        """Return a config with the values of all parameters that it declares; `changed` adds or overrides settings."""
        names = [each.setting for each in self.declared.params if each.config is config]
        return config(**{**{name: getattr(self.params, name) for name in names}, **changed})


def built(part: C | None) -> C:
    """Return a part that the first tick builds."""
    assert part is not None, "the first tick builds this part"
    return part


def copy_weights(module: Any) -> dict[str, Any]:
    """Return copies of a module's parameters and buffers."""
    return {name: x.detach().clone() for name, x in module.state_dict().items()}


def checkpoint_parts(learner: Any) -> dict[str, Any]:
    """Return what a Checkpoint node saves of a learner: weights, optimizer and counters."""
    return {"weights": copy_weights(learner.policy), **learner.state()}


def ticks_for(total_steps: int, streams: int, *horizons: int) -> int:
    """Return the ticks in which `streams` copies take at least `total_steps` steps, rounded up to complete rollouts."""
    multiple = math.lcm(*horizons) if horizons else 1
    ticks = -(-total_steps // max(1, streams))
    return -(-ticks // multiple) * multiple


def node_seed(id: str, seed: int) -> int:
    """Return the seed (31 bits) of a node that is not the only one of its type; it does not depend on the firing order."""
    return seed_for(f"node:{id}", seed) >> 32
