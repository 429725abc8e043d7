"""HTTP requests and responses without a socket: their parts, checks of the head, and decoding of bodies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from surefoot.server import schema
from surefoot.server.http.access import ALL, Scope
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import Route

# The schemas need 6 levels; far deeper nesting would exhaust the recursion of decoders behind this one.
DEPTH = 32
"""Deepest accepted nesting of a JSON body."""
JSON_KINDS = (b"*/*", b"application/*", b"application/json", b"application/problem+json", b"text/")


class RequestHead(NamedTuple):
    """A request without its body."""

    method: str
    path: str
    headers: Mapping[bytes, bytes]
    """Names in lower case; the last one of repeated headers, except Host, which is joined."""
    client: str
    """Address of the client."""
    query: str = ""
    """What stands after the question mark of the address."""


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
    """A request whose head has been read."""

    head: RequestHead
    id: str
    begin: float
    route: Route | None = None
    words: Sequence[str] = ()
    """Path parameters, in the order of the route's {names}."""
    scopes: frozenset[Scope] = ALL
    cors: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def matched(self) -> Route:
        """The route that `App.open` found."""
        assert self.route is not None
        return self.route


def check_head(head: RequestHead, route: Route) -> None:
    """Raise `Refused` for an Accept, Content-Type or Content-Length that the route cannot serve."""
    accept = head.headers.get(b"accept")
    if accept is not None and not any(kind in accept.lower() for kind in JSON_KINDS):
        value = accept.lower().decode("latin-1")[:60]
        raise Refused("not-acceptable", f"Accept is {value!r}; responses are application/json")
    if route.body is None:
        return
    # Requiring JSON also stops cross-site forms, which cannot send it.
    kind = head.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise Refused("media-type", f"Content-Type is {kind.decode('latin-1')[:60]!r}; send application/json")
    declared = head.headers.get(b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > route.limit:
        raise Refused("too-large", f"the body has {int(declared):,} bytes; the limit is {route.limit:,}")


def decode_query(text: str, kind: type[Any]) -> Any:
    """Return the query of an address as a struct. Raise `Refused` for unknown names and values out of range."""
    try:
        pairs = dict(parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=50))
        return msgspec.convert(pairs, kind, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise Refused("invalid", f"the query {text[:80]!r}: {error}", pointer="/") from None


def idempotency_key(raw: bytes) -> str:
    """Return an Idempotency-Key, with or without quotes. Raise `Refused` if it is not a valid id."""
    try:
        return msgspec.convert(raw.decode("latin-1").strip('"'), schema.Id)
    except msgspec.ValidationError as error:
        raise Refused("invalid", f"Idempotency-Key: {error}", pointer="/") from None


def set_id(body: Any, field: str, key: bytes) -> None:
    """Set the id of a body to its Idempotency-Key. Raise `Refused` if the body has a different id."""
    id, present = idempotency_key(key), getattr(body, field)
    if present is not msgspec.UNSET and present != id:
        raise Refused(
            "invalid", f"Idempotency-Key is {id!r} and {field} is {present!r}; send one of them", pointer=f"/{field}"
        )
    setattr(body, field, id)


def decode(raw: bytes, decoder: msgspec.json.Decoder[Any], *, nests: bool = True) -> Any:
    """Return a body as its struct. Raise `Refused`: malformed if it is not JSON, invalid with a pointer if it does not fit.

    `nests`: a field takes any JSON, so that a valid body can be too deep. Otherwise the depth is checked only on errors.
    """
    if nests and _depth(raw) > DEPTH:
        raise Refused("malformed", f"the body is nested deeper than {DEPTH} levels")
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        if _depth(raw) > DEPTH:
            raise Refused("malformed", f"the body is nested deeper than {DEPTH} levels") from None
        text, _, place = str(error).partition(" - at `$")
        # `.decisions[0].mask` is /decisions/0/mask.
        pointer = re.sub(r"\[(\d+|\.\.\.)\]", r"/\1", place.rstrip("`")).replace(".", "/") or "/"
        raise Refused("invalid", text, pointer=pointer) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refused("malformed", str(error)) from None


def _depth(raw: bytes) -> int:
    """Return the deepest nesting of brackets; brackets in strings count too, which makes the limit stricter."""
    if raw.count(b"[") + raw.count(b"{") <= DEPTH:
        return 0
    depth = deepest = 0
    for byte in re.findall(rb"[\[\]{}]", raw):
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def problem(refused: Refused, request: str) -> schema.ProblemResponse:
    """Return a refusal as an RFC 9457 problem."""
    return schema.ProblemResponse(
        type=f"about:surefoot/{refused.kind}",
        title=refused.title,
        status=refused.status,
        detail=refused.detail,
        request_id=request,
        pointer=msgspec.UNSET if refused.pointer is None else refused.pointer,
    )
