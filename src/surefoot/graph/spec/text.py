"""Graphs as JSON: one canonical text for each, and a reader that believes nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.data.kinds import as_list, as_mapping
from surefoot.errors import GraphError
from surefoot.graph.spec.declare import Registry
from surefoot.graph.spec.model import ABSENT, Delay, Edge, Graph, Node, RunSettings, as_end, require_name
from surefoot.graph.spec.params import params_to_json, read_params, read_ranges

FORMAT, VERSION = "surefoot.graph", 1
MOST_BYTES = 4 << 20
MOST_NODES = 2_000
MOST_EDGES = 10_000
DEEPEST = 24
MOST_TEXT = 20_000


def to_json(graph: Graph) -> dict[str, Any]:
    """JSON values; nodes and edges in the order of their names, so that equal graphs are equal."""
    registry = _registry()
    told: dict[str, Any] = {
        "name": graph.name,
        "nodes": {
            id: {"type": node.type, "params": params_to_json(registry.find(node.type), node.params)}
            | ({"ranges": dict(sorted(node.ranges.items()))} if node.ranges else {})
            for id, node in sorted(graph.nodes.items())
        },
        "edges": [_edge_to_json(edge) for edge in sorted(graph.edges, key=lambda edge: edge.target)],
        "run": {"seed": graph.run.seed, "total_steps": graph.run.total_steps, "path": graph.run.path},
    }
    if graph.layout:
        told["layout"] = {id: [_plain(x), _plain(y)] for id, (x, y) in sorted(graph.layout.items())}
    if graph.graphs:
        told["graphs"] = {name: to_json(inner) for name, inner in sorted(graph.graphs.items())}
    if graph.about:
        told["about"] = graph.about
    return told


def canonical(graph: Graph) -> str:
    """The one text of a graph."""
    whole = {"format": FORMAT, "version": VERSION, **to_json(graph)}
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def save_graph(graph: Graph, path: Path | str) -> None:
    """Write the canonical text."""
    Path(path).write_text(canonical(graph), encoding="utf-8")


def load_graph(path: Path | str) -> Graph:
    """Read a file; what is wrong with it is one GraphError."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise GraphError(f"{path} has {size:,} bytes; a graph has at most {MOST_BYTES:,}")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as why:
        raise GraphError(f"cannot read a graph from {path}: {why}") from why
    try:
        return parse_graph(text)
    except GraphError as why:
        raise GraphError(f"{path}: {why}") from why


def parse_graph(text: str) -> Graph:
    """A graph from its JSON text."""
    return from_json(parse_json(text))


def parse_json(text: str) -> dict[str, Any]:
    """A JSON object; too large, too deep, doubled keys and numbers that are none are refused before anything else."""
    if len(text) > MOST_BYTES:
        raise GraphError(f"this graph has {len(text):,} characters; at most {MOST_BYTES:,} are read")
    _refuse_depth(text)
    try:
        found = json.loads(text, object_pairs_hook=_once_each, parse_constant=_no_constant, parse_float=_finite)
        text.encode()
    except GraphError:
        raise
    except (ValueError, RecursionError) as why:
        raise GraphError(f"this is not JSON: {str(why)[:200]}") from why
    content = as_mapping(found)
    if content is None:
        raise GraphError(f"this is a JSON {type(found).__name__}; a graph is an object with format {FORMAT!r}")
    return content


def from_json(told: Mapping[str, Any]) -> Graph:
    """What `to_json` told, with a header."""
    if told.get("format") != FORMAT:
        hint = (
            "; it looks like a ComfyUI workflow: `surefoot graph import` reads those" if "last_node_id" in told else ""
        )
        raise GraphError(f"format is {str(told.get('format'))[:40]!r}; a graph says {FORMAT!r}{hint}")
    if told.get("version") != VERSION:
        raise GraphError(f"version is {str(told.get('version'))[:40]!r}; this program reads version {VERSION}")
    return _read(told, depth=0)


def _read(told: Mapping[str, Any], *, depth: int) -> Graph:
    if depth > 4:
        raise GraphError("sub-graphs are nested more than 4 deep")
    known = {"format", "version", "name", "nodes", "edges", "run", "layout", "graphs", "about"}
    if strange := sorted(set(told) - known):
        raise GraphError(f"a graph has no {strange[0][:40]!r}; it has {', '.join(sorted(known))}")
    graph = Graph(_text(told.get("name", "graph"), "name"), about=_text(told.get("about", ""), "about"))
    nodes = _mapping(told.get("nodes", {}), "nodes")
    edges = as_list(told.get("edges", []))
    if edges is None:
        raise GraphError("edges must be a list of {from, to}")
    if len(nodes) > MOST_NODES or len(edges) > MOST_EDGES:
        raise GraphError(f"{len(nodes):,} nodes and {len(edges):,} edges; at most {MOST_NODES:,} and {MOST_EDGES:,}")
    for id, spec in nodes.items():
        graph.nodes[require_name(id, "a node")] = _node(id, spec)
    for entry in edges:
        graph.edges.append(_edge(entry))
    graph.run = _run(told.get("run", {}))
    for id, at in _mapping(told.get("layout", {}), "layout").items():
        graph.layout[id] = _place(id, at)
    for name, inner in _mapping(told.get("graphs", {}), "graphs").items():
        graph.graphs[require_name(name, "a sub-graph")] = _read(_mapping(inner, f"graphs.{name}"), depth=depth + 1)
    return graph


def _node(id: str, spec: Any) -> Node:
    entry = _mapping(spec, f"node {id}")
    if strange := sorted(set(entry) - {"type", "params", "ranges"}):
        raise GraphError(f"node {id}: a node has type, params and ranges, no {strange[0][:40]!r}")
    type = _text(entry.get("type"), f"the type of node {id}")
    params = _mapping(entry.get("params", {}), f"the params of node {id}")
    ranges = _mapping(entry.get("ranges", {}), f"the ranges of node {id}")
    declared = _registry().find(type)
    if declared is None:  # said by the check, together with all else that is wrong
        return Node(type, params, ranges)
    who = f"node {id}"
    return Node(declared.name, read_params(declared, params, who=who), read_ranges(declared, ranges, who=who))


def _edge(entry: Any) -> Edge:
    spec = _mapping(entry, "an edge")
    if strange := sorted(set(spec) - {"from", "to", "delay"}):
        raise GraphError(f"an edge has from, to and delay, no {strange[0][:40]!r}")
    ends = [as_end(_text(spec.get(name), f"{name!r} of an edge")) for name in ("from", "to")]
    for end in ends:
        require_name(end.node, "the node of an edge")
        require_name(end.port, "the port of an edge")
    if "delay" not in spec:
        return Edge(ends[0], ends[1])
    delay = _mapping(spec["delay"], f"the delay of {ends[0]} → {ends[1]}")
    if set(delay) - {"initial"}:
        raise GraphError(f"{ends[0]} → {ends[1]}: a delay has an initial value and nothing else")
    return Edge(ends[0], ends[1], Delay(delay["initial"]) if "initial" in delay else Delay(ABSENT))


def _edge_to_json(edge: Edge) -> dict[str, Any]:
    told: dict[str, Any] = {"from": str(edge.source), "to": str(edge.target)}
    if edge.delay is not None:
        told["delay"] = {} if edge.delay.initial is ABSENT else {"initial": edge.delay.initial}
    return told


def _run(told: Any) -> RunSettings:
    spec = _mapping(told, "run")
    if strange := sorted(set(spec) - {"seed", "total_steps", "path"}):
        raise GraphError(f"run has seed, total_steps and path, no {strange[0][:40]!r}")
    run = RunSettings()
    for name, most in (("seed", 2**63 - 1), ("total_steps", 10**12)):
        value = spec.get(name, getattr(run, name))
        if not isinstance(value, int) or isinstance(value, bool) or not (name == "total_steps") <= value <= most:
            raise GraphError(f"run.{name} is {str(value)[:40]}; it must be a whole number up to {most}")
        setattr(run, name, value)
    run.path = spec.get("path", run.path)
    if run.path not in ("auto", "native", "torch"):
        raise GraphError(f"run.path is {str(run.path)[:40]!r}; it is auto, native or torch")
    return run


def _place(id: str, at: Any) -> tuple[float, float]:
    found = as_list(at)
    if found is None or len(found) != 2 or not all(isinstance(x, int | float) and abs(x) < 1e9 for x in found):
        raise GraphError(f"layout.{id[:40]} is {str(at)[:40]}; it must be [x, y]")
    return (float(found[0]), float(found[1]))


def _mapping(value: Any, what: str) -> dict[str, Any]:
    found = as_mapping(value)
    if found is None:
        raise GraphError(f"{what} is a {type(value).__name__}; it must be an object")
    return found


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        raise GraphError(f"{what} is {str(value)[:40]!r}; it must be text of at most {MOST_TEXT:,} characters")
    return value


def _plain(x: float) -> float | int:
    return int(x) if float(x).is_integer() else float(x)


def _refuse_depth(text: str) -> None:
    """Raise if brackets nest too deeply; what is inside strings does not count."""
    depth, inside, escaped = 0, False, False
    for sign in text:
        if inside:
            if escaped:
                escaped = False
            elif sign == "\\":
                escaped = True
            elif sign == '"':
                inside = False
        elif sign == '"':
            inside = True
        elif sign in "[{":
            depth += 1
            if depth > DEEPEST:
                raise GraphError(f"this graph is nested more than {DEEPEST} deep")
        elif sign in "]}":
            depth -= 1


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise GraphError(f"{twice[:40]!r} is there twice in one object; which one counts?")
    return found


def _no_constant(word: str) -> Any:
    raise GraphError(f"{word} is not a number; a graph has finite numbers only")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise GraphError(f"{text[:40]} is too large; a graph has finite numbers only")
    return value


def _registry() -> Registry:
    from surefoot.graph.nodes import REGISTRY

    return REGISTRY
