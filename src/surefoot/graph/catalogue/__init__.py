"""The kinds of nodes there are. Each names a library callable; none has an algorithm of its own. No torch here.

A use adds its own kinds by `REGISTRY.add(NodeType(…))` in a module that is listed in `ROOMS`; a person adds one with
the decorator `surefoot.graph.node`.
"""

from __future__ import annotations

from importlib import import_module

from surefoot.graph.spec.declare import Registry

REGISTRY = Registry()
ROOMS = (
    "surefoot.graph.catalogue.worlds",
    "surefoot.graph.catalogue.ppo",
    "surefoot.graph.catalogue.merge",
    "surefoot.graph.catalogue.values",
    "surefoot.graph.catalogue.look",
    "surefoot.graph.catalogue.hierarchy",
)

for _room in ROOMS:
    for _declared in import_module(_room).NODES:
        REGISTRY.add(_declared)
