"""The graph as a value: nodes, edges, run settings, and the methods that build it (add, connect, disconnect, remove)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from surefoot.errors import GraphError

# Names become Python variables in exported code (a keyword gets another name there); 64 characters keep lines readable.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# Properties that every JavaScript object has already: the editor looks nodes and ports up by name.
RESERVED = frozenset({"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toString", "valueOf"})
MERGE = (
    "use a Batch for rows side by side, such as several environments of one agent, or an OR for one value at a time, such as "
    "the first and the later ones of a loop"
)
"""Advice for an input with two sources."""


class Absent:
    """The initial value of a delay that has no value in the first tick; only an OR or an optional port accepts it."""

    # One instance, so that `is ABSENT` still holds after a copy.
    _one: Absent | None = None

    def __new__(cls) -> Absent:
        cls._one = cls._one or super().__new__(cls)
        return cls._one

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class Delay:
    """A delay of one tick; `initial` is what the target reads in the first tick."""

    initial: Any = ABSENT


@dataclass(frozen=True, slots=True, order=True)
class End:
    """A port of a node: one end of an edge."""

    node: str
    port: str

    def __str__(self) -> str:
        return f"{self.node}.{self.port}"

    def __rshift__(self, to: End) -> tuple[End, End]:
        return (self, to)


@dataclass(frozen=True, slots=True)
class Edge:
    """A connection from an output to an input, within the tick or, with a delay, to the next one."""

    source: End
    target: End
    delay: Delay | None = None

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"


@dataclass(slots=True)
class Node:
    """A node: its type and the parameters that are set on it."""

    type: str
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    ranges: dict[str, Any] = field(default_factory=dict[str, Any])
    """{parameter: {low, high, log} or {choices}}: the search space of `surefoot tune`; runs ignore it."""
    mode: str = ""
    """mute: left out, bypass: replaced by its input; empty: active."""

    def copy(self) -> Node:
        """Return a copy; its parameters can be changed."""
        return Node(self.type, dict(self.params), dict(self.ranges), self.mode)


@dataclass(frozen=True, slots=True)
class Placed:
    """A node in its graph; `placed["port"]` is one of its ports."""

    graph: Graph
    id: str

    def __getitem__(self, port: str) -> End:
        return End(self.id, port)


@dataclass(slots=True)
class RunSettings:
    """Settings of a run."""

    seed: int = 0
    """All random numbers of the run derive from it."""
    total_steps: int = 100_000
    """Env steps to run for."""
    path: str = "auto"
    """Implementation of the update: auto, native or torch."""


@dataclass(slots=True)
class GraphComment:
    """A comment in the editor: text in a box behind the nodes."""

    text: str
    at: tuple[float, float]
    size: tuple[float, float]


@dataclass(slots=True)
class Graph:
    """Nodes by id and the edges between them; `graphs` are the sub-graphs that SubGraph nodes refer to."""

    name: str = "graph"
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    edges: list[Edge] = field(default_factory=list[Edge])
    run: RunSettings = field(default_factory=RunSettings)
    layout: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """Positions in the editor; runs ignore them."""
    graphs: dict[str, Graph] = field(default_factory=lambda: dict[str, Graph]())
    about: str = ""
    frames: dict[str, GraphComment] = field(default_factory=lambda: dict[str, GraphComment]())
    """Comments in the editor; runs ignore them."""

    def add(self, id: str, node: Node | str, at: tuple[float, float] | None = None, **params: Any) -> Placed:
        """Add a node and return it.

        Args:
            id: Unique name of the node: letters, digits and underscores.
            node: A node such as `PPOAgentNode(…)`, or the name of a node type.
            at: Position (x, y) in the editor.
            **params: Parameters of the node, if `node` is the name of a type.
        """
        require_name(id, "a node")
        if id in self.nodes:
            raise GraphError(f"the graph has a node {id!r} already; ids must be unique")
        if isinstance(node, str):
            node = make_node(node, **params)
        # Copied: a node that was made once may be added to several graphs.
        self.nodes[id] = node.copy()
        if at is not None:
            self.layout[id] = (float(at[0]), float(at[1]))
        return Placed(self, id)

    def connect(self, source: End | str, target: End | str, delay: Any = None) -> Edge:
        """Add an edge and return it; raise `GraphError` if the input is connected already.

        Args:
            source: The output, such as "agent.model".
            target: The input, such as "trainer.model".
            delay: `Delay(initial)` or just the initial value, to deliver values one tick later.
        """
        edge = Edge(
            as_end(source), as_end(target), delay if delay is None or isinstance(delay, Delay) else Delay(delay)
        )
        for end in (edge.source, edge.target):
            if end.node not in self.nodes:
                raise GraphError(f"{edge}: there is no node {end.node!r}; the graph has {_some(self.nodes)}")
        previous = next((old for old in self.edges if old.target == edge.target), None)
        if previous is not None:
            raise GraphError(f"{edge.target} is already connected to {previous.source}; {MERGE}")
        self.edges.append(edge)
        return edge

    def disconnect(self, target: End | str) -> Edge:
        """Remove and return the edge into an input."""
        end = as_end(target)
        for edge in self.edges:
            if edge.target == end:
                self.edges.remove(edge)
                return edge
        raise GraphError(f"nothing is connected to {end}")

    def remove(self, id: str) -> None:
        """Remove a node and its edges."""
        if id not in self.nodes:
            raise GraphError(f"there is no node {id!r}; the graph has {_some(self.nodes)}")
        del self.nodes[id]
        self.layout.pop(id, None)
        self.edges = [edge for edge in self.edges if id not in (edge.source.node, edge.target.node)]

    def into(self, id: str) -> dict[str, Edge]:
        """Return {input: edge} of a node."""
        return {edge.target.port: edge for edge in self.edges if edge.target.node == id}

    def copy(self) -> Graph:
        """Return a deep copy."""
        return Graph(
            self.name,
            {id: node.copy() for id, node in self.nodes.items()},
            list(self.edges),
            RunSettings(self.run.seed, self.run.total_steps, self.run.path),
            dict(self.layout),
            {name: graph.copy() for name, graph in self.graphs.items()},
            self.about,
            {id: replace(frame) for id, frame in self.frames.items()},
        )

    def sha256(self) -> str:
        """Return a hash of what the graph computes; name, layout, description, ranges and order do not change it."""
        from surefoot.graph.spec.text import canonical

        # Engines and checkpoints compare this hash, so it must not change when a node is moved on the canvas.
        bare = self.copy()
        bare.layout, bare.about, bare.name, bare.frames = {}, "", "", {}
        for node in bare.nodes.values():
            node.ranges = {}
        return hashlib.sha256(canonical(bare).encode()).hexdigest()


def make_node(type: str, /, **params: Any) -> Node:
    """Return a node of a registered type with checked parameters."""
    from surefoot.graph.nodes import REGISTRY
    from surefoot.graph.spec.params import read_params

    declared = REGISTRY.get(type)
    return Node(declared.name, read_params(declared, params))


def as_end(end: End | str) -> End:
    """Return the port that text such as "agent.model" names."""
    if isinstance(end, End):
        return end
    # From the right: nodes of a flattened sub-graph may have any name, ports have no dot.
    node, dot, port = end.rpartition(".")
    if not dot or not node or not port:
        raise GraphError(f"{end!r} is not a port; write node.port")
    return End(node, port)


def require_name(name: Any, what: str) -> str:
    """Return `name`; raise `GraphError` if it is not a valid name."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise GraphError(
            f"{what} is called {repr(name)[:60]}; a name begins with a letter and has up to 64 letters, digits and _"
        )
    if name in RESERVED or name.startswith("__"):
        raise GraphError(f"{what} is called {name!r}, a reserved name; choose another one")
    return name


def _some(names: Mapping[str, Any]) -> str:
    # Eight names fit on a line; a longer list hides the message.
    first = list(names)[:8]
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return (", ".join(first) + more) if first else "none yet"
