"""Routes: `@route` declares an endpoint on the method that answers it; `routes_of` collects them from an object."""

from __future__ import annotations

import re
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import msgspec

from surefoot.server.http.access import AccessGuard, Scope
from surefoot.server.http.problems import Refused

# A decision with an embedding of 4,096 numbers is about 80 KB of JSON; batches hold many of them.
BODY = 1 << 20
BATCH_BODY = 16 << 20
JSON = "application/json"
_DECLARED = "__surefoot_route__"
F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One endpoint: its path, who may call it, request and response."""

    method: str
    path: str
    """Path parameters are written as {name}."""
    handle: Callable[..., Awaitable[Any]]
    """Takes the path parameters, then the body if there is one."""
    answer: Any
    """Type of the response."""
    begin: Callable[..., None] | None = None
    """Like `handle` without a coroutine: takes a callback that receives the response or an error."""
    key: str = ""
    """Field of the body that an Idempotency-Key sets; without one, the response is cached by the key."""
    wants_client: bool = False
    """True: `handle` takes the hash of the client as `client`."""
    body: type[Any] | None = None
    query: type[Any] | None = None
    """Struct of the parameters after the question mark of the address; only for GET."""
    scope: Scope = "decide"
    also: Callable[[Any], Scope | None] | None = None
    """Returns an additional scope that a body needs."""
    status: int = 200
    limit: int = BODY
    kind: str = JSON
    open: bool = False
    """Needs no token."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Additional response headers."""
    name: str = ""
    """Name of the operation in OpenAPI and clients."""
    about: str = ""
    problems: tuple[str, ...] = ()
    """Kinds of problems besides those that every request can have."""
    links: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """{following operation: (its path parameter, field of this response with the value)}"""


def route(method: str, path: str, **settings: Any) -> Callable[[F], F]:
    """Declare a method as an endpoint. `settings` are fields of `Route` that do not follow from the signature.

    Body and response types, `wants_client`, `name` (in camel case) and `about` come from the annotations, the parameter
    `client`, the method's name and the first line of its docstring.
    """

    def declare(function: F) -> F:
        hints = typing.get_type_hints(function)
        bodies = (t for n, t in hints.items() if n != "return" and issubclass(t, msgspec.Struct))
        derived: dict[str, Any] = {
            "query" if method == "GET" else "body": next(bodies, None),
            "answer": hints["return"],
            "wants_client": "client" in hints,
            "name": re.sub(r"_(\w)", lambda match: match[1].upper(), function.__name__),
            "about": (function.__doc__ or "").partition("\n")[0],
        }
        setattr(function, _DECLARED, Route(method=method, path=path, handle=function, **{**derived, **settings}))
        return function

    return declare


def routes_of(owner: Any) -> list[Route]:
    """Return the routes that an object's methods declare, in order; those of a class can be described but not called."""
    kind: type = owner if isinstance(owner, type) else type(owner)
    # vars keeps the order of definition, which is the order in OpenAPI.
    declared: list[Route] = [getattr(value, _DECLARED) for value in vars(kind).values() if hasattr(value, _DECLARED)]

    def bound(function: Callable[..., Any]) -> Callable[..., Any]:
        return getattr(owner, function.__name__)

    return [replace(r, handle=bound(r.handle), begin=None if r.begin is None else bound(r.begin)) for r in declared]


class Counted(Protocol):
    """Request counters, routes and access rules: the app."""

    counts: dict[tuple[str, int], int]
    seconds: float
    routes: list[Route]
    guard: AccessGuard


class Serves(Protocol):
    """The service behind the routes."""

    draining: bool

    async def start(self) -> None: ...

    async def close(self) -> None: ...


class Extension(Protocol):
    """Additional endpoints with other conventions."""

    async def prepare(self) -> None:
        """Prepare the endpoints after the service has started."""
        ...

    def routes(self) -> list[Route]: ...

    def error_body(self, why: Refused, request: str) -> tuple[bytes, str]:
        """Return an error's body and content type in the form that clients of these endpoints expect."""
        ...
