"""Check a graph without running it: node types, edges, firing order, types and clocks. Findings name node and port."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from contextlib import suppress

from surefoot.errors import GraphError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.checked import Checked, GraphFinding
from surefoot.graph.spec.declare import Misfit, NodeType, code_type
from surefoot.graph.spec.learning_check import check_learning
from surefoot.graph.spec.model import ABSENT, MERGE, Edge, End, Graph
from surefoot.graph.spec.params import complete_params, read_params
from surefoot.graph.spec.subgraphs import flatten
from surefoot.graph.spec.types import ANY, KINDS, TICK, WRITABLE, Clock, Type, misfit, when

# Characters of a finding; the longest of the checker's own have half as many.
MOST_MESSAGE = 600


def check(graph: Graph) -> Checked:
    """Return the findings about a graph and what was inferred; nothing in the graph is run.

    Args:
        graph: The graph, with or without sub-graphs.
    """
    try:
        flat = flatten(graph)
    except GraphError as why:
        return Checked(graph, graph, [GraphFinding(level="error", code="sub-graph", node="", message=str(why))])
    checked = Checked(graph, flat)
    checker = _Checker(checked)
    if not flat.nodes:
        checker.report("empty", "", "", "the graph has no nodes; add an Environment, or start from a template")
    if not checker.nodes():
        return checked
    checker.edges()
    checker.inputs()
    checker.share_learning_rate()
    # Each stage needs the result of the one before: inference on a graph with a cycle would not end.
    for stage in (checker.put_in_order, checker.infer, checker.learning, checker.lint):
        if not checked.errors:
            stage()
    return checked


class _Checker:
    def __init__(self, checked: Checked) -> None:
        self.checked, self.flat = checked, checked.flat
        self.types: dict[str, NodeType] = {}
        self.into: dict[str, dict[str, Edge]] = {id: {} for id in checked.flat.nodes}

    def report(
        self, code: str, node: str, port: str, message: str, *, level: str = "error", nodes: tuple[str, ...] = ()
    ) -> None:
        if len(message) > MOST_MESSAGE:
            # It may quote a value of the file.
            message = f"{message[: MOST_MESSAGE // 2]} … {message[-MOST_MESSAGE // 2 :]}"
        self.checked.findings.append(
            GraphFinding(level=level, code=code, node=node, port=port, message=message, nodes=nodes)
        )

    def nodes(self) -> bool:
        """Check types and parameters; return False if a type is unknown, as the other checks need all types."""
        for id, node in sorted(self.flat.nodes.items()):
            declared = REGISTRY.find(node.type)
            if declared is None:
                name = node.type[:60]
                self.report("unknown-node", id, "", f"there is no node type {name!r}{REGISTRY.near(name)}")
                continue
            if "inputs" in node.params and declared.name == "Code":
                # The ports of a Code node are parameters, so these are read before the type is known.
                try:
                    node.params = read_params(declared, node.params, who=id)
                    declared = code_type(declared, id, node.params)
                except GraphError as why:
                    self.report("param", id, "", str(why))
                    continue
            self.types[id] = declared
            try:
                self.checked.params[id] = complete_params(declared, node.params, who=id)
            except GraphError as why:
                unset = [each.name for each in declared.params if each.required and each.name not in node.params]
                self.report("param", id, unset[0] if unset else "", str(why).removeprefix(f"{id}: "))
        return len(self.types) == len(self.flat.nodes)

    def edges(self) -> None:
        for edge in self.flat.edges:
            for end, side in ((edge.source, "output"), (edge.target, "input")):
                if end.node not in self.types:
                    self.report("dangling", end.node, end.port, f"{edge}: there is no node {end.node!r}")
                    break
                declared = self.types[end.node]
                if (declared.output(end.port) if side == "output" else declared.input(end.port)) is None:
                    ports = declared.outputs if side == "output" else declared.inputs
                    names = ", ".join(each.name for each in ports) or "none"
                    message = f"{declared.name} has no {side} {end.port!r}; it has {names}"
                    self.report("no-port", end.node, end.port, message)
                    break
            else:
                self._add_edge(edge)

    def _add_edge(self, edge: Edge) -> None:
        declared, node = self.types[edge.target.node], edge.target.node
        port = declared.input(edge.target.port)
        assert port is not None
        other = self.into[node].get(port.name)
        if other is not None:
            sources = f"{other.source} and {edge.source}"
            self.report("two-sources", node, port.name, f"it has two sources, {sources}; {MERGE}")
            return
        self.into[node][port.name] = edge
        absent = edge.delay is not None and edge.delay.initial is ABSENT
        if absent and not port.optional and declared.name != "OR":
            self.report(
                "no-initial",
                node,
                port.name,
                "its delay has no initial value, so there is nothing to read in the first tick; set an initial value, or "
                "put an OR in front that gets its first value from elsewhere",
            )

    def inputs(self) -> None:
        for id, declared in sorted(self.types.items()):
            for port in declared.inputs:
                if not port.optional and port.name not in self.into[id]:
                    edge = next((e for e in self.checked.graph.edges if e.target == End(id, port.name)), None)
                    missing = "nothing is connected" if edge is None else f"{edge.source.node} is muted or bypassed"
                    message = f"{missing}; it takes {port.type}: {port.help}"
                    self.report("unconnected", id, port.name, message)

    def share_learning_rate(self) -> None:
        """Copy a learning rate that is set on an agent to its trainer; two different rates are an error."""
        for id, edges in self.into.items():
            agent = edges["model"].source.node if "model" in edges and self.types[id].trains else ""
            rate = self.flat.nodes[agent].params.get("lr") if agent in self.types else None
            if rate is None or id not in self.checked.params:
                continue
            rates = {name: self.flat.nodes[id].params.get(name) for name in ("lr", "lr_schedule")}
            other = next((name for name, value in rates.items() if value is not None and value != rate), None)
            if other is not None:
                message = f"{agent} sets lr to {rate} and {id} sets {other} to {rates[other]}; set it on {id} only"
                self.report("param", id, other, message)
            # The check is the only place that sees both nodes; engines read the result.
            self.checked.params[id]["lr"] = rate

    def put_in_order(self) -> None:
        """Sort the nodes topologically (Kahn's algorithm); ties go to the smaller name, so the order of edges is irrelevant."""
        pending = dict.fromkeys(self.types, 0)
        readers: dict[str, list[str]] = {id: [] for id in self.types}
        for id, edges in self.into.items():
            for edge in edges.values():
                if edge.delay is None:
                    pending[id] += 1
                    readers[edge.source.node].append(id)
        ready = [id for id, count in pending.items() if count == 0]
        heapq.heapify(ready)
        while ready:
            id = heapq.heappop(ready)
            self.checked.order.append(id)
            for reader in readers[id]:
                pending[reader] -= 1
                if pending[reader] == 0:
                    heapq.heappush(ready, reader)
        stuck = {id for id, count in pending.items() if count > 0}
        if stuck:
            cycle = self._cycle(stuck)
            self.report(
                "cycle",
                cycle[0],
                "",
                f"a cycle without a delay: {' → '.join([*cycle, cycle[0]])}; each node waits for the others in the same "
                "tick. Put a delay with an initial value on one of its edges, usually the one that goes back",
                nodes=tuple(cycle),
            )

    def _cycle(self, stuck: set[str]) -> list[str]:
        """Return a cycle among nodes that wait for each other: walk upstream until a node repeats."""
        before = {
            id: min(sources)
            for id in stuck
            if (
                sources := [e.source.node for e in self.into[id].values() if e.delay is None and e.source.node in stuck]
            )
        }
        # The smallest name, so that the same graph always reports the same cycle.
        node, path = min(before), list[str]()
        while node not in path:
            path.append(node)
            node = before[node]
        return path[path.index(node) :][::-1]

    def infer(self) -> None:
        """Infer types and clocks in two passes: the source of a delayed edge is only known after the first."""
        for last in (False, True):
            for id in self.checked.order:
                self.infer_one(id, last=last)
            if self.checked.errors:
                return

    def infer_one(self, id: str, *, last: bool) -> None:
        """Infer the types and clocks of one node from its sources."""
        declared, checked = self.types[id], self.checked
        types: dict[str, Type] = {}
        clocks: dict[str, Clock] = {}
        for name, edge in self.into[id].items():
            source, port = self._output(edge.source), declared.input(name)
            assert port is not None
            types[name] = checked.types.get(source, ANY)
            why = misfit(types[name], port.type)
            if why is not None and (edge.delay is None or last):
                fitting = [
                    str(end)
                    for end, type in sorted(checked.types.items())
                    if end.node != id and type.kind != "any" and misfit(type, port.type) is None
                ]
                advice = f"; {' or '.join(fitting[:3])} would" if fitting else ""
                self.report("type", id, name, f"{edge.source} does not fit: {why}{advice}")
                return
            if (
                last
                and edge.delay is not None
                and edge.delay.initial is not ABSENT
                and types[name].kind not in WRITABLE
            ):
                message = (
                    f"its delay starts with {edge.delay.initial!r}, which is not {KINDS[types[name].kind]}; remove the "
                    "first value, and put an OR in front that gets one from elsewhere"
                )
                self.report("initial", id, name, message)
                return
            if source in checked.types or edge.delay is None:
                clocks[name] = checked.clocks.get(source, TICK)
        try:
            outputs = declared.outputs_of(checked.params[id], types)
            fires, output_clocks = declared.clocks_of(checked.params[id], clocks)
        except Misfit as why:
            # In the first pass the inputs behind a delay have no types yet, so a complaint may be premature.
            if last or not any(edge.delay for edge in self.into[id].values()):
                self.report("fit", id, why.where, why.message)
            outputs = {port.name: port.type for port in declared.outputs}
            fires, output_clocks = TICK, dict.fromkeys(outputs, TICK)
        checked.fires[id] = fires
        for name, type in outputs.items():
            clock = output_clocks.get(name, fires)
            # A `when` without a dot refers to a port of this node; one with a dot was passed on from a source.
            if clock.kind == "when" and "." not in clock.of:
                clock = when(f"{id}.{clock.of}")
            checked.types[End(id, name)], checked.clocks[End(id, name)] = type, clock

    def _output(self, end: End) -> End:
        port = self.types[end.node].output(end.port)
        assert port is not None
        return End(end.node, port.name)

    def source_types(self, id: str) -> dict[str, Type]:
        """Return the types of the sources of a node by input."""
        return {name: self.checked.types.get(self._output(edge.source), ANY) for name, edge in self.into[id].items()}

    def learning(self) -> None:
        for level, node, where, message in check_learning(self.checked, self.types, self.into):
            self.report("lint" if level == "lint" else "fit", node, where, message, level=level)

    def lint(self) -> None:
        for id in self.checked.order:
            lint = self.types[id].lint
            for where, message in lint(self.checked.params[id], self.source_types(id)) if lint is not None else ():
                self.report("lint", id, where, message, level="lint")


def declared_types(checked: Checked) -> Mapping[str, NodeType]:
    """Return {node: its type} of a checked graph."""
    checker = _Checker(Checked(checked.graph, checked.flat))
    checker.nodes()
    return checker.types


def guess_types(checked: Checked) -> Checked:
    """Return the types that are known in an unfinished graph, and the findings about what does not fit already."""
    if not checked.errors:
        return checked
    guess = Checked(checked.graph, checked.flat)
    checker = _Checker(guess)
    if not checker.nodes():
        return guess
    checker.edges()
    checker.put_in_order()
    for last in (False, True):
        guess.findings = []
        for id in guess.order:
            if id in guess.params:
                # `infer` functions index inputs that are not connected yet.
                with suppress(KeyError):
                    checker.infer_one(id, last=last)
                # An OR with a single source so far has the type of that source.
                if checker.types[id].name == "OR" and len(types := list(checker.source_types(id).values())) == 1:
                    guess.types[End(id, "output")] = types[0]
    return guess
