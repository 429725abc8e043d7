"""Source text of library definitions with everything they depend on.

`bundle` starts at some functions and classes and follows the names they use from module to module. Methods that nothing in
the result mentions are left out and docstrings are cut to their first line; otherwise the text is the library's.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from surefoot.errors import GraphError

PACKAGE = "surefoot"
# Methods that torch calls, so no source mentions them.
CALLED_BY_OTHERS = {"forward", "backward"}
_CHECKER_COMMENT = re.compile(r"\s*# (pyright|type|noqa)\b.*")
Key = tuple[str, str]
"""(module, name) of a definition."""
Import = tuple[str, str | None]
"""(module, name there) of an imported name; None for the module itself."""


@dataclass(slots=True)
class Module:
    """A module: its lines, its definitions, and the origin of its imported names."""

    lines: list[str]
    definitions: dict[str, ast.stmt] = field(default_factory=dict[str, ast.stmt])
    imported: dict[str, Import] = field(default_factory=dict[str, Import])


@dataclass(slots=True)
class Bundle:
    """Source text for a program: imports, and definitions in an order in which they can be executed."""

    imports: list[str]
    definitions: str


def bundle(
    *entries: Any,
    code: str = "",
    imports: Mapping[str, Import] | None = None,
    reading_order: Sequence[str] = (PACKAGE,),
) -> Bundle:
    """Return the source of `entries` and of every library definition that they need.

    `code` is the rest of the program, which uses these definitions and the names in `imports`; `reading_order` are
    beginnings of module names.
    """
    keys = [(each.__module__, each.__name__) for each in entries]
    return _Bundler(keys, _mentions(ast.parse(code)).attributes, imports or {}).result(reading_order)


@cache
def _module(name: str) -> Module:
    source = inspect.getsource(import_module(name))
    module = Module(source.splitlines())
    for statement in _top_level(ast.parse(source)):
        match statement:
            case ast.Import(names=names):
                module.imported |= {each.asname or each.name: (each.name, None) for each in names}
            case ast.ImportFrom(module=str(origin), names=names):
                module.imported |= {each.asname or each.name: (origin, each.name) for each in names}
            case ast.ClassDef(name=defined) | ast.FunctionDef(name=defined):
                module.definitions[defined] = statement
            case ast.Assign(targets=targets):
                named = [each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
                module.definitions |= {each.id: statement for each in named}
            case ast.AnnAssign(target=ast.Name(id=defined)):
                module.definitions[defined] = statement
            case _:
                continue
    return module


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    for statement in tree.body:
        if isinstance(statement, ast.If):  # TYPE_CHECKING
            yield from statement.body
        else:
            yield statement


@dataclass(slots=True)
class Mentions:
    """Names and attributes that a piece of source uses; `annotations` are the names that only annotations use."""

    names: set[str] = field(default_factory=set[str])
    attributes: set[str] = field(default_factory=set[str])
    annotations: set[str] = field(default_factory=set[str])


@cache
def _mentions(part: ast.AST) -> Mentions:
    result, todo = Mentions(), [(part, False)]
    while todo:
        node, annotates = todo.pop()
        # A copied function runs where surefoot is not installed.
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            raise GraphError(f"line {node.lineno}: an import inside a function cannot be copied into a program")
        if isinstance(node, ast.Name):
            (result.annotations if annotates else result.names).add(node.id)
        elif isinstance(node, ast.Attribute):
            result.attributes.add(node.attr)
        for name, value in ast.iter_fields(node):
            inside = annotates or name in ("annotation", "returns")
            todo += [
                (each, inside) for each in (value if isinstance(value, list) else [value]) if isinstance(each, ast.AST)
            ]  # pyright: ignore[reportUnknownVariableType]
    return result


class _Bundler:
    def __init__(self, entries: list[Key], attributes: set[str], imports: Mapping[str, Import]) -> None:
        self.needed = dict.fromkeys(entries)
        self.attributes = set(attributes)
        self.outside = dict(imports)
        """Imports from other packages."""
        self.annotated: set[str] = set()
        """Names of library definitions that only annotations use."""
        size = -1
        # A method that becomes live needs more names, which make more methods live: repeat until nothing is added.
        while size != len(self.needed) + len(self.attributes):
            size = len(self.needed) + len(self.attributes)
            for key in list(self.needed):
                for part in self._live(key):
                    self.attributes |= _mentions(part).attributes
                    self.needed |= dict.fromkeys(self._needs(key, part))

    def result(self, reading_order: Sequence[str]) -> Bundle:
        """Return the source module by module: after the modules it needs when executed, else in the reading order."""
        modules: dict[str, list[ast.stmt]] = {}
        for module, name in self.needed:
            statement = _module(module).definitions[name]
            if statement not in modules.setdefault(module, []):
                modules[module].append(statement)
        names = [name for _, name in self.needed]
        # All definitions share one namespace in the program.
        if twice := {name for name in names if names.count(name) > 1}:
            raise GraphError(f"two library definitions are called {min(twice)!r}; export this graph as a script")
        order: dict[str, None] = {}
        rank = {
            module: next(i for i, start in enumerate(reading_order) if module.startswith(start)) for module in modules
        }
        for module in sorted(modules, key=lambda each: (rank[each], each)):
            self._put(module, order)
        lines: list[str] = []
        for module in order:
            lines += ["", "", f"# {module}"]
            before: ast.stmt | None = None
            for statement in sorted(modules[module], key=lambda each: each.lineno):
                if before is not None and not (_is_constant(before) and _is_constant(statement)):
                    lines += ["", ""]
                lines += self._source(module, statement)
                before = statement
        return Bundle(self._imports(), "\n".join(lines).strip("\n"))

    def _put(self, module: str, order: dict[str, None]) -> None:
        for key in [each for each in self.needed if each[0] == module]:
            for part in _executed(_module(module).definitions[key[1]]):
                for needed, _ in self._needs(key, part):
                    if needed != module and needed not in order:
                        self._put(needed, order)
        order[module] = None

    def _live(self, key: Key) -> list[ast.AST]:
        """Return the parts of a definition to copy: of a class, its fields and the methods that something mentions."""
        statement = _module(key[0]).definitions[key[1]]
        if not isinstance(statement, ast.ClassDef):
            return [statement]
        live = [
            each
            for each in statement.body
            if not isinstance(each, ast.FunctionDef)
            or each.name in self.attributes | CALLED_BY_OTHERS
            or each.name.startswith("__")
        ]
        return [*statement.bases, *statement.decorator_list, *live]

    def _needs(self, key: Key, part: ast.AST) -> list[Key]:
        """Return the library definitions that a part uses, and record its other imports."""
        mentions = _mentions(part)
        result = [target for name in sorted(mentions.names) if (target := self._resolve(key[0], name)) is not None]
        for name in mentions.annotations:
            if self._resolve(key[0], name) is not None:
                self.annotated.add(name)
        return result

    def _resolve(self, module: str, name: str) -> Key | None:
        known = _module(module)
        if name in known.definitions:
            return module, name
        if name not in known.imported:
            return None
        origin, target = known.imported[name]
        if not origin.startswith(PACKAGE):
            self.outside[name] = origin, target
            return None
        if target is None or target not in _module(origin).definitions:
            raise GraphError(f"{module} uses the module {name}, which cannot be copied into a program")
        return origin, target

    def _imports(self) -> list[str]:
        result: dict[str, set[str]] = {}
        for name, (origin, target) in self.outside.items():
            line = (
                f"import {origin}" + (f" as {name}" if name != origin else "")
                if target is None
                else f"from {origin} import"
            )
            result.setdefault(line, set()).update([name] if target is not None else [])
        lines = [f"{line} {', '.join(sorted(names))}" if names else line for line, names in result.items()]

        def is_foreign(line: str) -> bool:
            return line.split()[1].split(".")[0] not in sys.stdlib_module_names

        lines.sort(key=lambda line: (is_foreign(line), line.startswith("from"), line))
        outside = next(i for i, line in enumerate(lines) if is_foreign(line))
        unbound = sorted(self.annotated - {name for _, name in self.needed})
        aliases = ["", "# Only annotations use these.", f"{' = '.join(unbound)} = object"] if unbound else []
        return [*lines[:outside], "", *lines[outside:], *aliases]

    def _source(self, module: str, statement: ast.stmt) -> list[str]:
        lines = _module(module).lines
        if not isinstance(statement, ast.ClassDef):
            return _text(statement, lines)
        live = [each for each in self._live((module, statement.name)) if isinstance(each, ast.stmt)]
        first = min([statement.lineno, *(each.lineno for each in statement.decorator_list)])
        result = [*_comments(lines, first), *lines[first - 1 : statement.body[0].lineno - 1]]
        for each in live:
            if isinstance(each, ast.FunctionDef):
                result.append("")
            result += _text(each, lines)
        while result and not result[-1].strip():
            result.pop()
        return [_CHECKER_COMMENT.sub("", line) for line in result]


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign | ast.AnnAssign)


def _executed(statement: ast.stmt) -> list[ast.AST]:
    """Return the parts that run when the module is imported: values, bases, decorators, fields, default arguments."""
    match statement:
        case ast.FunctionDef():
            return [*statement.decorator_list, *statement.args.defaults, *filter(None, statement.args.kw_defaults)]
        case ast.ClassDef():
            inside = [part for each in statement.body for part in _executed(each)]
            return [*statement.decorator_list, *statement.bases, *inside]
        case _:
            return [statement]


def _text(statement: ast.stmt, lines: list[str]) -> list[str]:
    """Return the lines of a statement and the comment above it, with the docstring cut to its first line."""
    decorators = statement.decorator_list if isinstance(statement, ast.FunctionDef) else []
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    result = lines[first - 1 : statement.end_lineno]
    doc = statement.body[0] if isinstance(statement, ast.FunctionDef) else statement
    match doc:
        case ast.Expr(value=ast.Constant(value=str(text))) if "\n" in text:
            begin, end = doc.lineno - first, (doc.end_lineno or doc.lineno) - first
            result = [
                *result[:begin],
                f'{" " * doc.col_offset}"""{text.splitlines()[0].strip()}"""',
                *result[end + 1 :],
            ]
        case _:
            pass
    return [_CHECKER_COMMENT.sub("", line) for line in (*_comments(lines, first), *result)]


def _comments(lines: list[str], first: int) -> list[str]:
    """Return the comment lines directly above line `first`."""
    begin = first - 1
    while begin > 0 and lines[begin - 1].lstrip().startswith("#"):
        begin -= 1
    return lines[begin : first - 1]
