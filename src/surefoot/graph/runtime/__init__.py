"""What nodes do when they fire: thin classes over the library, one per node type. Exported scripts import them from here."""

from __future__ import annotations

from surefoot._lazy import lazy_names
from surefoot.graph.nodes import REGISTRY

_CLASSES = {name: module for module, _, name in (each.partition(":") for each in REGISTRY.runtimes())}
_MORE = {"Rollouts": "plain_loop", "node_seed": "base", "ticks_for": "base"}
__getattr__, __dir__ = lazy_names(
    __name__, {**_CLASSES, **{name: f"{__name__}.{file}" for name, file in _MORE.items()}}
)
