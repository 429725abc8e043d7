"""Parameter values of a node: looked up by name or alias, parsed, and checked against the kind of the parameter."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Mapping
from typing import Any, cast

from surefoot.data.knobs import warn_renamed
from surefoot.errors import GraphError
from surefoot.graph.spec.declare import NodeType, Param

# Values come from files; 60 characters identify one without flooding the message.
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 60


def find_param(declared: NodeType, name: str, *, who: str = "") -> Param:
    """Return the parameter with this name or alias; raise `GraphError` with the nearest names if there is none."""
    param = declared.param(name)
    if param is None:
        known = [each.name for each in declared.params]
        close = difflib.get_close_matches(name, [*known, *(other for p in declared.params for other in p.aliases)], n=2)
        advice = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(known) or 'none'}"
        raise GraphError(f"{who or declared.name}: {declared.name} has no parameter {name!r}; {advice}")
    return param


def read_params(declared: NodeType, values: Mapping[str, Any], *, who: str = "") -> dict[str, Any]:
    """Return checked values by canonical name; parameters without a value are left out."""
    who, result, names = who or declared.name, dict[str, Any](), dict[str, str]()
    for name, value in values.items():
        param = find_param(declared, name, who=who)
        if param.name in result:
            raise GraphError(f"{who}: {names[param.name]} and {name} both set {param.name}; use one of them")
        # One release of warnings before a renamed setting of a config is refused.
        if param.config is not None and name in param.config.vocabulary().former:
            warn_renamed(name, param.name)
        try:
            result[param.name] = param.read(value)
        except (TypeError, ValueError, OverflowError) as why:
            raise GraphError(f"{who}: {name} is {_BRIEF.repr(value)}; it must be {param.kind.legal}") from why
        names[param.name] = name
    return result


def complete_params(declared: NodeType, values: Mapping[str, Any], *, who: str = "") -> dict[str, Any]:
    """Return all parameters with defaults filled in; raise `GraphError` if a required one has no value."""
    result = read_params(declared, values, who=who)
    # One is enough: the check runs again after every change.
    missing = [param for param in declared.params if param.required and param.name not in result]
    if missing:
        raise GraphError(f"{who or declared.name}: {missing[0].name} must be set; it is {missing[0].kind.legal}")
    return {param.name: result.get(param.name, param.default) for param in declared.params}


def read_ranges(declared: NodeType, ranges: Mapping[str, Any], *, who: str = "") -> dict[str, Any]:
    """Return checked search ranges: {low, high} with an optional log, or {choices}."""
    who, result = who or declared.name, dict[str, Any]()
    for name, entry in ranges.items():
        bounds = cast(dict[str, Any], dict(entry)) if isinstance(entry, Mapping) else {}
        ends = [bounds["low"], bounds["high"]] if {"low", "high"} <= set(bounds) <= {"low", "high", "log"} else None
        values = ends if ends is not None else bounds["choices"] if set(bounds) == {"choices"} else None
        if not isinstance(values, list | tuple) or not values:
            text = _BRIEF.repr(entry)
            raise GraphError(f"{who}: the range of {name} is {text}; write {{low, high}} or {{choices}}")
        # Every end or choice must be a legal value of the parameter, or a trial would fail hours later.
        for value in cast(list[Any], values):
            read_params(declared, {name: value}, who=who)
        if ends is not None and not ends[0] < ends[1]:
            raise GraphError(f"{who}: the range of {name} goes from {ends[0]} to {ends[1]}; low must be below high")
        result[find_param(declared, name).name] = bounds
    return result


def params_to_json(declared: NodeType | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON values that `read_params` reads back, in the order of the declaration."""
    if declared is None:
        return dict(sorted(params.items()))
    return {each.name: each.kind.to_json(params[each.name]) for each in declared.params if each.name in params}
