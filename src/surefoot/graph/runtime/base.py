"""What all runtime classes share: parameters with their declared defaults, and the settings of a run. No torch here."""

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
"""What a trigger carries."""


class RuntimeNode:
    """A node at work. `params` holds what its declaration lists; `seed`, `path`, … are the run's, as `needs` asks for.

    Subclasses are named after their declaration and prepare themselves in `setup`; calling one fires the node.
    """

    def __init__(
        self, *, seed: int = 0, total_steps: int = 100_000, path: str = "auto", into: Path | str = ".", **params: Any
    ) -> None:
        declared = REGISTRY.by_runtime(type(self).__name__)
        assert declared is not None, f"{type(self).__name__} has no declaration in surefoot.graph.nodes"
        self.declared, self.seed, self.total_steps, self.path, self.into = declared, seed, total_steps, path, Path(into)
        self.params: Any = SimpleNamespace(**complete_params(declared, params))
        self.setup()

    def setup(self) -> None:
        """Prepare what the node keeps between two calls."""

    def settings(self, config: type[C], **changed: Any) -> C:
        """Return a config with the values of all parameters that it declares; `changed` are set besides or instead."""
        declared = {each.setting: each.name for each in self.declared.params if each.config is config}
        values = {setting: getattr(self.params, name) for setting, name in declared.items()}
        return config(**{**values, **changed})


def checkpoint_parts(learner: Any) -> dict[str, Any]:
    """Return what a Checkpoint node saves of a learner: weights, optimiser and counters."""
    weights = {name: x.detach().clone() for name, x in learner.policy.state_dict().items()}
    return {"weights": weights, **learner.state()}


def ticks_for(total_steps: int, streams: int, *horizons: int) -> int:
    """Return the ticks in which `streams` copies take at least `total_steps` steps, rounded up to whole rollouts."""
    whole = math.lcm(*horizons) if horizons else 1
    ticks = -(-total_steps // max(1, streams))
    return -(-ticks // whole) * whole


def node_seed(id: str, seed: int) -> int:
    """Return the seed (31 bits) of a node that is not the only one of its kind; it does not depend on the firing order."""
    return seed_for(f"node:{id}", seed) >> 32
