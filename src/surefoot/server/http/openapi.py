"""OpenAPI 3.1, generated from the routes and the structs of their bodies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from surefoot.server import schema
from surefoot.server.http.access import OPEN_PATHS
from surefoot.server.http.problems import PROBLEMS
from surefoot.server.schema import wire_name

if TYPE_CHECKING:
    from surefoot.server.http.route import Route

VERSION = "1.0.0"
ALWAYS = ("http", "unauthorized", "forbidden", "origin", "not-acceptable", "host", "rate", "failed", "unavailable")
"""Problems that every request can have; requests with a body also have those of `WITH_BODY`."""
WITH_BODY = ("malformed", "timeout", "too-large", "media-type", "invalid")
_REF = "#/components/schemas/{name}"


def document(routes: Sequence[Route], *, secured: bool = True) -> bytes:
    """Return the document as JSON, always the same bytes; `secured` if the service requires a token."""
    content = described(routes, secured=secured)
    return msgspec.json.format(msgspec.json.encode(content, order="deterministic"), indent=2) + b"\n"


def described(routes: Sequence[Route], *, secured: bool = True) -> dict[str, Any]:
    """Return the document as JSON values."""
    kinds = [kind for route in routes for kind in (route.body, route.answer) if kind is not None]
    outs, components = _wire_names(msgspec.json.schema_components([*kinds, schema.ProblemResponse], ref_template=_REF))
    # Keyed by repr, which also works for annotations that are not hashable.
    by_kind = {repr(kind): out for kind, out in zip([*kinds, schema.ProblemResponse], outs, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Surefoot decision service",
            "version": VERSION,
            "description": "Policies that choose actions and learn from reported rewards. Errors are RFC 9457 problems.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "security": [{"token": []}] if secured else [],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _wire_names(node: Any) -> Any:
    """Return a JSON schema with all struct names (titles, references, component keys) as on the wire."""
    match node:
        case dict():
            items: dict[str, Any] = node
            named = {k: wire_name(v) if k in ("$ref", "title") and isinstance(v, str) else v for k, v in items.items()}
            return {wire_name(k): _wire_names(v) for k, v in named.items()}
        case list() | tuple():
            values: Sequence[Any] = node
            return [_wire_names(value) for value in values]
        case _:
            return node


def _operation(route: Route, by_kind: dict[str, Any]) -> dict[str, Any]:
    responses = _responses(route, by_kind)
    operation: dict[str, Any] = {"operationId": route.name, "summary": route.about, "responses": responses}
    if route.open or route.path in OPEN_PATHS:
        operation["security"] = []
    names = re.findall(r"\{(\w+)\}", route.path)
    if names:
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for name in names
        ]
    if route.query is not None:
        fields = msgspec.json.schema(route.query)["$defs"][route.query.__name__]["properties"]
        operation.setdefault("parameters", []).extend(
            {"name": name, "in": "query", "required": False, "schema": shape} for name, shape in fields.items()
        )
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": by_kind[repr(route.body)]}},
        }
    return operation


def _responses(route: Route, by_kind: dict[str, Any]) -> dict[str, Any]:
    kind = route.kind.partition(";")[0]
    success: dict[str, Any] = {
        "description": route.about,
        "content": {kind: {"schema": by_kind[repr(route.answer)]}},
    }
    responses = {str(route.status): success}
    if route.links:
        success["links"] = {
            name: {"operationId": name, "parameters": {word: f"$response.body#/{field}"}}
            for name, (word, field) in route.links.items()
        }
    by_status: dict[int, list[str]] = {}
    # Several problems can share a status; their titles are joined.
    for name in (
        *ALWAYS,
        *(WITH_BODY if route.body is not None else ("invalid",) if route.query is not None else ()),
        *route.problems,
    ):
        by_status.setdefault(PROBLEMS[name][0], []).append(name)
    for status, names in sorted(by_status.items()):
        responses[str(status)] = {
            "description": "; ".join(PROBLEMS[name][1] for name in dict.fromkeys(names)),
            "content": {"application/problem+json": {"schema": by_kind[repr(schema.ProblemResponse)]}},
        }
    return responses
