"""The service over HTTP: who may ask, what the body says, a verb, an answer or a problem."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from surefoot.errors import SurefootError
from surefoot.server import schema
from surefoot.server.decisions.policy_lifecycle import Steward
from surefoot.server.decisions.service import Service
from surefoot.server.http.access import ALL, Guard, Scope, require
from surefoot.server.http.endpoints import all_routes
from surefoot.server.http.problems import PROBLEMS, Refused
from surefoot.server.http.route import Extension, Route, Serves

log = logging.getLogger("surefoot.server")
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

DEPTH = 32
KEPT_ANSWERS = 1000
_encode = msgspec.json.Encoder().encode
JSON_KINDS = (b"*/*", b"application/*", b"application/json", b"application/problem+json", b"text/")


class Head(NamedTuple):
    """A request without its body."""

    method: str
    path: str
    headers: Mapping[bytes, bytes]
    """Names in small letters; of several of a name the last."""
    client: str
    """The address it comes from."""


class Answer(NamedTuple):
    """What goes back."""

    status: int
    content: bytes
    kind: str = "application/json"
    headers: Mapping[str, str] = {}


Respond = Callable[[Answer], None]


@dataclass(slots=True)
class Asking:
    """A request on its way."""

    head: Head
    id: str
    begin: float
    route: Route | None = None
    words: Sequence[str] = ()
    scopes: frozenset[Scope] = ALL
    cors: Mapping[str, str] = field(default_factory=dict[str, str])


class _Known(Exception):
    """A request that was answered before."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


class App:
    """The service as HTTP sees it; `open` looks at a head, `answer` at the body. It is an ASGI application, too."""

    def __init__(
        self,
        service: Serves,
        guard: Guard | None = None,
        *,
        extension: Extension | None = None,
        steward: Steward | None = None,
        routes: Callable[[App], list[Route]] | None = None,
        pages: Sequence[Route] = (),
    ) -> None:
        self.service, self.guard, self.extension = service, guard or Guard(), extension
        self.counts: dict[tuple[str, int], int] = {}
        """{(path, status): requests}, for /metrics."""
        self.seconds = 0.0
        """Spent answering, all requests together."""
        self.routes: list[Route] = (routes or _deciding(service, steward))(self)
        added = extension.routes() if extension else []
        self.routes += added
        self._theirs = {route.path for route in added}
        self._exact = {(r.method, r.path): r for r in [*self.routes, *pages] if "{" not in r.path}
        self._patterns = [(r.path.split("/"), r) for r in self.routes if "{" in r.path]
        self._found: dict[tuple[str, str], tuple[Route, Sequence[str]]] = {}
        self._decoders = {r.body: msgspec.json.Decoder(r.body) for r in self.routes if r.body is not None}
        self._kept: dict[tuple[str, str], tuple[bytes, Answer | None]] = {}
        """{(whose, key): (a hash of the request, its answer)}, for requests with an Idempotency-Key."""
        self._number, self._salt = 0, os.urandom(8).hex()

    def asking(self, head: Head) -> Asking:
        """A request with an id of its own."""
        self._number += 1
        return Asking(head, f"{self._salt}{self._number:016x}", time.perf_counter())

    def open(self, head: Head) -> tuple[Asking, Answer | None]:
        """A request whose head was read; an answer at once where its body does not matter."""
        asking = self.asking(head)
        if self.guard.origins:
            asking.cors = self.guard.cors(head.headers)
        if head.method == "OPTIONS" and asking.cors:
            return asking, self._preflight(asking)
        try:
            asking.route, asking.words = self._find(head.method, head.path)
            path = "/healthz" if asking.route.open else head.path
            asking.scopes = self.guard.check(path, head.headers, head.client, asking.route.scope)
            if self.service.draining:
                raise Refused("unavailable", "the service is shutting down", headers={"Retry-After": "5"})
            _check_accept(head.headers)
            if asking.route.body is not None:
                _check_body(asking.route, head.headers)
        except Refused as why:
            return asking, self.refusal(asking, why)
        return asking, None

    def answer(self, asking: Asking, raw: bytes, respond: Respond) -> asyncio.Task[None] | None:
        """Answer, now or later; a task where it runs beside others."""
        route = asking.route
        assert route is not None
        try:
            given: list[Any] = [] if route.body is None else [self._decoded(route, raw)]
            key = asking.head.headers.get(b"idempotency-key")
            if key is not None and route.key:
                _name(given[0], route.key, key)
            elif key is not None and route.method == "POST":
                respond = self._once(asking, _text(key), raw, respond)
            if route.also is not None and (more := route.also(given[0])) is not None:
                require(more, asking.scopes)
            if route.begin is not None:

                def then(found: Any) -> None:
                    respond(self._failed(asking, found) if isinstance(found, Exception) else self._told(asking, found))

                route.begin(*asking.words, *given, then)
                return None
        except _Known as known:
            respond(self._counted(asking, known.answer))
            return None
        except Exception as why:
            respond(self._failed(asking, why))
            return None
        return asyncio.get_running_loop().create_task(self._run(asking, given, respond))

    def _once(self, asking: Asking, key: str, raw: bytes, respond: Respond) -> Respond:
        """Keeps the answer under a key; raises it where it is known."""
        body = hashlib.blake2b(raw + asking.head.path.encode(), digest_size=16).digest()
        whose = self.guard.who(asking.head.headers, asking.head.client)
        if (known := self._kept.get((whose, key))) is not None:
            if known[0] != body:
                raise Refused("conflict", f"Idempotency-Key {key!r} was sent with another request")
            if known[1] is None:
                raise Refused("conflict", f"the request with Idempotency-Key {key!r} is under way")
            raise _Known(known[1])
        self._kept[(whose, key)] = body, None
        while len(self._kept) > KEPT_ANSWERS:
            self._kept.pop(next(iter(self._kept)))

        def keep(answer: Answer) -> None:
            if answer.status < 500:
                self._kept[(whose, key)] = body, answer
            else:
                self._kept.pop((whose, key), None)
            respond(answer)

        return keep

    async def _run(self, asking: Asking, given: Sequence[Any], respond: Respond) -> None:
        route = asking.route
        assert route is not None
        more = {"client": self.guard.who(asking.head.headers, asking.head.client)} if route.wants_client else {}
        try:
            respond(self._told(asking, await route.handle(*asking.words, *given, **more)))
        except Exception as why:
            respond(self._failed(asking, why))

    def _told(self, asking: Asking, found: Any) -> Answer:
        route = asking.route
        assert route is not None
        content = found if isinstance(found, bytes) else b"" if found is None else _encode(found)
        headers = {**route.headers, **asking.cors} if route.headers else asking.cors
        return self._counted(asking, Answer(route.status, content, route.kind, headers))

    def _failed(self, asking: Asking, why: Exception) -> Answer:
        if not isinstance(why, Refused):
            log.error("request %s failed", asking.id, exc_info=why)
            why = Refused("failed", "an error that nobody foresaw; it is in the log of the service")
        return self.refusal(asking, why)

    def refusal(self, asking: Asking, why: Refused) -> Answer:
        """A problem as whoever asks there reads it."""
        path, headers = asking.head.path, {**why.headers, **asking.cors}
        if self.extension is not None and (path in self._theirs or not path.startswith("/v1/")):
            content, kind = self.extension.error_body(why, asking.id)
        else:
            content, kind = _encode(problem(why, asking.id)), "application/problem+json"
        return self._counted(asking, Answer(why.status, content, kind, headers))

    def _counted(self, asking: Asking, answer: Answer) -> Answer:
        key = (asking.route.path if asking.route else "unknown", answer.status)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.seconds += time.perf_counter() - asking.begin
        if answer.status in (401, 403) or (asking.route is not None and asking.route.scope == "admin"):
            self._audit(asking, answer.status)
        return answer

    def _audit(self, asking: Asking, status: int) -> None:
        """Who changed what, or was not let: a line of the log, without what was seen and without a token."""
        head = asking.head
        who = self.guard.who(head.headers, head.client)
        log.info(
            "audit: %s %s by %s from %s: %d, request %s",
            head.method,
            head.path[:200],
            who,
            head.client,
            status,
            asking.id,
        )

    def _preflight(self, asking: Asking) -> Answer:
        """What a browser asks before a page of a named site may ask."""
        try:
            self.guard.check("/healthz", asking.head.headers, "", "read")  # a token comes with the request itself
            status = 204
        except Refused as why:
            status = why.status
        told = {
            **asking.cors,
            "Access-Control-Allow-Methods": "GET, POST",
            "Access-Control-Allow-Headers": "authorization, content-type, idempotency-key",
            "Access-Control-Max-Age": "600",
        }
        return Answer(status, b"", "text/plain", told)

    def _find(self, method: str, path: str) -> tuple[Route, Sequence[str]]:
        if (known := self._found.get((method, path))) is not None:
            return known
        asked = "GET" if method == "HEAD" else method
        if (route := self._exact.get((asked, path))) is not None:
            return route, ()
        allowed = {m for m, p in self._exact if p == path}
        parts = path.split("/")
        for pattern, route in self._patterns:
            words = _match(pattern, parts)
            if words is not None and route.method == asked:
                if len(self._found) < 1000 and path.startswith("/v1/policies/"):
                    self._found[(method, path)] = route, words
                return route, words
            if words is not None:
                allowed.add(route.method)
        if allowed:
            told = ", ".join(sorted(allowed))
            raise Refused("method", f"{path} takes {told}", headers={"Allow": told})
        raise Refused("unknown", f"there is nothing at {path[:200]}; /openapi.json lists what there is")

    def _decoded(self, route: Route, raw: bytes) -> Any:
        assert route.body is not None
        if len(raw) > route.limit:
            raise Refused("too-large", f"more than {route.limit:,} bytes")
        return decode(raw or b"{}", self._decoders[route.body], nests=route.begin is None)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """For any ASGI server; deadlines are then that server's."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.start()
                except SurefootError as why:
                    await send({"type": "lifespan.startup.failed", "message": str(why)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.service.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def start(self) -> None:
        """Take up what is there."""
        await self.service.start()
        if self.extension is not None:
            await self.extension.prepare()

    async def _http(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        client = scope["client"][0] if scope.get("client") else ""
        asking, answer = self.open(Head(scope["method"], scope["path"], dict(scope["headers"]), client))
        if answer is None:
            done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            try:
                raw = b"" if asking.route is None or asking.route.body is None else await _body(asking.route, receive)
                self.answer(asking, raw, done.set_result)
                answer = await done
            except Refused as why:
                answer = self.refusal(asking, why)
        sent = [(name.encode(), value.encode()) for name, value in head_of(answer, asking.id)]
        await send({"type": "http.response.start", "status": answer.status, "headers": sent})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.content})


def _deciding(service: Serves, steward: Steward | None) -> Callable[[App], list[Route]]:
    """All that a service asks and answers that decides and learns."""
    assert isinstance(service, Service)
    return lambda app: all_routes(service, steward or Steward(service), app)


def head_of(answer: Answer, request: str) -> list[tuple[str, str]]:
    """The headers of an answer, names in small letters."""
    told = [("content-type", answer.kind), ("content-length", str(len(answer.content)))]
    told += [("x-request-id", request), ("cache-control", "no-store")]
    return told + [(name.lower(), value) for name, value in answer.headers.items()]


async def _body(route: Route, receive: Receive) -> bytes:
    chunks, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused("timeout", "the connection was closed before the body was there")
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > route.limit:
            raise Refused("too-large", f"more than {route.limit:,} bytes")
        more = message.get("more_body", False)
    return b"".join(chunks)


def _text(key: bytes) -> str:
    """An Idempotency-Key as it may be: the form of an id, with or without quotes."""
    try:
        return msgspec.convert(key.decode("latin-1").strip('"'), schema.Id)
    except msgspec.ValidationError as why:
        raise Refused("invalid", f"Idempotency-Key: {why}", pointer="/") from None


def _name(body: Any, field: str, key: bytes) -> None:
    """Give a body the id that its header has."""
    id, given = _text(key), getattr(body, field)
    if given is not msgspec.UNSET and given != id:
        raise Refused("invalid", f"Idempotency-Key is {id!r} and {field} is {given!r}; give one", pointer=f"/{field}")
    setattr(body, field, id)


def _check_body(route: Route, headers: Mapping[bytes, bytes]) -> None:
    """What a head says about its body."""
    kind = headers.get(b"content-type", b"")
    if kind != b"application/json" and kind.partition(b";")[0].strip().lower() != b"application/json":
        told = kind.partition(b";")[0].strip().lower().decode("latin-1")
        raise Refused("media-type", f"Content-Type is {told[:60]!r}; send application/json")
    declared = headers.get(b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > route.limit:
        raise Refused("too-large", f"{int(declared):,} bytes; at most {route.limit:,}")


def _match(pattern: Sequence[str], parts: Sequence[str]) -> list[str] | None:
    """The words of a path where a pattern has {names}; None if it is another path."""
    if len(pattern) != len(parts):
        return None
    words: list[str] = []
    for want, part in zip(pattern, parts, strict=True):
        if want[:1] == "{":
            if not part:
                return None
            words.append(part)
        elif want != part:
            return None
    return words


def decode(raw: bytes, decoder: msgspec.json.Decoder[Any], *, nests: bool = True) -> Any:
    """A body as its struct; what is not JSON is malformed, what cannot be is invalid, with its place.

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
        raise Refused("invalid", text, pointer=_pointer(place.rstrip("`"))) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as why:
        raise Refused("malformed", str(why)) from None


def _depth(raw: bytes) -> int:
    """How deep brackets nest, at most; brackets in strings count too, which only makes it stricter."""
    if raw.count(b"[") + raw.count(b"{") <= DEPTH:
        return 0
    depth = deepest = 0
    for byte in re.findall(rb"[\[\]{}]", raw):
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _pointer(place: str) -> str:
    """`.decisions[0].mask` as /decisions/0/mask."""
    return re.sub(r"\[(\d+|\.\.\.)\]", r"/\1", place).replace(".", "/") if place else "/"


def _check_accept(headers: Mapping[bytes, bytes]) -> None:
    accept = headers.get(b"accept")
    if accept is None:
        return
    accept = accept.lower()
    if not any(kind in accept for kind in JSON_KINDS):
        raise Refused("not-acceptable", f"Accept is {accept.decode('latin-1')[:60]!r}; answers are application/json")


def problem(why: Refused, request: str) -> schema.ProblemResponse:
    """RFC 9457."""
    return schema.ProblemResponse(
        type=f"about:surefoot/{why.kind}",
        title=PROBLEMS[why.kind][1],
        status=why.status,
        detail=why.detail,
        request_id=request,
        pointer=msgspec.UNSET if why.pointer is None else why.pointer,
    )
