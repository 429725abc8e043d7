"""A graph as a value, and the few verbs that build one: add, connect, set, remove."""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.errors import GraphError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""What nodes and ports may be called. A keyword may be a name; exported code gives it another."""


class Absent:
    """The initial value of a delay that has nothing to say yet; only an OR (or an optional port) can wait for that."""

    _one: Absent | None = None

    def __new__(cls) -> Absent:
        cls._one = cls._one or super().__new__(cls)
        return cls._one

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class Delay:
    """One tick, and what the far end reads in the first."""

    initial: Any = ABSENT


@dataclass(frozen=True, slots=True, order=True)
class End:
    """A port of a node."""

    node: str
    port: str

    def __str__(self) -> str:
        return f"{self.node}.{self.port}"

    def __rshift__(self, to: End) -> tuple[End, End]:
        return (self, to)


@dataclass(frozen=True, slots=True)
class Edge:
    """From an output to an input, in the same tick or a tick later."""

    source: End
    target: End
    delay: Delay | None = None

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"


@dataclass(slots=True)
class Node:
    """One node: what kind it is and what is set on it."""

    type: str
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    ranges: dict[str, Any] = field(default_factory=dict[str, Any])
    """{parameter: {low, high, log} or {choices}}: where a search may look. It changes nothing else."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A node in its graph; `placed["port"]` and `placed.end("port")` are its ends."""

    graph: Graph
    id: str

    def __getitem__(self, port: str) -> End:
        return End(self.id, port)

    def end(self, port: str) -> End:
        return End(self.id, port)


@dataclass(slots=True)
class RunSettings:
    """What belongs to a run of the whole graph."""

    seed: int = 0
    """Everything random follows from it."""
    total_steps: int = 100_000
    """Env steps to run for."""
    path: str = "auto"
    """auto, native or torch: which implementation learns."""


@dataclass(slots=True)
class Graph:
    """Nodes by id and the edges between them; `graphs` are the sub-graphs that nodes of type SubGraph name."""

    name: str = "graph"
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    edges: list[Edge] = field(default_factory=list[Edge])
    run: RunSettings = field(default_factory=RunSettings)
    layout: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """Where nodes are drawn; it changes nothing else."""
    graphs: dict[str, Graph] = field(default_factory=lambda: dict[str, Graph]())
    about: str = ""

    def add(self, id: str, node: Node | str, at: tuple[float, float] | None = None, **params: Any) -> Placed:
        """Put a node in: one that was made (`PPOAgentNode(…)`), or the name of its kind and its parameters."""
        require_name(id, "a node")
        if id in self.nodes:
            raise GraphError(f"there is a node {id!r} already; ids are unique")
        if isinstance(node, str):
            node = make_node(node, **params)
        self.nodes[id] = Node(node.type, dict(node.params), dict(node.ranges))
        if at is not None:
            self.layout[id] = (float(at[0]), float(at[1]))
        return Placed(self, id)

    def connect(self, source: End | str, target: End | str, delay: Any = None) -> Edge:
        """Draw an edge; with `delay=Delay(initial)` it takes a tick. An input has one edge: a second one is refused."""
        edge = Edge(
            as_end(source), as_end(target), delay if delay is None or isinstance(delay, Delay) else Delay(delay)
        )
        for end in (edge.source, edge.target):
            if end.node not in self.nodes:
                raise GraphError(f"{edge}: there is no node {end.node!r}; there are {_some(self.nodes)}")
        taken = next((old for old in self.edges if old.target == edge.target), None)
        if taken is not None:
            raise GraphError(f"{edge.target} is connected already, from {taken.source}; merge two sources with an OR")
        self.edges.append(edge)
        return edge

    def disconnect(self, target: End | str) -> Edge:
        """Remove the edge into an input."""
        end = as_end(target)
        for edge in self.edges:
            if edge.target == end:
                self.edges.remove(edge)
                return edge
        raise GraphError(f"nothing is connected to {end}")

    def remove(self, id: str) -> None:
        """Remove a node and its edges."""
        if id not in self.nodes:
            raise GraphError(f"there is no node {id!r}; there are {_some(self.nodes)}")
        del self.nodes[id]
        self.layout.pop(id, None)
        self.edges = [edge for edge in self.edges if id not in (edge.source.node, edge.target.node)]

    def into(self, id: str) -> dict[str, Edge]:
        """{input: its edge} of a node."""
        return {edge.target.port: edge for edge in self.edges if edge.target.node == id}

    def copy(self) -> Graph:
        """All of it, anew."""
        return Graph(
            self.name,
            {id: Node(node.type, dict(node.params), dict(node.ranges)) for id, node in self.nodes.items()},
            list(self.edges),
            RunSettings(self.run.seed, self.run.total_steps, self.run.path),
            dict(self.layout),
            {name: graph.copy() for name, graph in self.graphs.items()},
            self.about,
        )

    def sha256(self) -> str:
        """Of what it means: the same for another layout, another order of edges, other words about it."""
        from surefoot.graph.spec.text import canonical

        bare = self.copy()
        bare.layout, bare.about, bare.name = {}, "", ""
        for node in bare.nodes.values():
            node.ranges = {}
        return hashlib.sha256(canonical(bare).encode()).hexdigest()


def make_node(type: str, /, **params: Any) -> Node:
    """A node of a kind in the catalogue, its parameters read and checked."""
    from surefoot.graph.nodes import REGISTRY
    from surefoot.graph.spec.params import read_params

    declared = REGISTRY.get(type)
    return Node(declared.name, read_params(declared, params))


def as_end(end: End | str) -> End:
    """From text such as "agent.model"."""
    if isinstance(end, End):
        return end
    node, dot, port = end.rpartition(".")
    if not dot or not node or not port:
        raise GraphError(f"{end!r} is not an end of an edge; write node.port")
    return End(node, port)


def require_name(name: Any, what: str) -> str:
    """Raise unless `name` is letters, digits and underscores."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        shown = repr(name)[:60]
        raise GraphError(
            f"{what} is called {shown}; a name begins with a letter and has only letters, digits and _, at most 64"
        )
    return name


def is_reserved(name: str) -> bool:
    """True for words that Python keeps for itself."""
    return keyword.iskeyword(name) or keyword.issoftkeyword(name)


def _some(names: Mapping[str, Any]) -> str:
    first = list(names)[:8]
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return (", ".join(first) + more) if first else "none yet"
