"""Read the code of an exported script whose graph block is missing or out of date, statement by statement. Nothing is run.

A statement that is not part of a node becomes a Code node.
"""

from __future__ import annotations

import ast
import re
import textwrap
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.export.writing import read_literal
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.code_source import complete, definitions, interface
from surefoot.graph.spec.declare import NodeType, code_type
from surefoot.graph.spec.model import ABSENT, Delay, Edge, End, Graph, Node, require_name
from surefoot.graph.spec.params import read_params
from surefoot.graph.wiring import ROLES, connect_plain

_COMMENT = re.compile(r"\s*# \[node (\w+)\] (\S+)(?: @ (-?[\d.e+]+),(-?[\d.e+]+))?")
RUN = ("seed", "total_steps", "path")
# Modules from which scripts import runtime classes; earlier versions used the second.
_FROM = ("surefoot.graph.runtime", "surefoot.graph.nodes")


class ScriptReader:
    """Reads one script; `read` returns its graph and notes on statements that became Code nodes."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.lines, self.tree, self.graph, self.notes = text.splitlines(), tree, Graph(), list[str]()
        self.config: dict[str, Any] = {}
        self.used: set[str] = set()
        """Fields of Config that nodes use."""
        self.classes: dict[str, NodeType] = {}
        """{imported name: node type}"""
        self.nodes: dict[str, str] = {}
        """{variable: node}"""
        self.types: dict[str, NodeType] = {}
        self.outputs: dict[str, End] = {}
        """{variable: the output that it holds}"""
        self.initial: dict[str, Any] = {}
        """{register: its initial value}"""
        self.carried: dict[str, str] = {}
        """{register: the variable that it takes over at the end of a tick}"""
        self.held: dict[str, str] = {}
        """{register that holds the last value: its variable}"""
        self.set_last: set[str] = set()
        """Registers that are set after all nodes have fired."""
        self.late: list[tuple[End, str, Delay | None, int]] = []
        """(target, variable, delay, line) of edges whose source may come further down."""

        self.defined = definitions(self.lines, tree)

    def read(self) -> tuple[Graph, list[str]]:
        train: ast.FunctionDef | None = None
        for statement in self.tree.body:
            match statement:
                case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.If():
                    continue
                case ast.ImportFrom(module=module, names=names):
                    for each in names:
                        type = REGISTRY.by_runtime(each.name) or REGISTRY.by_runtime(f"{each.name}Node")
                        type = type or REGISTRY.find(each.name)
                        if type is not None and (module in _FROM or type.runtime == f"{module}:{each.name}"):
                            self.classes[each.asname or each.name] = type
                case ast.ClassDef(name="Config"):
                    self._read_config(statement)
                case ast.Assign(targets=[ast.Name(id="NAME")], value=ast.Constant(value=str(name))):
                    self.graph.name = name
                case ast.Assign(targets=[ast.Name(id="ABOUT")], value=ast.Constant(value=str(about))):
                    self.graph.about = about
                case ast.FunctionDef(name="train"):
                    train = statement
                case ast.FunctionDef(name=name) if name in self.defined:
                    continue  # A helper: the Code nodes that call it contain it.
                case _:
                    self._add_statement(statement, once=True)
        if train is None:
            raise GraphError("there is no function train(config); only programs of `surefoot graph export` are read")
        self._read_train(train.body)
        for target, variable, delay, line in self.late:
            if variable not in self.outputs:
                raise GraphError(f"line {line}: {target} reads {variable!r}, which is not the output of a node")
            self.graph.edges.append(Edge(self.outputs[variable], target, delay))
        for name in set(RUN) & set(self.config):
            setattr(self.graph.run, name, self.config[name])
        for name in sorted(set(self.config) - self.used - {*RUN, "into"}):
            self.notes.append(f"Config.{name} belongs to no node and is left out")
        return self.graph, self.notes

    def _read_config(self, config: ast.ClassDef) -> None:
        for line in config.body:
            match line:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.config[name] = read_literal(value, name)
                case ast.Expr(value=ast.Constant()):
                    continue
                case _:
                    raise GraphError(f"line {line.lineno}: Config must have fields with literal values only")

    def _read_train(self, statements: list[ast.stmt]) -> None:
        loop = next((each for each in statements if isinstance(each, ast.For)), None)
        if loop is not None:
            self._find_registers(loop.body)
            # After the last call of the loop there are only assignments.
            for each in reversed(loop.body):
                if not isinstance(each, ast.Assign) or isinstance(each.value, ast.Call):
                    break
                self.set_last |= {target.id for target in each.targets if isinstance(target, ast.Name)}
        for each in statements:
            match each:
                case ast.For() if each is loop:
                    self._read_loop(each)
                case ast.Return() | ast.Expr(value=ast.Constant(value=str())):
                    continue
                case _:
                    self._read_statement(each, in_loop=False)

    def _find_registers(self, statements: list[ast.stmt]) -> None:
        """Find the variables that carry a value to the next tick, and those that hold the last one."""
        for each in statements:
            match each:
                case ast.Assign(targets=[ast.Name(id=to)], value=ast.Name(id=source)):
                    self.carried[to] = source
                case ast.Assign(
                    targets=[ast.Name(id=to)],
                    value=ast.IfExp(body=ast.Name(id=source), orelse=ast.Name(id=other), test=ast.Compare()),
                ) if to == other:
                    self.held[to] = source
                case ast.If(body=body):
                    self._find_registers(body)
                case _:
                    continue

    def _read_loop(self, loop: ast.For) -> None:
        match loop.iter:
            case ast.Name(id="rollouts"):
                trainer = next(id for id, node in self.graph.nodes.items() if node.type == "PPOTrainerNode")
                self._name_outputs(loop.target, trainer, loop)
            case ast.Call(func=ast.Name(id="range"), args=[ast.Call(func=ast.Name(id="ticks_for"))]):
                self.used |= {name.attr for name in ast.walk(loop.iter) if isinstance(name, ast.Attribute)}
            case _:
                raise GraphError(f"line {loop.lineno}: this is not a loop over ticks or rollouts")
        for each in loop.body:
            # A condition on values of nodes; its statements are read as if they were in the loop itself.
            if isinstance(each, ast.If) and not each.orelse and all(map(self._is_known, each.body)):
                for inner in each.body:
                    self._read_statement(inner, in_loop=True)
            else:
                self._read_statement(each, in_loop=True)

    def _is_known(self, each: ast.stmt) -> bool:
        match each:
            case ast.Assign(value=ast.Call(func=ast.Name(id=name))) | ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                return name in self.nodes
            case ast.Assign(targets=[ast.Name(id=name)]):
                return name in self.carried or name in self.held
            case _:
                return False

    def _read_statement(self, each: ast.stmt, *, in_loop: bool) -> None:
        match each:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id=type), args=[], keywords=words)
                | ast.Call(func=ast.Name(id="partial"), args=[ast.Name(id=type)], keywords=words),
            ) if type in self.classes:
                self._add_node(name, self.classes[type], words, each)
            case ast.Assign(targets=[ast.Name(id="rollouts")], value=ast.Call(func=ast.Name(id="Rollouts"), args=args)):
                self._connect_rollouts(args, each)
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Name(id=name)) as call) if name in self.nodes:
                self._connect_call(self.nodes[name], call)
                self._name_outputs(target, self.nodes[name], each)
            case ast.Expr(value=ast.Call(func=ast.Name(id=name)) as call) if name in self.nodes:
                self._connect_call(self.nodes[name], call)
            case ast.Assign(targets=[ast.Name(id=to)], value=ast.Attribute(value=ast.Name(id=name), attr="policy")) if (
                name in self.nodes
            ):
                self.outputs[to] = End(self.nodes[name], "model")
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self.carried or name in self.held:
                if not in_loop:
                    self.initial[name] = read_literal(value, name)
            case ast.Pass() | ast.Assign(targets=[ast.Name()], value=ast.Constant(value=None)) if in_loop:
                pass  # An assignment of None clears a value that is set in this tick or in the first one.
            case ast.FunctionDef() if self._comment(each) is not None:
                self._add_function(each)
            case _:
                self._add_statement(each, once=not in_loop)

    def _comment(self, each: ast.stmt) -> re.Match[str] | None:
        return _COMMENT.fullmatch(self.lines[each.lineno - 2]) if each.lineno >= 2 else None

    def _new_id(self, each: ast.stmt, variable: str) -> str:
        comment = self._comment(each)
        id = require_name(comment[1] if comment is not None else variable, f"line {each.lineno}: a node")
        if id in self.graph.nodes:
            raise GraphError(f"line {each.lineno}: there is already a node {id!r}")
        if comment is not None and comment[3] is not None:
            self.graph.layout[id] = (float(comment[3]), float(comment[4]))
        return id

    def _add_node(self, variable: str, declared: NodeType, words: list[ast.keyword], each: ast.stmt) -> None:
        comment = self._comment(each)
        named = REGISTRY.find(comment[2]) if comment is not None else None
        # Several types may share a runtime class; the comment has the type.
        if named is not None and named.runtime == declared.runtime:
            declared = named
        id, params = self._new_id(each, variable), dict[str, Any]()
        for word in words:
            if word.arg is None:
                raise GraphError(f"line {each.lineno}: ** cannot be read")
            if word.arg in (*RUN, "into") and declared.param(word.arg) is None:
                continue
            match word.value:
                case ast.Attribute(value=ast.Name(id="config"), attr=name) if name in self.config:
                    params[word.arg] = self.config[name]
                    self.used.add(name)
                case value:
                    params[word.arg] = read_literal(value, word.arg)
        self.graph.nodes[id] = Node(declared.name, read_params(declared, params, who=f"line {each.lineno}"))
        self.nodes[variable], self.types[id] = id, declared

    def _connect_rollouts(self, args: list[ast.expr], each: ast.stmt) -> None:
        ids = [self.nodes.get(arg.id, "") for arg in args if isinstance(arg, ast.Name)]
        types = [self.graph.nodes[id].type if id else "" for id in ids]
        if types != list(ROLES.values()):
            raise GraphError(f"line {each.lineno}: Rollouts takes six nodes: {', '.join(ROLES.values())}")
        connect_plain(self.graph, dict(zip(ROLES, ids, strict=True)))

    def _connect_call(self, id: str, call: ast.Call) -> None:
        """Add the edges into a node from the arguments of its call."""
        ports = [port.name for port in self.types[id].inputs]
        arguments = [*zip(ports, call.args, strict=False), *((word.arg, word.value) for word in call.keywords)]
        for port, arg in arguments:
            if port is None:
                raise GraphError(f"line {call.lineno}: ** cannot be read")
            target = End(id, port)
            if not isinstance(arg, ast.Name):
                text = ast.unparse(arg)[:60]
                raise GraphError(
                    f"line {call.lineno}: {target} gets {text!r}; pass a variable with the output of a node"
                )
            name = arg.id
            # A register that holds a value and is set at the end of the tick is a delay; set in between it only holds.
            if name in self.carried or (name in self.held and name in self.initial and name in self.set_last):
                initial = self.initial.get(name)
                delay = Delay(ABSENT if initial is None else initial)
                self.late.append((target, self.carried.get(name) or self.held[name], delay, call.lineno))
            elif name in self.held:
                self.late.append((target, self.held[name], None, call.lineno))
            elif name in self.outputs:
                self.graph.edges.append(Edge(self.outputs[name], target))
            else:
                raise GraphError(f"line {call.lineno}: {target} reads {name!r}, which is not the output of a node")

    def _name_outputs(self, target: ast.expr, id: str, each: ast.stmt) -> None:
        """Record the variables that hold the outputs of a node."""
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        ports = [port.name for port in self.types[id].outputs]
        if len(names) > len(ports) or not all(isinstance(name, ast.Name) for name in names):
            raise GraphError(f"line {each.lineno}: assign the {len(ports)} outputs of {id} to as many variables")
        self.outputs |= {
            name.id: End(id, port)
            for name, port in zip(names, ports, strict=False)
            if isinstance(name, ast.Name) and name.id != "_"
        }

    def _add_function(self, each: ast.FunctionDef) -> None:
        """Add a Code node as the export writes it: a function whose last line returns its outputs."""
        last, outputs = each.body[-1], list[str]()
        end = last.end_lineno
        if isinstance(last, ast.Return):
            end = last.lineno - 1
            parts = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
            outputs = [part.id for part in parts if isinstance(part, ast.Name)]
        once = self.lines[each.lineno - 1].rstrip().endswith("# in the first tick only")
        id = self.nodes[each.name] = self._new_id(each, each.name)
        source = textwrap.dedent("\n".join(self.lines[each.body[0].lineno - 1 : end]))
        self._add_code(id, source, [arg.arg for arg in each.args.args], outputs, once)

    def _add_statement(self, statement: ast.stmt, *, once: bool) -> None:
        """Add a statement that is not part of a node as a Code node."""
        inputs, outputs = interface(statement, self.outputs, self.tree)
        id = f"code_{1 + sum(node.type == 'Code' for node in self.graph.nodes.values())}"
        lines = self.lines[statement.lineno - 1 : statement.end_lineno]
        source, why = complete(textwrap.dedent("\n".join(lines)), inputs, self.defined)
        where = f"line {statement.lineno}: {lines[0].strip()[:60]!r} is not part of a node"
        if why:
            raise GraphError(f"{where} and cannot become one: {why.replace('source', 'it', 1)}")
        self._add_code(id, source, inputs, outputs, once)
        self.graph.edges += [Edge(self.outputs[name], End(id, name)) for name in inputs]
        self.outputs |= {name: End(id, name) for name in outputs}
        self.notes.append(f"{where}; it is now the Code node {id}")

    def _add_code(self, id: str, source: str, inputs: list[str], outputs: list[str], once: bool) -> None:
        params = {"source": source, "inputs": inputs, "outputs": outputs, **({"once": True} if once else {})}
        self.graph.nodes[id] = Node("Code", read_params(REGISTRY.get("Code"), params, who=id))
        self.types[id] = code_type(REGISTRY.get("Code"), id, self.graph.nodes[id].params)
