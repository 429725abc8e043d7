"""Declarations of all node types: ports, parameters, type and clock inference. Nothing here imports torch.

The YAML files list ports and parameters; the modules beside them infer types and clocks. The class that runs a node is in
`surefoot.graph.runtime`, in the module with the name of the YAML file, and is imported when a graph is built. Declare your
own node types with the decorator `surefoot.graph.node`.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from surefoot.graph.spec.declare import Registry

REGISTRY = Registry()
for _module in ("worlds", "learning", "flow", "inspection", "tools", "language"):
    for _declared in import_module(f"{__name__}.{_module}").NODES.values():
        REGISTRY.add(_declared)


def __getattr__(name: str) -> Any:
    """Return a runtime class by the name under which scripts of earlier versions import it from here (deprecated)."""
    from surefoot.graph import runtime

    known = {"Or": "ORNode", "Rollouts": "Rollouts", "node_seed": "node_seed", "ticks_for": "ticks_for"}
    new = known.get(name, name if name.endswith("Node") else f"{name}Node")
    if name.startswith("_") or new not in dir(runtime):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"surefoot.graph.nodes.{name} is now surefoot.graph.runtime.{new}; the old name goes in the next release"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return getattr(runtime, new)
