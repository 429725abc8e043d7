"""The service over ASGI: who may ask, what the body says, a verb, an answer or a problem."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from surefoot.errors import SurefootError
from surefoot.server import schema
from surefoot.server.compat import Directive023, error_body
from surefoot.server.guard import Guard
from surefoot.server.problems import PROBLEMS, Refused
from surefoot.server.routes import Route, all_routes
from surefoot.server.service import Service
from surefoot.server.steward import Steward

log = logging.getLogger("surefoot.server")
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

DEPTH = 32
_encode = msgspec.json.Encoder().encode


class App:
    """An ASGI application around a service."""

    def __init__(
        self,
        service: Service,
        guard: Guard | None = None,
        *,
        compat: Directive023 | None = None,
        steward: Steward | None = None,
    ) -> None:
        self.service, self.guard, self.compat = service, guard or Guard(), compat
        self.counts: dict[tuple[str, int], int] = {}
        """{(path, status): requests}, for /metrics."""
        self.seconds = 0.0
        """Spent answering, all requests together."""
        self.routes: list[Route] = all_routes(service, steward or Steward(service), self)
        self.routes += compat.routes() if compat else []
        self._theirs = {route.path for route in compat.routes()} if compat else set[str]()
        self._exact = {(r.method, r.path): r for r in self.routes if "{" not in r.path}
        self._patterns = [(re.compile(_pattern(r.path)), r) for r in self.routes if "{" in r.path]

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.service.start()
                    if self.compat is not None:
                        await self.compat.prepare()
                except SurefootError as why:
                    await send({"type": "lifespan.startup.failed", "message": str(why)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.service.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        begin, path, method = time.perf_counter(), scope["path"], scope["method"]
        request, shown = os.urandom(16).hex(), "unknown"
        extra: Mapping[str, str] = {}
        headers: dict[bytes, bytes] = dict(scope["headers"])
        cors = self.guard.cors(headers) if self.guard.origins else {}
        if method == "OPTIONS" and cors:
            await self._preflight(headers, cors, send)
            return
        try:
            route, words, shown = self._find(method, path)
            client = scope["client"][0] if scope.get("client") else ""
            self.guard.check(path, headers, client, route.scope)
            if self.service.draining:
                raise Refused("unavailable", "the service is shutting down", headers={"Retry-After": "5"})
            _check_accept(headers)
            given = [] if route.body is None else [await self._read(route, headers, receive)]
            answer = await route.handle(*words, *given)
            status, body, kind = route.status, answer, route.kind
        except Refused as why:
            status, extra = why.status, why.headers
            body, kind = self._told(why, request, path)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("request %s failed", request)
            why = Refused("failed", "an error that nobody foresaw; it is in the log of the service")
            status, (body, kind) = 500, self._told(why, request, path)
        self.counts[(shown, status)] = self.counts.get((shown, status), 0) + 1
        self.seconds += time.perf_counter() - begin
        content = body if isinstance(body, bytes) else b"" if body is None else _encode(body)
        sent = [(b"content-type", kind.encode()), (b"content-length", str(len(content)).encode())]
        sent += [(b"x-request-id", request.encode()), (b"cache-control", b"no-store")]
        sent += [(name.lower().encode(), value.encode()) for name, value in {**extra, **cors}.items()]
        await send({"type": "http.response.start", "status": status, "headers": sent})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else content})

    async def _preflight(self, headers: Mapping[bytes, bytes], cors: Mapping[str, str], send: Send) -> None:
        """What a browser asks before a page of a named site may ask."""
        try:
            self.guard.check("/healthz", headers, "", "read")  # the host; a token comes with the request itself
            status = 204
        except Refused as why:
            status = why.status
        told = {
            **cors,
            "Access-Control-Allow-Methods": "GET, POST",
            "Access-Control-Allow-Headers": "authorization, content-type",
            "Access-Control-Max-Age": "600",
            "Content-Length": "0",
        }
        sent = [(name.lower().encode(), value.encode()) for name, value in told.items()]
        await send({"type": "http.response.start", "status": status, "headers": sent})
        await send({"type": "http.response.body", "body": b""})

    def _told(self, why: Refused, request: str, path: str) -> tuple[bytes, str]:
        """A problem as whoever asks there reads it."""
        if self.compat is not None and (path in self._theirs or not path.startswith("/v1/")):
            return error_body(why, request)
        return _encode(problem(why, request)), "application/problem+json"

    def _find(self, method: str, path: str) -> tuple[Route, list[str], str]:
        asked = "GET" if method == "HEAD" else method
        if (route := self._exact.get((asked, path))) is not None:
            return route, [], route.path
        allowed = {m for m, p in self._exact if p == path}
        for pattern, route in self._patterns:
            if (match := pattern.fullmatch(path)) is not None:
                if route.method == asked:
                    return route, list(match.groups()), route.path
                allowed.add(route.method)
        if allowed:
            raise Refused(
                "method", f"{path} takes {', '.join(sorted(allowed))}", headers={"Allow": ", ".join(sorted(allowed))}
            )
        raise Refused("unknown", f"there is nothing at {path[:200]}; /openapi.json lists what there is")

    async def _read(self, route: Route, headers: Mapping[bytes, bytes], receive: Receive) -> Any:
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise Refused("media-type", f"Content-Type is {kind.decode('latin-1')[:60]!r}; send application/json")
        declared = headers.get(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > route.limit:
            raise Refused("too-large", f"{int(declared):,} bytes; at most {route.limit:,}")
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
        assert route.body is not None
        return decode(b"".join(chunks) or b"{}", route.body)


def decode(raw: bytes, kind: type[Any]) -> Any:
    """A body as its struct; what is not JSON is malformed, what cannot be is invalid, with its place."""
    if _depth(raw) > DEPTH:
        raise Refused("malformed", f"nested deeper than {DEPTH}")
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as why:
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
    accept = headers.get(b"accept", b"*/*").lower()
    if not any(
        kind in accept
        for kind in (b"*/*", b"application/*", b"application/json", b"application/problem+json", b"text/")
    ):
        raise Refused("not-acceptable", f"Accept is {accept.decode('latin-1')[:60]!r}; answers are application/json")


def problem(why: Refused, request: str) -> schema.Problem:
    """RFC 9457."""
    return schema.Problem(
        type=f"about:surefoot/{why.kind}",
        title=PROBLEMS[why.kind][1],
        status=why.status,
        detail=why.detail,
        request_id=request,
        pointer=msgspec.UNSET if why.pointer is None else why.pointer,
    )


def _pattern(path: str) -> str:
    return re.sub(r"\{(\w+)\}", r"([^/]+)", path)
