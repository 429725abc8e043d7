"""The statements of a Code node as a function, and what would stop them from running. Nothing here runs them."""

from __future__ import annotations

import ast
import builtins
import symtable
import textwrap
from collections.abc import Container, Iterator, Mapping, Sequence

_BUILT_IN = frozenset(dir(builtins))


def as_function(source: str, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> str:
    """Return the statements as a function `code` of their inputs, so that they have local variables."""
    body = textwrap.indent(source.strip("\n") or "pass", "    ")
    returned = ", ".join(outputs) + "," if outputs else ""
    return f"def code({', '.join(inputs)}):\n{body}\n    return ({returned})\n"


def problem(source: str, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> str:
    """Return why the statements cannot run: invalid syntax, a name that nothing defines, an output that is never set; else ""."""
    try:
        # As a function: `break` outside of a loop is found by the compiler only. As a module: one engine inlines the
        # statements, where `return` and `yield` would end or change its loop.
        for text in (as_function(source, inputs), textwrap.dedent(source)):
            compile(text, "<code node>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as why:
        return f"source is not valid Python: {why.msg if isinstance(why, SyntaxError) else why}"
    if names := undefined(source, inputs):
        return f"source reads {names[0]!r}, which is neither an input nor defined in it"
    function = symtable.symtable(as_function(source, inputs), "<code node>", "exec").get_children()[0]
    local = {each.get_name() for each in function.get_symbols() if each.is_local()}
    never = next((name for name in outputs if name not in local), None)
    return "" if never is None else f"source never sets {never!r}, which is an output"


def undefined(source: str, inputs: Sequence[str] = ()) -> list[str]:
    """Return the names that valid statements read and that neither they, their inputs nor Python define."""
    table = symtable.symtable(as_function(source, inputs), "<code node>", "exec")
    return list(dict.fromkeys(name for name in _globals(table) if name not in _BUILT_IN and name != "code"))


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_global() and symbol.is_referenced():
            yield symbol.get_name()
    for child in table.get_children():
        yield from _globals(child)


def definitions(lines: Sequence[str], tree: ast.Module) -> dict[str, str]:
    """Return {name: its definition} of the imports and helper functions of an exported program."""
    result: dict[str, str] = {}
    for each in tree.body:
        if isinstance(each, ast.Import | ast.ImportFrom):
            names = [(part.asname or part.name).partition(".")[0] for part in each.names]
        else:
            names = [each.name] if isinstance(each, ast.FunctionDef) and each.name != "train" else []
        result |= dict.fromkeys(names, "\n".join(lines[each.lineno - 1 : each.end_lineno]))
    return result


def complete(source: str, inputs: Sequence[str], defined: Mapping[str, str]) -> tuple[str, str]:
    """Return the statements behind the definitions that they use, and why they still cannot run, or ""."""
    why = problem(source, inputs)
    while why and "not valid" not in why and (name := undefined(source, inputs)[0]) in defined:
        source = f"{defined[name]}\n{source}"
        why = problem(source, inputs)
    return source, why


def interface(statement: ast.stmt, known: Container[str], program: ast.Module) -> tuple[list[str], list[str]]:
    """Return the `known` variables that a statement reads, and the variables it sets that a call of the program reads."""
    names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    calls = [each for each in ast.walk(program) if isinstance(each, ast.Call)]
    passed = {arg.id for call in calls for arg in call.args if isinstance(arg, ast.Name)}
    inputs = dict.fromkeys(n.id for n in names if isinstance(n.ctx, ast.Load) and n.id in known)
    return list(inputs), list(dict.fromkeys(n.id for n in names if isinstance(n.ctx, ast.Store) and n.id in passed))
