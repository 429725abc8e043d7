"""Graphs as JSON: one canonical text per graph, and a reader for files from untrusted sources."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from surefoot.data.kinds import as_list, as_mapping
from surefoot.errors import GraphError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.model import ABSENT, Delay, Edge, Graph, GraphComment, Node, RunSettings, as_end, require_name
from surefoot.graph.spec.params import params_to_json, read_params, read_ranges

FORMAT, VERSION = "surefoot.graph", 1
# Limits of what is read, far above what a person draws (the templates have up to 19 nodes and 5 KB): a file of a
# few megabytes must not cost seconds of checking or overflow the stack of a recursive reader.
MOST_BYTES = 4 << 20
MOST_NODES = 2_000
MOST_EDGES = 10_000
DEEPEST = 24
MOST_TEXT = 20_000
MOST_FRAMES = 200
MODES = ("", "bypass", "mute")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)


def to_json(graph: Graph) -> dict[str, Any]:
    """Return JSON values; nodes and edges are sorted by name, so equal graphs have equal JSON."""
    result: dict[str, Any] = {
        "name": graph.name,
        "nodes": {
            id: {"type": node.type, "params": params_to_json(REGISTRY.find(node.type), node.params)}
            | ({"ranges": dict(sorted(node.ranges.items()))} if node.ranges else {})
            | ({"mode": node.mode} if node.mode else {})
            for id, node in sorted(graph.nodes.items())
        },
        "edges": [
            {"from": str(edge.source), "to": str(edge.target)} | delay_to_json(edge.delay)
            for edge in sorted(graph.edges, key=lambda edge: edge.target)
        ],
        "run": {"seed": graph.run.seed, "total_steps": graph.run.total_steps, "path": graph.run.path},
    }
    if graph.layout:
        result["layout"] = {id: _point(at) for id, at in sorted(graph.layout.items())}
    if graph.graphs:
        result["graphs"] = {name: to_json(inner) for name, inner in sorted(graph.graphs.items())}
    if graph.about:
        result["about"] = graph.about
    if graph.frames:
        result["frames"] = {id: frame_to_json(frame) for id, frame in sorted(graph.frames.items())}
    return result


def _point(at: tuple[float, float]) -> list[float]:
    # 120.0 is written as 120: browsers do not tell the two apart, and the text must not depend on who saved it.
    return [int(x) if float(x).is_integer() else float(x) for x in at]


def frame_to_json(frame: GraphComment) -> dict[str, Any]:
    """Return a comment as JSON values."""
    return {"text": frame.text, "at": _point(frame.at), "size": _point(frame.size)}


def delay_to_json(delay: Delay | None) -> dict[str, Any]:
    """Return the `delay` field of an edge, or nothing for an edge without a delay."""
    if delay is None:
        return {}
    return {"delay": {} if delay.initial is ABSENT else {"initial": delay.initial}}


def canonical(graph: Graph) -> str:
    """Return the canonical text of a graph."""
    content = {"format": FORMAT, "version": VERSION, **to_json(graph)}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def save_graph(graph: Graph, path: Path | str) -> None:
    """Write a graph as canonical text.

    Args:
        graph: The graph.
        path: The file to write.
    """
    Path(path).write_text(canonical(graph), encoding="utf-8")


def load_graph(path: Path | str) -> Graph:
    """Read a graph; raise `GraphError` if the file cannot be read or is not a valid graph.

    Args:
        path: A file that `save_graph` or the studio wrote.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise GraphError(f"{path} has {size:,} bytes; a graph has at most {MOST_BYTES:,}")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as why:
        reason = why.strerror if isinstance(why, OSError) else "it is not UTF-8 text"
        raise GraphError(f"cannot read a graph from {path}: {reason}") from why
    try:
        return parse_graph(text)
    except GraphError as why:
        raise GraphError(f"{path}: {why}") from why


def parse_graph(text: str) -> Graph:
    """Return the graph with this JSON text.

    Args:
        text: JSON with `"format": "surefoot.graph"`.
    """
    return from_json(parse_json(text))


def parse_json(text: str) -> dict[str, Any]:
    """Return a JSON object; refuse text that is too large or deep, repeated keys and non-finite numbers."""
    # Text also arrives over HTTP, where there is no file size to check.
    if len(text) > MOST_BYTES:
        raise GraphError(f"this graph has {len(text):,} characters; at most {MOST_BYTES:,} are read")
    brackets = re.findall(r"[\[\]{}]", _STRING.sub("", text))
    if max(accumulate(1 if sign in "[{" else -1 for sign in brackets), default=0) > DEEPEST:
        raise GraphError(f"this graph is nested more than {DEEPEST} deep")
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_finite, parse_float=_finite)
        # Lone surrogates are valid JSON but cannot be written as UTF-8.
        text.encode()
    except GraphError:
        raise
    except (ValueError, RecursionError) as why:
        raise GraphError(f"this is not JSON: {str(why)[:200]}") from why
    content = as_mapping(value)
    if content is None:
        raise GraphError(f"this is a JSON {type(value).__name__}; a graph is an object with format {FORMAT!r}")
    return content


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise GraphError(f"the key {repeated[:40]!r} occurs twice in one object; remove one of them")
    return result


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise GraphError(f"{text[:40]} is not a finite number; a graph has finite numbers only")
    return value


def from_json(content: Mapping[str, Any]) -> Graph:
    """Return the graph of JSON values with the fields `format` and `version`."""
    if content.get("format") != FORMAT:
        comfy = "last_node_id" in content
        hint = "; it looks like a ComfyUI workflow: `surefoot graph import` reads those" if comfy else ""
        raise GraphError(f"format is {str(content.get('format'))[:40]!r}; it must be {FORMAT!r}{hint}")
    if content.get("version") != VERSION:
        raise GraphError(f"version is {str(content.get('version'))[:40]!r}; this program reads version {VERSION}")
    return _read(content, depth=0)


def _read(content: Mapping[str, Any], *, depth: int) -> Graph:
    # Bounds the recursion of this reader.
    if depth > 4:
        raise GraphError("sub-graphs are nested more than 4 deep")
    known = {"format", "version", "name", "nodes", "edges", "run", "layout", "graphs", "about", "frames"}
    _refuse_unknown(content, known, "a graph")
    graph = Graph(_text(content.get("name", "graph"), "name"), about=_text(content.get("about", ""), "about"))
    nodes = _mapping(content.get("nodes", {}), "nodes")
    edges = as_list(content.get("edges", []))
    if edges is None:
        raise GraphError("edges must be a list of {from, to}")
    if len(nodes) > MOST_NODES or len(edges) > MOST_EDGES:
        raise GraphError(f"{len(nodes):,} nodes and {len(edges):,} edges; at most {MOST_NODES:,} and {MOST_EDGES:,}")
    graph.nodes = {require_name(id, "a node"): _node(id, entry) for id, entry in nodes.items()}
    graph.edges = [_edge(entry) for entry in edges]
    graph.run = read_run(content.get("run", {}))
    for id, at in _mapping(content.get("layout", {}), "layout").items():
        graph.layout[id] = _read_point(at, f"layout.{id[:40]}")
    for id, frame in _mapping(content.get("frames", {}), "frames").items():
        graph.frames[require_name(id, "a comment")] = read_frame(frame)
    if len(graph.frames) > MOST_FRAMES:
        raise GraphError(f"{len(graph.frames):,} comments are too many; at most {MOST_FRAMES}")
    for name, inner in _mapping(content.get("graphs", {}), "graphs").items():
        graph.graphs[require_name(name, "a sub-graph")] = _read(_mapping(inner, f"graphs.{name}"), depth=depth + 1)
    return graph


def _read_point(value: Any, what: str) -> tuple[float, float]:
    point = as_list(value)
    if point is None or len(point) != 2 or not all(isinstance(x, int | float) and abs(x) < 1e9 for x in point):
        raise GraphError(f"{what} is {str(value)[:40]}; it must be [x, y]")
    return (float(point[0]), float(point[1]))


def read_frame(value: Any) -> GraphComment:
    """Return a comment from JSON values."""
    entry = _mapping(value, "a comment")
    _refuse_unknown(entry, {"text", "at", "size"}, "a comment")
    at, size = (_read_point(entry.get(name), f"{name} of a comment") for name in ("at", "size"))
    return GraphComment(_text(entry.get("text", ""), "the text of a comment"), at, size)


def _node(id: str, value: Any) -> Node:
    entry, who = _mapping(value, f"node {id}"), f"node {id}"
    _refuse_unknown(entry, {"type", "params", "ranges", "mode"}, who)
    type = _text(entry.get("type"), f"the type of {who}")
    params = _mapping(entry.get("params", {}), f"the params of {who}")
    ranges = _mapping(entry.get("ranges", {}), f"the ranges of {who}")
    declared = REGISTRY.find(type)
    # An unknown type is not an error here: the check reports it together with all other problems.
    mode = read_mode(entry.get("mode", ""), who)
    if declared is None:
        return Node(type, params, ranges, mode)
    return Node(declared.name, read_params(declared, params, who=who), read_ranges(declared, ranges, who=who), mode)


def read_mode(mode: Any, who: str) -> str:
    """Return the mode of a node; raise `GraphError` if it is none."""
    if mode not in MODES:
        raise GraphError(f"mode of {who} is {str(mode)[:40]!r}; it must be bypass, mute or empty")
    return mode


def _edge(value: Any) -> Edge:
    entry = _mapping(value, "an edge")
    _refuse_unknown(entry, {"from", "to", "delay"}, "an edge")
    ends = [as_end(_text(entry.get(name), f"{name!r} of an edge")) for name in ("from", "to")]
    for end in ends:
        require_name(end.node, "the node of an edge")
        require_name(end.port, "the port of an edge")
    if "delay" not in entry:
        return Edge(ends[0], ends[1])
    delay = _mapping(entry["delay"], f"the delay of {ends[0]} → {ends[1]}")
    _refuse_unknown(delay, {"initial"}, f"the delay of {ends[0]} → {ends[1]}")
    return Edge(ends[0], ends[1], Delay(delay.get("initial", ABSENT)))


def read_run(value: Any) -> RunSettings:
    """Return run settings from JSON values."""
    entry, run = _mapping(value, "run"), RunSettings()
    _refuse_unknown(entry, {"seed", "total_steps", "path"}, "run")
    # Seeds are stored as signed 64-bit numbers; 10^12 steps are two years at 15,000 steps per second.
    for name, low, high in (("seed", 0, 2**63 - 1), ("total_steps", 1, 10**12)):
        number = entry.get(name, getattr(run, name))
        if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
            raise GraphError(f"run.{name} is {str(number)[:40]}; it must be a whole number from {low} to {high}")
        setattr(run, name, number)
    run.path = entry.get("path", run.path)
    if run.path not in ("auto", "native", "torch"):
        raise GraphError(f"run.path is {str(run.path)[:40]!r}; it must be auto, native or torch")
    return run


def _refuse_unknown(entry: Mapping[str, Any], known: set[str], what: str) -> None:
    if unknown := sorted(set(entry) - known):
        raise GraphError(f"{what} has no field {unknown[0][:40]!r}; its fields are {', '.join(sorted(known))}")


def _mapping(value: Any, what: str) -> dict[str, Any]:
    content = as_mapping(value)
    if content is None:
        raise GraphError(f"{what} is a {type(value).__name__}; it must be an object")
    return content


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        raise GraphError(f"{what} is {str(value)[:40]!r}; it must be text of at most {MOST_TEXT:,} characters")
    return value
