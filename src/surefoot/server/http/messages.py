"""Requests and responses without a socket: their parts, the checks of a head, and bodies as structs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from surefoot.server import schema
from surefoot.server.http.access import ALL, Scope
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import Route

DEPTH = 32
"""Deepest nesting of a JSON body that is accepted."""
JSON_KINDS = (b"*/*", b"application/*", b"application/json", b"application/problem+json", b"text/")


class RequestHead(NamedTuple):
    """A request without its body."""

    method: str
    path: str
    headers: Mapping[bytes, bytes]
    """Names in lower case; of repeated ones the last."""
    client: str
    """The address it comes from."""


class HttpResponse(NamedTuple):
    """Status, body and headers."""

    status: int
    content: bytes
    kind: str = "application/json"
    headers: Mapping[str, str] = {}

    def head(self, request: str) -> list[tuple[str, str]]:
        """Return the headers, names in lower case."""
        lines = [("content-type", self.kind), ("content-length", str(len(self.content)))]
        lines += [("x-request-id", request), ("cache-control", "no-store")]
        return lines + [(name.lower(), value) for name, value in self.headers.items()]


Respond = Callable[[HttpResponse], None]


@dataclass(slots=True)
class HttpRequest:
    """A request whose head was read."""

    head: RequestHead
    id: str
    begin: float
    route: Route | None = None
    words: Sequence[str] = ()
    """Of its path, where the route has {names}."""
    scopes: frozenset[Scope] = ALL
    cors: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def found(self) -> Route:
        """Its route, after `App.open` found it."""
        assert self.route is not None
        return self.route


def check_head(head: RequestHead, route: Route) -> None:
    """Raise `Refused` for an Accept, Content-Type or Content-Length that the route cannot serve."""
    accept = head.headers.get(b"accept")
    if accept is not None and not any(kind in accept.lower() for kind in JSON_KINDS):
        shown = accept.lower().decode("latin-1")[:60]
        raise Refused("not-acceptable", f"Accept is {shown!r}; answers are application/json")
    if route.body is None:
        return
    kind = head.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise Refused("media-type", f"Content-Type is {kind.decode('latin-1')[:60]!r}; send application/json")
    declared = head.headers.get(b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > route.limit:
        raise Refused("too-large", f"{int(declared):,} bytes; at most {route.limit:,}")


def idempotency_key(raw: bytes) -> str:
    """Return an Idempotency-Key, with or without quotes; it has the form of an id."""
    try:
        return msgspec.convert(raw.decode("latin-1").strip('"'), schema.Id)
    except msgspec.ValidationError as why:
        raise Refused("invalid", f"Idempotency-Key: {why}", pointer="/") from None


def set_id(body: Any, field: str, key: bytes) -> None:
    """Set the id of a body to its Idempotency-Key. Raise `Refused` if it has another one."""
    id, present = idempotency_key(key), getattr(body, field)
    if present is not msgspec.UNSET and present != id:
        raise Refused("invalid", f"Idempotency-Key is {id!r} and {field} is {present!r}; give one", pointer=f"/{field}")
    setattr(body, field, id)


def decode(raw: bytes, decoder: msgspec.json.Decoder[Any], *, nests: bool = True) -> Any:
    """Return a body as its struct. Raise `Refused`: malformed if it is not JSON, invalid with a pointer otherwise.

    `nests`: some field takes anything, so that a body can be valid and too deep.
    """
    if nests and _depth(raw) > DEPTH:
        raise Refused("malformed", f"nested deeper than {DEPTH}")
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as why:
        if _depth(raw) > DEPTH:
            raise Refused("malformed", f"nested deeper than {DEPTH}") from None
        text, _, place = str(why).partition(" - at `$")
        # `.decisions[0].mask` is /decisions/0/mask.
        pointer = re.sub(r"\[(\d+|\.\.\.)\]", r"/\1", place.rstrip("`")).replace(".", "/") or "/"
        raise Refused("invalid", text, pointer=pointer) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as why:
        raise Refused("malformed", str(why)) from None


def _depth(raw: bytes) -> int:
    """Return the deepest nesting of brackets; those in strings count too, which only makes the limit stricter."""
    if raw.count(b"[") + raw.count(b"{") <= DEPTH:
        return 0
    depth = deepest = 0
    for byte in re.findall(rb"[\[\]{}]", raw):
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def problem(why: Refused, request: str) -> schema.ProblemResponse:
    """Return a refusal as RFC 9457 has it."""
    return schema.ProblemResponse(
        type=f"about:surefoot/{why.kind}",
        title=why.title,
        status=why.status,
        detail=why.detail,
        request_id=request,
        pointer=msgspec.UNSET if why.pointer is None else why.pointer,
    )
