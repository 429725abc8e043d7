"""What two graphs differ in, as people would say it; where nodes are drawn does not count."""

from __future__ import annotations

from typing import Any

from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.model import ABSENT, Edge, Graph
from surefoot.graph.spec.params import params_to_json


def differences(before: Graph, after: Graph) -> list[dict[str, Any]]:
    """One entry a difference: what (node, param, edge, run), where, and both sides."""
    found: list[dict[str, Any]] = []
    for id in sorted(set(before.nodes) | set(after.nodes)):
        found += _node(id, before, after)
    old, new = ({edge.target: edge for edge in graph.edges} for graph in (before, after))
    for target in sorted(set(old) | set(new)):
        a, b = _edge(old.get(target)), _edge(new.get(target))
        if a != b:
            found.append({"what": "edge", "where": str(target), "before": a, "after": b})
    for name in ("seed", "total_steps", "path"):
        a, b = getattr(before.run, name), getattr(after.run, name)
        if a != b:
            found.append({"what": "run", "where": name, "before": a, "after": b})
    for name in sorted(set(before.graphs) | set(after.graphs)):
        inner = differences(before.graphs.get(name, Graph()), after.graphs.get(name, Graph()))
        found += [{**each, "where": f"{name}/{each['where']}"} for each in inner]
    return found


def _node(id: str, before: Graph, after: Graph) -> list[dict[str, Any]]:
    a, b = before.nodes.get(id), after.nodes.get(id)
    kinds = (None if a is None else a.type), (None if b is None else b.type)
    if a is None or b is None or kinds[0] != kinds[1]:
        return [{"what": "node", "where": id, "before": kinds[0], "after": kinds[1]}]
    declared = REGISTRY.find(a.type)
    old, new = params_to_json(declared, a.params), params_to_json(declared, b.params)
    return [
        {"what": "param", "where": f"{id}.{name}", "before": old.get(name), "after": new.get(name)}
        for name in sorted(set(old) | set(new))
        if old.get(name) != new.get(name)
    ]


def _edge(edge: Edge | None) -> str | None:
    if edge is None:
        return None
    if edge.delay is None:
        return str(edge.source)
    return f"{edge.source}, a tick later, first {'absent' if edge.delay.initial is ABSENT else edge.delay.initial}"


def told(each: dict[str, Any]) -> str:
    """A difference in one line."""
    sign = "+" if each["before"] is None else "-" if each["after"] is None else "~"
    sides = " → ".join(str(each[side]) for side in ("before", "after") if each[side] is not None)
    return f"{sign} {each['what']} {each['where']}: {sides}"
