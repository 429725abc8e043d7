"""Differences between two graphs; positions in the editor do not count."""

from __future__ import annotations

from typing import Any

from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.model import ABSENT, Edge, Graph
from surefoot.graph.spec.params import params_to_json


def differences(before: Graph, after: Graph) -> list[dict[str, Any]]:
    """Return one entry per difference: what (node, param, edge, run), where, and both sides."""
    result: list[dict[str, Any]] = []

    def compare(what: str, where: str, old: Any, new: Any) -> None:
        if old != new:
            result.append({"what": what, "where": where, "before": old, "after": new})

    for id in sorted(set(before.nodes) | set(after.nodes)):
        a, b = before.nodes.get(id), after.nodes.get(id)
        compare("node", id, a and a.type, b and b.type)
        # Parameters of different node types cannot be compared.
        if a is not None and b is not None and a.type == b.type:
            old, new = (params_to_json(REGISTRY.find(a.type), node.params) for node in (a, b))
            for name in sorted(set(old) | set(new)):
                compare("param", f"{id}.{name}", old.get(name), new.get(name))
    edges = [{edge.target: _source(edge) for edge in graph.edges} for graph in (before, after)]
    for target in sorted(set(edges[0]) | set(edges[1])):
        compare("edge", str(target), edges[0].get(target), edges[1].get(target))
    for name in ("seed", "total_steps", "path"):
        compare("run", name, getattr(before.run, name), getattr(after.run, name))
    for name in sorted(set(before.graphs) | set(after.graphs)):
        inner = differences(before.graphs.get(name, Graph()), after.graphs.get(name, Graph()))
        result += [{**each, "where": f"{name}/{each['where']}"} for each in inner]
    return result


def _source(edge: Edge) -> str:
    if edge.delay is None:
        return str(edge.source)
    initial = "absent" if edge.delay.initial is ABSENT else edge.delay.initial
    return f"{edge.source}, delayed by one tick, initially {initial}"


def difference_line(entry: dict[str, Any]) -> str:
    """Return a difference as one line."""
    sign = "+" if entry["before"] is None else "-" if entry["after"] is None else "~"
    sides = " → ".join(str(entry[side]) for side in ("before", "after") if entry[side] is not None)
    return f"{sign} {entry['what']} {entry['where']}: {sides}"
