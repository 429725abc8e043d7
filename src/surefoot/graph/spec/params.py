"""Parameters as people give them: by any of their names, as text or as values, checked against their kind."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Mapping
from typing import Any

from surefoot.data.knobs import warn_renamed
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
        if param.config is not None and name in param.config.vocabulary().former:
            warn_renamed(name, param.name)
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


def read_ranges(declared: NodeType, said: Mapping[str, Any], *, who: str = "") -> dict[str, Any]:
    """Where a search may look: {low, high} with both ends legal and in order, log if it is to be by factors; or {choices}."""
    who, found = who or declared.name, dict[str, Any]()
    for name, given in said.items():
        if not isinstance(given, Mapping):
            raise GraphError(f"{who}: the range of {name} is {_BRIEF.repr(given)}; write {{low, high}} or {{choices}}")
        told: dict[str, Any] = {str(key): value for key, value in given.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        ends = [told["low"], told["high"]] if {"low", "high"} <= set(told) <= {"low", "high", "log"} else None
        values = ends if ends is not None else told["choices"] if set(told) == {"choices"} else None
        if not isinstance(values, list | tuple) or not values:
            raise GraphError(f"{who}: the range of {name} is {_BRIEF.repr(given)}; write {{low, high}} or {{choices}}")
        for value in values:  # pyright: ignore[reportUnknownVariableType]
            read_params(declared, {name: value}, who=who)
        if ends is not None and not ends[0] < ends[1]:
            raise GraphError(f"{who}: the range of {name} goes from {ends[0]} to {ends[1]}; low must be the smaller")
        param = declared.param(name)
        assert param is not None
        found[param.name] = told
    return found


def params_to_json(declared: NodeType | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """JSON values from which `read_params` makes equal ones, in the order of the declaration."""
    if declared is None:
        return dict(sorted(params.items()))
    return {each.name: each.kind.to_json(params[each.name]) for each in declared.params if each.name in params}
