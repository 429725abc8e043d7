"""An exported script whose graph block is gone or out of date, read statement by statement. Nothing is run.

A statement that stands for no node becomes a code node, never a guess.
"""

from __future__ import annotations

import ast
import re
import textwrap
from typing import Any

from surefoot.data.kinds import as_list
from surefoot.errors import GraphError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.declare import NodeType, code_type
from surefoot.graph.spec.model import ABSENT, NAME, Delay, Edge, End, Graph, Node
from surefoot.graph.spec.params import read_params
from surefoot.graph.wiring import ROLES, connect_plain

_COMMENT = re.compile(r"\s*# \[node (\w+)\] (\S+)(?: @ (-?[\d.e+]+),(-?[\d.e+]+))?")
RUN = ("seed", "total_steps", "path")
_FROM = ("surefoot.graph.runtime", "surefoot.graph.nodes")
"""Where scripts import runtime classes from; the second is that of scripts of earlier versions."""


class ScriptReader:
    """Reads one script; `read` returns its graph and notes on what could not be read as nodes."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.lines, self.tree = text.splitlines(), tree
        self.graph, self.notes = Graph(), list[str]()
        self.config: dict[str, Any] = {}
        self.used: set[str] = set()
        self.classes: dict[str, NodeType] = {}
        """Names in the program that stand for kinds of nodes."""
        self.nodes: dict[str, str] = {}
        """{variable: node}"""
        self.types: dict[str, NodeType] = {}
        self.outputs: dict[str, End] = {}
        """{variable: who says it}"""
        self.initial: dict[str, Any] = {}
        """{register: its first value}"""
        self.carried: dict[str, str] = {}
        """{register: the variable it takes over at the end of a tick}"""
        self.kept: dict[str, str] = {}
        """{variable that keeps a last value: what it keeps}"""
        self.at_end: set[str] = set()
        """Of those, the ones that are set after all nodes have fired."""
        self.late: list[tuple[End, str, Delay | None, int]] = []
        """(target, variable, delay, line) of edges whose source may come further down."""

    def read(self) -> tuple[Graph, list[str]]:
        train: ast.FunctionDef | None = None
        for statement in self.tree.body:
            match statement:
                case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.If():
                    continue
                case ast.ImportFrom(module=module, names=names):
                    for each in names:
                        self._import(module or "", each)
                case ast.ClassDef(name="Config"):
                    for line in statement.body:
                        match line:
                            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                                self.config[name] = _literal(value, name)
                            case ast.Expr(value=ast.Constant()):
                                continue
                            case _:
                                raise GraphError(f"line {line.lineno}: Config has fields with plain values only")
                case ast.Assign(targets=[ast.Name(id="NAME")], value=ast.Constant(value=str(name))):
                    self.graph.name = name
                case ast.Assign(targets=[ast.Name(id="ABOUT")], value=ast.Constant(value=str(about))):
                    self.graph.about = about
                case ast.FunctionDef(name="train"):
                    train = statement
                case _:
                    self._code(statement, once=True)
        if train is None:
            raise GraphError(
                "there is no function train(config) in it; only programs of `surefoot graph export` are read back"
            )
        self._body(train.body)
        for target, variable, delay, line in self.late:
            if variable not in self.outputs:
                raise GraphError(f"line {line}: {target} reads {variable!r}, which no node has said")
            self.graph.edges.append(Edge(self.outputs[variable], target, delay))
        for name in RUN:
            if name in self.config:
                setattr(self.graph.run, name, self.config[name])
        for name in sorted(set(self.config) - self.used - {*RUN, "into"}):
            self.notes.append(f"Config.{name} belongs to no node and is left out")
        return self.graph, self.notes

    def _import(self, module: str, each: ast.alias) -> None:
        known = REGISTRY.by_runtime(each.name) or REGISTRY.by_runtime(f"{each.name}Node") or REGISTRY.find(each.name)
        if known is not None and (module in _FROM or known.runtime == f"{module}:{each.name}"):
            self.classes[each.asname or each.name] = known

    def _body(self, statements: list[ast.stmt]) -> None:
        loop = next((each for each in statements if isinstance(each, ast.For)), None)
        if loop is not None:
            self._look_ahead(loop.body)
            for each in reversed(loop.body):  # after the last call there are only assignments
                if not isinstance(each, ast.Assign) or isinstance(each.value, ast.Call):
                    break
                self.at_end |= {target.id for target in each.targets if isinstance(target, ast.Name)}
        for each in statements:
            match each:
                case ast.For() if each is loop:
                    self._loop(each)
                case ast.Return() | ast.Expr(value=ast.Constant(value=str())):
                    continue
                case _:
                    self._statement(each, in_loop=False)

    def _look_ahead(self, statements: list[ast.stmt]) -> None:
        """Which names carry a value into the next tick, and which keep their last one."""
        for each in statements:
            match each:
                case ast.Assign(targets=[ast.Name(id=to)], value=ast.Name(id=source)):
                    self.carried[to] = source
                case ast.Assign(
                    targets=[ast.Name(id=to)],
                    value=ast.IfExp(body=ast.Name(id=source), orelse=ast.Name(id=other), test=ast.Compare()),
                ) if to == other:
                    self.kept[to] = source
                case ast.If(body=body):
                    self._look_ahead(body)
                case _:
                    continue

    def _loop(self, loop: ast.For) -> None:
        match loop.iter:
            case ast.Name(id="rollouts"):
                trainer = next(id for id, node in self.graph.nodes.items() if node.type == "PPOTrainerNode")
                self._say(loop.target, trainer, loop)
            case ast.Call(func=ast.Name(id="range"), args=[ast.Call(func=ast.Name(id="ticks_for"))]):
                for name in ast.walk(loop.iter):
                    if isinstance(name, ast.Attribute):
                        self.used.add(name.attr)
            case _:
                raise GraphError(f"line {loop.lineno}: this loop is not one of ticks or rollouts")
        self._block(loop.body)

    def _block(self, statements: list[ast.stmt]) -> None:
        for each in statements:
            match each:
                case ast.If(body=body, orelse=[]) if all(self._is_known(inner) for inner in body):
                    self._block(body)
                case _:
                    self._statement(each, in_loop=True)

    def _is_known(self, each: ast.stmt) -> bool:
        match each:
            case ast.Assign(value=ast.Call(func=ast.Name(id=name))) | ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                return name in self.nodes
            case ast.Assign(targets=[ast.Name(id=name)]):
                return name in self.carried or name in self.kept
            case _:
                return False

    def _statement(self, each: ast.stmt, *, in_loop: bool) -> None:
        match each:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id=kind), args=[], keywords=words)
                | ast.Call(func=ast.Name(id="partial"), args=[ast.Name(id=kind)], keywords=words),
            ) if kind in self.classes:
                self._node(name, self.classes[kind], words, each)
            case ast.Assign(targets=[ast.Name(id="rollouts")], value=ast.Call(func=ast.Name(id="Rollouts"), args=args)):
                self._plain(args, each)
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Name(id=name)) as call) if name in self.nodes:
                self._fired(self.nodes[name], call)
                self._say(target, self.nodes[name], each)
            case ast.Expr(value=ast.Call(func=ast.Name(id=name)) as call) if name in self.nodes:
                self._fired(self.nodes[name], call)
            case ast.Assign(targets=[ast.Name(id=to)], value=ast.Attribute(value=ast.Name(id=name), attr="policy")) if (
                name in self.nodes
            ):
                self.outputs[to] = End(self.nodes[name], "model")
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self.carried or name in self.kept:
                if not in_loop:
                    self.initial[name] = _literal(value, name)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=None)) if in_loop:
                pass  # said anew in this tick, or said once
            case ast.FunctionDef() if self._comment(each) is not None:
                self._own_code(each)
            case ast.Pass():
                pass
            case _:
                self._code(each, once=not in_loop)

    def _comment(self, each: ast.stmt) -> re.Match[str] | None:
        return _COMMENT.fullmatch(self.lines[each.lineno - 2]) if each.lineno >= 2 else None

    def _new_id(self, each: ast.stmt, variable: str) -> str:
        found = self._comment(each)
        id = found[1] if found is not None else variable
        if not NAME.fullmatch(id):
            raise GraphError(f"line {each.lineno}: {id[:40]!r} cannot be the name of a node")
        if id in self.graph.nodes:
            raise GraphError(f"line {each.lineno}: there is a node {id!r} already")
        if found is not None and found[3] is not None:
            self.graph.layout[id] = (float(found[3]), float(found[4]))
        return id

    def _node(self, variable: str, declared: NodeType, words: list[ast.keyword], each: ast.stmt) -> None:
        found = self._comment(each)
        named = REGISTRY.find(found[2]) if found is not None else None
        if named is not None and named.runtime == declared.runtime:
            declared = named
        id, params = self._new_id(each, variable), dict[str, Any]()
        for word in words:
            if word.arg is None:
                raise GraphError(f"line {each.lineno}: ** is not read back")
            if word.arg in (*RUN, "into") and declared.param(word.arg) is None:
                continue
            match word.value:
                case ast.Attribute(value=ast.Name(id="config"), attr=name) if name in self.config:
                    params[word.arg] = self.config[name]
                    self.used.add(name)
                case value:
                    params[word.arg] = _literal(value, word.arg)
        self.graph.nodes[id] = Node(declared.name, read_params(declared, params, who=f"line {each.lineno}"))
        self.nodes[variable], self.types[id] = id, declared

    def _plain(self, args: list[ast.expr], each: ast.stmt) -> None:
        names = [arg.id for arg in args if isinstance(arg, ast.Name)]
        if len(names) != len(ROLES) or not all(name in self.nodes for name in names):
            raise GraphError(f"line {each.lineno}: Rollouts takes the six nodes {', '.join(ROLES)}")
        ids = {role: self.nodes[name] for role, name in zip(ROLES, names, strict=True)}
        for role, id in ids.items():
            if self.graph.nodes[id].type != ROLES[role]:
                raise GraphError(
                    f"line {each.lineno}: {id} is a {self.graph.nodes[id].type}; there must be a {ROLES[role]}"
                )
        connect_plain(self.graph, ids)

    def _fired(self, id: str, call: ast.Call) -> None:
        """The edges into a node, from the arguments of its call."""
        ports = [port.name for port in self.types[id].inputs]
        for port, arg in zip(ports, call.args, strict=False):
            self._connect(End(id, port), arg, call)
        for word in call.keywords:
            if word.arg is None:
                raise GraphError(f"line {call.lineno}: ** is not read back")
            self._connect(End(id, word.arg), word.value, call)

    def _connect(self, target: End, arg: ast.expr, call: ast.Call) -> None:
        if not isinstance(arg, ast.Name):
            raise GraphError(
                f"line {call.lineno}: {target} is given {ast.unparse(arg)[:60]!r}; give it a name that a node says"
            )
        name = arg.id
        # A name that keeps a value and is set at the end of the tick is a delay; set in its middle it only holds.
        if name in self.carried or (name in self.kept and name in self.initial and name in self.at_end):
            source = self.carried.get(name) or self.kept[name]
            initial = self.initial.get(name)
            self.late.append((target, source, Delay(ABSENT if initial is None else initial), call.lineno))
        elif name in self.kept:
            self.late.append((target, self.kept[name], None, call.lineno))
        elif name in self.outputs:
            self.graph.edges.append(Edge(self.outputs[name], target))
        else:
            raise GraphError(f"line {call.lineno}: {target} reads {name!r}, which no node has said")

    def _say(self, target: ast.expr, id: str, each: ast.stmt) -> None:
        """Which variables hold a node's outputs."""
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        ports = [port.name for port in self.types[id].outputs]
        if len(names) > len(ports):
            raise GraphError(f"line {each.lineno}: {id} has {len(ports)} outputs, not {len(names)}")
        for name, port in zip(names, ports, strict=False):
            if not isinstance(name, ast.Name):
                raise GraphError(f"line {each.lineno}: outputs are given plain names")
            if name.id != "_":
                self.outputs[name.id] = End(id, port)

    def _own_code(self, each: ast.FunctionDef) -> None:
        """A code node as the export writes it: a function whose last line gives its outputs."""
        first, last = each.body[0], each.body[-1]
        outputs: tuple[str, ...] = ()
        end = last.end_lineno
        if isinstance(last, ast.Return):
            end = last.lineno - 1
            parts = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
            outputs = tuple(part.id for part in parts if isinstance(part, ast.Name))
        once = self.lines[each.lineno - 1].rstrip().endswith("# in the first tick only")
        id, inputs = self._new_id(each, each.name), tuple(arg.arg for arg in each.args.args)
        self._add_code(id, self.lines[first.lineno - 1 : end], inputs, outputs, once)
        self.nodes[each.name] = id

    def _code(self, statement: ast.stmt, *, once: bool) -> None:
        """A statement that stands for no node, kept as it is."""
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        inputs = dict.fromkeys(n.id for n in names if isinstance(n.ctx, ast.Load) and n.id in self.outputs)
        calls = [each for each in ast.walk(self.tree) if isinstance(each, ast.Call)]
        later = {arg.id for call in calls for arg in call.args if isinstance(arg, ast.Name)}
        outputs = dict.fromkeys(n.id for n in names if isinstance(n.ctx, ast.Store) and n.id in later)
        id = f"code_{1 + sum(node.type == 'Code' for node in self.graph.nodes.values())}"
        lines = self.lines[statement.lineno - 1 : statement.end_lineno]
        source = self._add_code(id, lines, tuple(inputs), tuple(outputs), once)
        for name in inputs:
            self.graph.edges.append(Edge(self.outputs[name], End(id, name)))
        for name in outputs:
            self.outputs[name] = End(id, name)
        self.notes.append(
            f"line {statement.lineno}: {source.splitlines()[0][:60]!r} stands for no node; it is kept as {id}"
        )

    def _add_code(
        self, id: str, lines: list[str], inputs: tuple[str, ...], outputs: tuple[str, ...], once: bool
    ) -> str:
        """Add a code node; return its source."""
        source = textwrap.dedent("\n".join(lines))
        params: dict[str, Any] = {"source": source, "inputs": inputs, "outputs": outputs}
        params |= {"once": True} if once else {}
        self.graph.nodes[id] = Node("Code", read_params(REGISTRY.get("Code"), params, who=id))
        self.types[id] = code_type(REGISTRY.get("Code"), id, self.graph.nodes[id].params)
        return source


def _literal(value: ast.expr, what: str) -> Any:
    try:
        found = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as why:
        raise GraphError(
            f"line {value.lineno}: {what} is {ast.unparse(value)[:60]!r}; plain values are read back, nothing is run"
        ) from why
    many = as_list(found)
    return found if many is None else list(many)
