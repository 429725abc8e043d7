"""The declarations of all nodes. Each names a library callable; none has its own algorithm. No torch here.

A declaration lists ports and parameters and infers types and clocks. The class that does the work is in the module of the
same name in `surefoot.graph.runtime`, and is imported when a graph is run. You add a node of your own with the decorator
`surefoot.graph.node`.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from importlib import import_module
from typing import Any

from surefoot.graph.spec.declare import Registry

REGISTRY = Registry()
ROOMS = (
    "worlds",
    "agent",
    "trainer",
    "extras",
    "flow",
    "values",
    "inspection",
    "hierarchy",
    "town",
    "tools",
    "language",
)


for _room in ROOMS:
    for _declared in import_module(f"{__name__}.{_room}").NODES.values():
        _class = f"{_declared.name.removesuffix('Node')}Node"
        REGISTRY.add(replace(_declared, runtime=f"surefoot.graph.runtime.{_room}:{_class}"))


def __getattr__(name: str) -> Any:
    """Deprecated: runtime classes by the names that exported scripts imported from here before they were in `runtime`."""
    from surefoot.graph import runtime

    known = {"Or": "ORNode", "Rollouts": "Rollouts", "node_seed": "node_seed", "ticks_for": "ticks_for"}
    new = known.get(name, name if name.endswith("Node") else f"{name}Node")
    if name.startswith("_") or new not in dir(runtime):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"surefoot.graph.nodes.{name} is now surefoot.graph.runtime.{new}; the old name goes in the next release"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return getattr(runtime, new)
