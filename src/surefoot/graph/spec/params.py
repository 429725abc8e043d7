"""Parameters as people give them: by any of their names, as text or as values, checked against their kind."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Mapping
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.spec.declare import NodeType

_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 60


def read_params(declared: NodeType, said: Mapping[str, Any], *, who: str = "") -> dict[str, Any]:
    """`said` by the parameters' own names, each value in its one form; what is left unset stays so."""
    who, found, by = who or declared.name, dict[str, Any](), dict[str, str]()
    for name, value in said.items():
        param = declared.param(name)
        if param is None:
            known = [each.name for each in declared.params]
            close = difflib.get_close_matches(name, known, n=2)
            advice = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(known) or 'none'}"
            raise GraphError(f"{who}: {declared.name} has no parameter {name!r}; {advice}")
        if param.name in found:
            raise GraphError(f"{who}: {by[param.name]} and {name} both set {param.name}; give one of them")
        try:
            found[param.name] = param.read(value)
        except (TypeError, ValueError, OverflowError) as why:
            raise GraphError(f"{who}: {name} is {_BRIEF.repr(value)}; it must be {param.kind.legal}") from why
        by[param.name] = name
    return found


def whole_params(declared: NodeType, said: Mapping[str, Any], *, who: str = "") -> dict[str, Any]:
    """Every parameter with a value; one that has neither value nor default is an error."""
    found = read_params(declared, said, who=who)
    missing = [param for param in declared.params if param.required and param.name not in found]
    if missing:
        raise GraphError(f"{who or declared.name}: {missing[0].name} must be set; it is {missing[0].kind.legal}")
    return {param.name: found.get(param.name, param.default) for param in declared.params}


def params_to_json(declared: NodeType | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """JSON values from which `read_params` makes equal ones, in the order of the declaration."""
    if declared is None:
        return dict(sorted(params.items()))
    return {each.name: each.kind.to_json(params[each.name]) for each in declared.params if each.name in params}
