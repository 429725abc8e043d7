"""Small changes to a module's source, one at a time: each a mistake that a tired author could make."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.USub: ast.UAdd,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module's source with one change."""

    line: int
    what: str
    source: str


def mutants(source: str, only: tuple[str, ...] = ()) -> Iterator[Mutant]:
    """Every mutant there is; with `only`, those inside the functions and classes of these names."""
    tree = ast.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        node.number = number  # type: ignore[attr-defined]
    skipped = {n.number for part in _untouched(tree) for n in ast.walk(part)}  # type: ignore[attr-defined]
    inside = {n.number for part in _named(tree, only) for n in ast.walk(part)}  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        number = node.number  # type: ignore[attr-defined]
        if number in skipped or (only and number not in inside):
            continue
        for what, change in _changes(node):
            changed = copy.deepcopy(tree)
            target = next(n for n in ast.walk(changed) if n.number == number)  # type: ignore[attr-defined]
            change(target)
            yield Mutant(getattr(node, "lineno", 0), what, ast.unparse(ast.fix_missing_locations(changed)))


def _named(tree: ast.AST, names: tuple[str, ...]) -> list[ast.AST]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node for node in ast.walk(tree) if isinstance(node, kinds) and node.name in names]


def _untouched(tree: ast.AST) -> Iterator[ast.AST]:
    """Texts, types and what an error says: no test should hang on their wording."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
            yield node
        elif isinstance(node, ast.keyword) and node.arg == "strict":
            yield node  # of zip: it only ever matters after another mistake
        elif isinstance(node, ast.keyword) and node.arg == "dim" and isinstance(node.value, ast.UnaryOp):
            yield node.value  # dim=-1 and dim=1 are the same of rows [B, K]
        elif isinstance(node, ast.AnnAssign) or (isinstance(node, ast.arg) and node.annotation is not None):
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from node.decorator_list
            if node.returns is not None:
                yield node.returns
        elif isinstance(node, ast.ClassDef):
            yield from node.decorator_list
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast":
            yield node.args[0]


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """(what, a function that does it to a copy of the node)."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        new = SWAPS[type(node.ops[0])]
        yield f"{_word(node.ops[0])} becomes {new.__name__}", lambda n, new=new: n.ops.__setitem__(0, new())
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign | ast.UnaryOp) and type(node.op) in SWAPS:
        new = SWAPS[type(node.op)]
        yield f"{_word(node.op)} becomes {new.__name__}", lambda n, new=new: setattr(n, "op", new())
    elif isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Constant):
        yield "condition turned round", lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} becomes {not node.value}", lambda n: setattr(n, "value", not n.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield f"{node.value} becomes {node.value + 1}", lambda n: setattr(n, "value", n.value + 1)
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "returns None", lambda n: setattr(n, "value", ast.Constant(None))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        yield "call left out", lambda n: setattr(n, "value", ast.Constant(None))


def _word(op: ast.AST) -> str:
    return type(op).__name__


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
