"""The library's own source, taken over into a program that stands alone: functions as they are, tasks without pictures."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.export.writing import WIDTH

KEPT = ("start", "advance", "observe")
"""What stepping needs of a task."""


def function_source(function: Callable[..., Any], *, without: Iterable[str] = ()) -> list[str]:
    """Its lines, with the first of its docstring and without its checks; `without` are options that stay None."""
    text = inspect.getsource(function)
    (tree,) = ast.parse(text).body
    assert isinstance(tree, ast.FunctionDef)
    lines, left_out = text.splitlines(), set(without)
    body: list[str] = []
    doc = ast.get_docstring(tree)
    at = tree.body[0].lineno
    for each in tree.body:
        end, own = each.end_lineno or each.lineno, lines[at - 1 : each.end_lineno]
        at = end + 1  # a comment belongs to what follows it
        if each is tree.body[0] and doc is not None:
            own = [f'    """{doc.splitlines()[0].strip()}"""']
        unset = _asks_for(each, left_out)
        if unset is True:  # what is done where it is None: from here on nothing else is
            return [*_signature(tree, left_out), *body, *(line.removeprefix("    ") for line in own[1:])]
        if unset is None and not _is_check(each):
            body += own
    return [*_signature(tree, left_out), *body]


def _asks_for(each: ast.stmt, names: set[str]) -> bool | None:
    """True for `if NAME is None: return …`, False for `if NAME is not None: …` of such a name, None for all else."""
    match each:
        case ast.If(test=ast.Compare(left=ast.Name(id=name), ops=[ast.Is()]), body=[ast.Return()]) if name in names:
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()])) if name in names:
            return False
        case _:
            return None


def _is_check(each: ast.stmt) -> bool:
    """True for what only raises, or has nothing to give where there is nothing."""
    match each:
        case ast.Raise() | ast.Return(value=ast.List(elts=[])):
            return True
        case ast.For(body=body) | ast.If(body=body):
            return all(map(_is_check, body))
        case _:
            return False


def _signature(tree: ast.FunctionDef, left_out: set[str]) -> list[str]:
    given = tree.args
    first = len(given.args) - len(given.defaults)
    kept = [
        _argument(each, given.defaults[n - first] if n >= first else None)
        for n, each in enumerate(given.args)
        if each.arg not in left_out
    ]
    named = [
        _argument(each, default)
        for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if each.arg not in left_out
    ]
    inside = ", ".join([*kept, *(["*"] if named else []), *named])
    gives = f" -> {ast.unparse(tree.returns)}" if tree.returns is not None else ""
    line = f"def {tree.name}({inside}){gives}:"
    return [line] if len(line) <= WIDTH else [f"def {tree.name}(", f"    {inside}", f"){gives}:"]


def _argument(each: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(each) + ("" if default is None else f" = {ast.unparse(default)}")


def task_source(task: Any) -> list[str]:
    """The class of a task with what it needs of its module: constants, helpers, and the methods that stepping calls."""
    kind = type(task)
    module = inspect.getmodule(kind)
    assert module is not None
    source = inspect.getsource(module)
    tree = ast.parse(source)
    found = {name: each for each in tree.body for name in _names_of(each)}
    lines: list[str] = []
    done: set[str] = set()

    def take(name: str) -> None:
        each = found.get(name)
        if each is None or name in done:
            return
        done.add(name)
        body = _stepping(each) if isinstance(each, ast.ClassDef) else [each]
        for part in body:
            for used in _used(part):
                take(used)
        if isinstance(each, ast.ClassDef):
            for base in each.bases:
                if isinstance(base, ast.Name):
                    take(base.id)
            lines.extend(["", "", *_class_lines(each, body, source)])
        elif isinstance(each, ast.FunctionDef):
            lines.extend(["", "", *_segment(each, source)])
        else:
            lines.extend(_segment(each, source))

    take(kind.__name__)
    _refuse_state(kind, module)
    return _constants_first(lines)


def _names_of(each: ast.stmt) -> Iterable[str]:
    match each:
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return [name]
        case _:
            return []


def _stepping(each: ast.ClassDef) -> list[ast.stmt]:
    return [part for part in each.body if isinstance(part, ast.FunctionDef) and part.name in KEPT]


def _used(part: ast.stmt) -> list[str]:
    return [node.id for node in ast.walk(part) if isinstance(node, ast.Name)]


def _class_lines(each: ast.ClassDef, body: list[ast.stmt], source: str) -> list[str]:
    bases = f"({', '.join(ast.unparse(base) for base in each.bases)})" if each.bases else ""
    doc = ast.get_docstring(each)
    lines = [f"class {each.name}{bases}:", *([f'    """{doc.splitlines()[0]}"""'] if doc else [])]
    for part in body:
        lines += ["", *_segment(part, source)]
    return lines


def _segment(part: ast.stmt, source: str) -> list[str]:
    """Its lines; of a docstring the first."""
    lines = source.splitlines()[part.lineno - 1 : part.end_lineno]
    if not isinstance(part, ast.FunctionDef) or (doc := ast.get_docstring(part)) is None or "\n" not in doc:
        return lines
    first = part.body[0]
    assert first.end_lineno is not None
    begin, end = first.lineno - part.lineno, first.end_lineno - part.lineno
    return [*lines[:begin], f'{" " * first.col_offset}"""{doc.splitlines()[0]}"""', *lines[end + 1 :]]


def _constants_first(lines: list[str]) -> list[str]:
    """Constants on top, blank lines as people leave them."""
    top: list[str] = []
    rest: list[str] = []
    for line in lines:
        (top if not rest and line.strip() else rest).append(line) if not line.startswith(
            "_"
        ) or "=" not in line else top.append(line)
    return [*top, *rest]


def _refuse_state(kind: type, module: ModuleType) -> None:
    """A task that remembers more than its state array cannot be taken over by its class alone."""
    for name in KEPT:
        method = getattr(kind, name)
        if any(word in inspect.getsource(method) for word in ("self._", "self.floor", "self.goal", "self.first")):
            raise GraphError(
                f"{kind.__name__} of {module.__name__} is made of more than its class; it cannot stand alone"
            )
