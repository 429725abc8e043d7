"""A program that stands alone, read back: its Config says the nodes, the rest must be what those nodes come to."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.catalogue import REGISTRY
from surefoot.graph.export.plain import REMEMBERING
from surefoot.graph.export.shape import WATCHERS
from surefoot.graph.export.standalone import to_standalone
from surefoot.graph.patterns import LEVEL_ROLES, LEVELS, ROLES, STARTS, connect, connect_plain, several_edges
from surefoot.graph.spec.declare import NodeType
from surefoot.graph.spec.model import Graph, Node
from surefoot.graph.spec.params import read_params

_NODE = re.compile(r"    # \[node (\w+)\] (\w+)(?: @ (-?[\d.e+]+),(-?[\d.e+]+))?(?: (\{.*\}))?")
_RUN = re.compile(r"    # \[run\] (\{.*\})")
MARK = "standalone: needs"


def is_alone(tree: ast.Module) -> bool:
    """True for a program of `--style standalone`."""
    return MARK in (ast.get_docstring(tree) or "")


def from_alone(text: str, tree: ast.Module) -> tuple[Graph, list[str]]:
    """The graph, and what was changed by hand."""
    graph = Graph()
    for each in tree.body:
        match each:
            case ast.Assign(targets=[ast.Name(id="NAME")], value=ast.Constant(value=str(name))):
                graph.name = name
            case ast.Assign(targets=[ast.Name(id="ABOUT")], value=ast.Constant(value=str(about))):
                graph.about = about
            case ast.ClassDef(name="Config"):
                _config(each, text.splitlines(), graph)
            case _:
                continue
    _wire(graph)
    return graph, _changed(text, tree, graph)


def _config(config: ast.ClassDef, lines: list[str], graph: Graph) -> None:
    values: dict[int, tuple[str, Any]] = {}
    for each in config.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value is not None:
            try:
                values[each.lineno] = (each.target.id, ast.literal_eval(each.value))
            except ValueError as why:
                raise GraphError(
                    f"line {each.lineno}: {each.target.id} has no plain value; nothing is run to find out"
                ) from why
    params: dict[str, dict[str, Any]] = {}
    at = ""
    for number in range(config.lineno, (config.end_lineno or config.lineno) + 1):
        line = lines[number - 1]
        if found := _NODE.fullmatch(line):
            at = found[1]
            if at in graph.nodes:
                raise GraphError(f"line {number}: there is a node {at!r} already")
            graph.nodes[at] = Node(REGISTRY.get(found[2]).name)
            params[at] = json.loads(found[5]) if found[5] else {}
            if found[3] is not None:
                graph.layout[at] = (float(found[3]), float(found[4]))
        elif found := _RUN.fullmatch(line):
            graph.run.path = json.loads(found[1])["path"]
        elif number in values:
            name, value = values[number]
            if not at:
                if name not in ("seed", "total_steps"):
                    raise GraphError(f"line {number}: {name} belongs to no node")
                setattr(graph.run, name, value)
            elif not line.endswith("  # default"):
                _take(params[at], at, name, value, REGISTRY.get(graph.nodes[at].type))
    for id, said in params.items():
        graph.nodes[id].params = read_params(REGISTRY.get(graph.nodes[id].type), said, who=id)


def _take(params: dict[str, Any], id: str, name: str, value: Any, declared: NodeType) -> None:
    name = name.rstrip("_")
    if declared.param(name) is None:
        name = name.removeprefix(f"{id}_")
    for tail, kind in (("_cosine_end", "cosine"), ("_end", "linear")):
        if name.endswith(tail):
            start = name.removesuffix(tail)
            params[start] = {"kind": kind, "start": params[start], "end": value}
            return
    params[name] = value


def _wire(graph: Graph) -> None:
    kinds: dict[str, list[str]] = {}
    for id, node in graph.nodes.items():
        kinds.setdefault(node.type, []).append(id)
    watchers = [(id, node.type) for id, node in graph.nodes.items() if node.type in WATCHERS]
    for id, type in watchers:
        for port, output in WATCHERS[type].items():
            graph.connect(f"{kinds.get('PPOTrainerNode', [''])[0]}.{output}", f"{id}.{port}")
    if all(len(kinds.get(type, [])) == 1 for type in ROLES.values()) and len(graph.nodes) == len(ROLES) + len(watchers):
        remembers = graph.nodes[kinds["PPOAgentNode"][0]].params.get("network") in REMEMBERING
        connect_plain(graph, {role: kinds[type][0] for role, type in ROLES.items()}, STARTS if remembers else ())
        return
    if all(len(kinds.get(type, [])) == 1 for type in LEVEL_ROLES.values()):
        connect(graph, LEVELS, {role: kinds[type][0] for role, type in LEVEL_ROLES.items()})
        return
    try:
        worlds, batches = kinds["Environment"], kinds["Batch"]
        rows = list(zip(worlds, kinds["OR"], kinds["Step"], strict=True))
        names = {"agent": kinds["PPOAgentNode"][0], "action": kinds["ActionProcessor"][0], "share": kinds["Split"][0]}
        edges = several_edges(rows, batches[1:], see=batches[0], trainer=kinds["PPOTrainerNode"][0], **names)
    except (KeyError, ValueError, IndexError) as why:
        raise GraphError(
            "its nodes make neither one PPO loop, nor several environments with one agent, nor two policies, one above the other"
        ) from why
    for source, target, delay in edges:
        graph.connect(source, target, delay)


def _changed(text: str, tree: ast.Module, graph: Graph) -> list[str]:
    """Statements that are not those the graph comes to; each becomes a code node, for a person to look at."""
    own = {ast.unparse(each) for each in ast.parse(to_standalone(graph)).body}
    notes: list[str] = []
    for each in tree.body[1:]:
        if isinstance(each, ast.ClassDef) and each.name == "Config":
            continue
        if ast.unparse(each) in own:
            continue
        id = f"code_{1 + sum(node.type == 'Code' for node in graph.nodes.values())}"
        source = "\n".join(text.splitlines()[each.lineno - 1 : each.end_lineno])
        graph.nodes[id] = Node("Code", read_params(REGISTRY.get("Code"), {"source": source, "once": True}, who=id))
        notes.append(f"line {each.lineno}: {source.splitlines()[0][:60]!r} was changed by hand; it is kept as {id}")
    return notes
