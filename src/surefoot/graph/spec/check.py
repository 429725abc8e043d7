"""Does a graph hold together? Every finding names its node and port and says what would fit. Nothing is run."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from contextlib import suppress

from surefoot.errors import GraphError
from surefoot.graph.spec.checked import Checked, GraphFinding
from surefoot.graph.spec.declare import Misfit, NodeType, Registry
from surefoot.graph.spec.flatten import flatten
from surefoot.graph.spec.model import ABSENT, Edge, End, Graph
from surefoot.graph.spec.params import read_params, whole_params
from surefoot.graph.spec.types import ANY, TICK, Clock, Type, misfit, when


def check(graph: Graph, registry: Registry | None = None) -> Checked:
    """Look at a graph. Whatever it says, nothing in it is run."""
    if registry is None:
        from surefoot.graph.nodes import REGISTRY as registry
    try:
        flat = flatten(graph)
    except GraphError as why:
        return Checked(graph, graph, [GraphFinding(level="error", code="sub-graph", node="", message=str(why))])
    found = Checked(graph, flat)
    looker = _Looker(found, registry)
    if not looker.nodes():
        return found
    looker.edges()
    looker.inputs()
    looker.share_learning_rate()
    if not found.errors:
        looker.put_in_order()
    if not found.errors:
        looker.infer()
    if not found.errors:
        looker.lint()
    return found


class _Looker:
    def __init__(self, found: Checked, registry: Registry) -> None:
        self.found, self.flat, self.registry = found, found.flat, registry
        self.types: dict[str, NodeType] = {}
        self.into: dict[str, dict[str, Edge]] = {id: {} for id in found.flat.nodes}

    def say(
        self, code: str, node: str, port: str, message: str, *, level: str = "error", nodes: tuple[str, ...] = ()
    ) -> None:
        self.found.findings.append(
            GraphFinding(level=level, code=code, node=node, port=port, message=message, nodes=nodes)
        )

    def nodes(self) -> bool:
        """Kinds and parameters; False if some kind is not known, as then little else can be said."""
        for id, node in sorted(self.flat.nodes.items()):
            declared = self.registry.find(node.type)
            if declared is None:
                self.say(
                    "unknown-node",
                    id,
                    "",
                    f"there is no node called {node.type[:60]!r}{self.registry.near(node.type[:60])}",
                )
                continue
            if "inputs" in node.params and declared.name == "Code":
                from surefoot.graph.spec.code import declared_as

                try:
                    node.params = read_params(declared, node.params, who=id)
                    declared = declared_as(id, node.params)
                except GraphError as why:
                    self.say("param", id, "", str(why))
                    continue
            self.types[id] = declared
            try:
                self.found.params[id] = whole_params(declared, node.params, who=id)
            except GraphError as why:
                self.say("param", id, "", str(why).removeprefix(f"{id}: "))
        return len(self.types) == len(self.flat.nodes)

    def edges(self) -> None:
        for edge in self.flat.edges:
            for end, what in ((edge.source, "output"), (edge.target, "input")):
                if end.node not in self.types:
                    self.say("dangling", end.node, end.port, f"{edge}: there is no node {end.node!r}")
                    break
                declared = self.types[end.node]
                port = declared.output(end.port) if what == "output" else declared.input(end.port)
                if port is None:
                    there = declared.outputs if what == "output" else declared.inputs
                    names = ", ".join(each.name for each in there) or "none"
                    self.say(
                        "no-port", end.node, end.port, f"{declared.name} has no {what} {end.port!r}; it has {names}"
                    )
                    break
            else:
                self._take(edge)

    def _take(self, edge: Edge) -> None:
        declared = self.types[edge.target.node]
        port = declared.input(edge.target.port)
        assert port is not None
        taken = self.into[edge.target.node].get(port.name)
        if taken is not None:
            self.say(
                "two-sources",
                edge.target.node,
                port.name,
                f"it has two sources, {taken.source} and {edge.source}; merge them with an OR",
            )
            return
        self.into[edge.target.node][port.name] = edge
        absent = edge.delay is not None and edge.delay.initial is ABSENT
        if absent and not port.optional and declared.name != "OR":
            self.say(
                "no-initial",
                edge.target.node,
                port.name,
                "its delay has no initial value, so there is nothing to read in the first tick; give it one, or put an OR "
                "in front that has a first value from elsewhere",
            )

    def inputs(self) -> None:
        for id, declared in sorted(self.types.items()):
            for port in declared.inputs:
                if not port.optional and port.name not in self.into[id]:
                    self.say("unconnected", id, port.name, f"nothing is connected; it takes {port.type}: {port.help}")

    def share_learning_rate(self) -> None:
        """A learning rate that is set on an agent is its trainer's; two that differ are an error."""
        for id, edges in self.into.items():
            agent = edges["model"].source.node if "model" in edges and self.types[id].trains else ""
            rate = self.flat.nodes[agent].params.get("learning_rate") if agent in self.types else None
            if rate is None or id not in self.found.params:
                continue
            own = {name: self.flat.nodes[id].params.get(name) for name in ("learning_rate", "lr_schedule")}
            other = next((name for name, value in own.items() if value is not None and value != rate), None)
            if other is not None:
                message = (
                    f"{agent} sets learning_rate to {rate} and {id} sets {other} to {own[other]}; set it on {id} only"
                )
                self.say("param", id, other, message)
            self.found.params[id]["learning_rate"] = rate

    def put_in_order(self) -> None:
        """Kahn's algorithm, the smallest name first, so that neither the order of nodes nor of edges matters."""
        waits = dict.fromkeys(self.types, 0)
        after: dict[str, list[str]] = {id: [] for id in self.types}
        for id, edges in self.into.items():
            for edge in edges.values():
                if edge.delay is None:
                    waits[id] += 1
                    after[edge.source.node].append(id)
        ready = [id for id, count in waits.items() if count == 0]
        heapq.heapify(ready)
        while ready:
            id = heapq.heappop(ready)
            self.found.order.append(id)
            for next_one in after[id]:
                waits[next_one] -= 1
                if waits[next_one] == 0:
                    heapq.heappush(ready, next_one)
        left = {id for id, count in waits.items() if count > 0}
        if left:
            loop = self._loop(left)
            way = " → ".join([*loop, loop[0]])
            self.say(
                "cycle",
                loop[0],
                "",
                f"a cycle without a delay: {way}; each waits for the others in the same tick. Put a delay with an initial "
                "value on one of its edges, usually the one that goes back",
                nodes=tuple(loop),
            )

    def _loop(self, left: set[str]) -> list[str]:
        """Some cycle among nodes that wait for each other: walk upstream until a node comes again."""
        before = {
            id: min(e.source.node for e in self.into[id].values() if e.delay is None and e.source.node in left)
            for id in left
            if any(e.delay is None and e.source.node in left for e in self.into[id].values())
        }
        at, seen = min(before), list[str]()
        while at not in seen:
            seen.append(at)
            at = before[at]
        return seen[seen.index(at) :][::-1]

    def infer(self) -> None:
        """Types and clocks, twice: what comes by a delay is known only after the first time."""
        for last in (False, True):
            for id in self.found.order:
                self.infer_one(id, last=last)
            if self.found.errors:
                return

    def infer_one(self, id: str, *, last: bool) -> None:
        """Of one node, once its sources are known."""
        declared, params, found = self.types[id], self.found.params[id], self.found
        types: dict[str, Type] = {}
        clocks: dict[str, Clock] = {}
        for name, edge in self.into[id].items():
            source = self._output(edge.source)
            known = source in found.types
            given = found.types.get(source, ANY)
            port = declared.input(name)
            assert port is not None
            why = misfit(given, port.type)
            if why is not None and (edge.delay is None or last):
                self.say("type", id, name, f"{edge.source} does not fit: {why}{self._would_fit(port.type, edge)}")
                return
            types[name] = given
            if known or edge.delay is None:
                clocks[name] = found.clocks.get(source, TICK)
        try:
            outputs = declared.outputs_of(params, types)
            fires, given_clocks = declared.clocks_of(params, clocks)
        except Misfit as why:
            if last or not any(edge.delay for edge in self.into[id].values()):
                self.say("fit", id, why.where, why.message)
            outputs = {port.name: port.type for port in declared.outputs}
            fires, given_clocks = TICK, dict.fromkeys(outputs, TICK)
        found.fires[id] = fires
        for name, type in outputs.items():
            found.types[End(id, name)] = type
            clock = given_clocks.get(name, fires)
            own = clock.kind == "when" and "." not in clock.of  # of this node, not one that it passes on
            found.clocks[End(id, name)] = when(f"{id}.{clock.of}") if own else clock

    def pass_on(self, id: str) -> None:
        """An OR with a single source so far gives what that gives."""
        output, sources = End(id, "output"), list(self.into[id].values())
        if self.types[id].name == "OR" and len(sources) == 1:
            self.found.types[output] = self.found.types.get(self._output(sources[0].source), ANY)

    def _output(self, end: End) -> End:
        port = self.types[end.node].output(end.port)
        assert port is not None
        return End(end.node, port.name)

    def _would_fit(self, wanted: Type, edge: Edge) -> str:
        fitting = [
            str(end)
            for end, given in sorted(self.found.types.items())
            if end.node != edge.target.node and given.kind != "any" and misfit(given, wanted) is None
        ]
        return f"; {' or '.join(fitting[:3])} would" if fitting else ""

    def lint(self) -> None:
        for id in self.found.order:
            declared = self.types[id]
            if declared.lint is None:
                continue
            types = {name: self.found.types.get(self._output(edge.source), ANY) for name, edge in self.into[id].items()}
            for where, message in declared.lint(self.found.params[id], types):
                self.say("lint", id, where, message, level="lint")


def declared_types(checked: Checked, registry: Registry | None = None) -> Mapping[str, NodeType]:
    """{node: its kind} of a graph that was checked."""
    if registry is None:
        from surefoot.graph.nodes import REGISTRY as registry
    looker = _Looker(Checked(checked.graph, checked.flat), registry)
    looker.nodes()
    return looker.types


def guess_types(checked: Checked, registry: Registry | None = None) -> Checked:
    """Of a graph that is not finished: the types that are known all the same, and what already does not fit."""
    if not checked.errors:
        return checked
    if registry is None:
        from surefoot.graph.nodes import REGISTRY as registry
    found = Checked(checked.graph, checked.flat)
    looker = _Looker(found, registry)
    if not looker.nodes():
        return found
    looker.edges()
    looker.put_in_order()
    for last in (False, True):
        found.findings = []
        for id in found.order:
            if id in found.params:
                with suppress(KeyError):  # of an input that is not connected yet
                    looker.infer_one(id, last=last)
                looker.pass_on(id)
    return found
