"""Declarations of all node types: ports, parameters, type and clock inference. Nothing here imports torch.

The YAML files list ports and parameters; the modules beside them infer types and clocks. The class that runs a node is in
`surefoot.graph.runtime`, in the module with the name of the YAML file, and is imported when a graph is built. Declare your
own node types with the decorator `surefoot.graph.node`.
"""

from __future__ import annotations

from importlib import import_module

from surefoot.graph.spec.declare import Registry

REGISTRY = Registry()
for _module in ("worlds", "learning", "flow", "inspection", "tools", "language"):
    for _declared in import_module(f"{__name__}.{_module}").NODES.values():
        REGISTRY.add(_declared)
