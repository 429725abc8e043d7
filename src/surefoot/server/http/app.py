"""The service over HTTP: find the route, check the token, decode the body, call the endpoint, encode the response."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from surefoot.server.decisions.policy_lifecycle import Steward
from surefoot.server.decisions.service import Service
from surefoot.server.http import asgi
from surefoot.server.http.access import AccessGuard, require
from surefoot.server.http.endpoints import all_routes
from surefoot.server.http.messages import (
    HttpRequest,
    HttpResponse,
    RequestHead,
    Respond,
    check_head,
    decode,
    idempotency_key,
    problem,
    set_id,
)
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import Extension, Route, Serves

log = logging.getLogger("surefoot.server")

KEPT_RESPONSES = 1000
"""Responses that are kept for requests that come again with the same Idempotency-Key."""
KNOWN_PATHS = 1000
"""Paths of policies whose route is remembered, as they are called again and again."""
_encode = msgspec.json.Encoder().encode


class _Known(Exception):
    """A request that was answered before."""

    def __init__(self, response: HttpResponse) -> None:
        self.response = response


class App:
    """The service as HTTP sees it: `open` checks a head, `answer` takes the body. It is an ASGI application, too."""

    def __init__(
        self,
        service: Serves,
        guard: AccessGuard | None = None,
        *,
        extension: Extension | None = None,
        steward: Steward | None = None,
        routes: Callable[[App], list[Route]] | None = None,
        pages: Sequence[Route] = (),
    ) -> None:
        self.service, self.guard, self.extension = service, guard or AccessGuard(), extension
        self.counts: dict[tuple[str, int], int] = {}
        """{(path, status): requests}, for /metrics."""
        self.seconds = 0.0
        """Spent answering, all requests together."""
        if routes is None:
            assert isinstance(service, Service)
            self.routes = all_routes(service, steward or Steward(service), self)
        else:
            self.routes: list[Route] = routes(self)
        added = extension.routes() if extension else []
        self.routes += added
        self._theirs = {route.path for route in added}
        self._exact = {(r.method, r.path): r for r in [*self.routes, *pages] if "{" not in r.path}
        self._patterns = [(re.compile(re.sub(r"{\w+}", "([^/]+)", r.path)), r) for r in self.routes if "{" in r.path]
        self._found: dict[tuple[str, str], tuple[Route, Sequence[str]]] = {}
        self._decoders = {r.body: msgspec.json.Decoder(r.body) for r in self.routes if r.body is not None}
        self._kept: dict[tuple[str, str], tuple[bytes, HttpResponse | None]] = {}
        """{(client, key): (hash of the request, its response)}, for requests with an Idempotency-Key."""
        self._number, self._salt = 0, os.urandom(8).hex()

    async def start(self) -> None:
        """Start the service, then the extension."""
        await self.service.start()
        if self.extension is not None:
            await self.extension.prepare()

    def request(self, head: RequestHead) -> HttpRequest:
        """Return a request with a new id."""
        self._number += 1
        return HttpRequest(head, f"{self._salt}{self._number:016x}", time.perf_counter())

    def open(self, head: RequestHead) -> tuple[HttpRequest, HttpResponse | None]:
        """Check a head. Return the request, and a response at once where the body does not matter."""
        request = self.request(head)
        if self.guard.origins:
            request.cors = self.guard.cors(head.headers)
        if head.method == "OPTIONS" and request.cors:
            return request, self._preflight(request)
        try:
            route, request.words = self._find(head.method, head.path)
            request.route = route
            path = "/healthz" if route.open else head.path
            request.scopes = self.guard.check(path, head.headers, head.client, route.scope)
            if self.service.draining:
                raise Refused("unavailable", "the service is shutting down", headers={"Retry-After": "5"})
            check_head(head, route)
        except Refused as why:
            return request, self.refusal(request, why)
        return request, None

    def answer(self, request: HttpRequest, raw: bytes, respond: Respond) -> asyncio.Task[None] | None:
        """Respond, now or later. Return a task where an endpoint runs as a coroutine."""
        route = request.found
        try:
            arguments: list[Any] = []
            if route.body is not None:
                if len(raw) > route.limit:
                    raise Refused("too-large", f"more than {route.limit:,} bytes")
                arguments = [decode(raw or b"{}", self._decoders[route.body], nests=route.begin is None)]
            key = request.head.headers.get(b"idempotency-key")
            if key is not None and route.key:
                set_id(arguments[0], route.key, key)
            elif key is not None and route.method == "POST":
                respond = self._once(request, idempotency_key(key), raw, respond)
            if route.also is not None and (scope := route.also(arguments[0])) is not None:
                require(scope, request.scopes)
            if route.begin is not None:

                def then(result: Any) -> None:
                    failed = isinstance(result, Exception)
                    respond(self._failure(request, result) if failed else self._success(request, result))

                route.begin(*request.words, *arguments, then)
                return None
        except _Known as known:
            respond(self._counted(request, known.response))
            return None
        except Exception as why:
            respond(self._failure(request, why))
            return None
        return asyncio.get_running_loop().create_task(self._run(request, arguments, respond))

    def _once(self, request: HttpRequest, key: str, raw: bytes, respond: Respond) -> Respond:
        """Return a `respond` that keeps the response under a key. Raise `_Known` with it where there is one."""
        body = hashlib.blake2b(raw + request.head.path.encode(), digest_size=16).digest()
        place = (self.guard.who(request.head.headers, request.head.client), key)
        if (known := self._kept.get(place)) is not None:
            if known[0] != body:
                raise Refused("conflict", f"Idempotency-Key {key!r} was sent with another request")
            if known[1] is None:
                raise Refused("conflict", f"the request with Idempotency-Key {key!r} is under way")
            raise _Known(known[1])
        self._kept[place] = body, None
        while len(self._kept) > KEPT_RESPONSES:
            self._kept.pop(next(iter(self._kept)))

        def keep(response: HttpResponse) -> None:
            if response.status < 500:
                self._kept[place] = body, response
            else:  # a failure may be tried again
                self._kept.pop(place, None)
            respond(response)

        return keep

    async def _run(self, request: HttpRequest, arguments: Sequence[Any], respond: Respond) -> None:
        route, head = request.found, request.head
        more = {"client": self.guard.who(head.headers, head.client)} if route.wants_client else {}
        try:
            response = self._success(request, await route.handle(*request.words, *arguments, **more))
        except Exception as why:
            response = self._failure(request, why)
        respond(response)

    def _success(self, request: HttpRequest, result: Any) -> HttpResponse:
        route = request.found
        content = result if isinstance(result, bytes) else b"" if result is None else _encode(result)
        headers = {**route.headers, **request.cors} if route.headers else request.cors
        return self._counted(request, HttpResponse(route.status, content, route.kind, headers))

    def _failure(self, request: HttpRequest, why: Exception) -> HttpResponse:
        if not isinstance(why, Refused):
            log.error("request %s failed", request.id, exc_info=why)
            why = Refused("failed", "an error that nobody foresaw; it is in the log of the service")
        return self.refusal(request, why)

    def refusal(self, request: HttpRequest, why: Refused) -> HttpResponse:
        """Return a problem in the form that the clients of this path read."""
        path, headers = request.head.path, {**why.headers, **request.cors}
        if self.extension is not None and (path in self._theirs or not path.startswith("/v1/")):
            content, kind = self.extension.error_body(why, request.id)
        else:
            content, kind = _encode(problem(why, request.id)), "application/problem+json"
        return self._counted(request, HttpResponse(why.status, content, kind, headers))

    def _counted(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Count a response; log it for an audit if something was changed or not allowed."""
        route, head, status = request.route, request.head, response.status
        key = (route.path if route else "unknown", status)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.seconds += time.perf_counter() - request.begin
        if status in (401, 403) or (route is not None and route.scope == "admin"):
            # No body and no token: both are the user's.
            who, path = self.guard.who(head.headers, head.client), head.path[:200]
            parts = (head.method, path, who, head.client, status, request.id)
            log.info("audit: %s %s by %s from %s: %d, request %s", *parts)
        return response

    def _preflight(self, request: HttpRequest) -> HttpResponse:
        """Answer a browser that asks whether a page of a named site may send a request."""
        try:
            self.guard.check("/healthz", request.head.headers, "", "read")  # a token comes with the request itself
            status = 204
        except Refused as why:
            status = why.status
        headers = {
            **request.cors,
            "Access-Control-Allow-Methods": "GET, POST",
            "Access-Control-Allow-Headers": "authorization, content-type, idempotency-key",
            "Access-Control-Max-Age": "600",
        }
        return HttpResponse(status, b"", "text/plain", headers)

    def _find(self, method: str, path: str) -> tuple[Route, Sequence[str]]:
        """Return the route of a path and the words of it."""
        if (known := self._found.get((method, path))) is not None:
            return known
        wanted = "GET" if method == "HEAD" else method
        if (route := self._exact.get((wanted, path))) is not None:
            return route, ()
        allowed = {m for m, p in self._exact if p == path}
        for pattern, route in self._patterns:
            if (match := pattern.fullmatch(path)) is None:
                continue
            if route.method == wanted:
                if len(self._found) < KNOWN_PATHS and path.startswith("/v1/policies/"):
                    self._found[(method, path)] = route, match.groups()
                return route, match.groups()
            allowed.add(route.method)
        if allowed:
            listed = ", ".join(sorted(allowed))
            raise Refused("method", f"{path} takes {listed}", headers={"Allow": listed})
        raise Refused("unknown", f"there is nothing at {path[:200]}; /openapi.json lists what there is")

    async def __call__(self, scope: dict[str, Any], receive: asgi.Receive, send: asgi.Send) -> None:
        """Serve under any ASGI server; deadlines are then that server's."""
        await asgi.serve(self, scope, receive, send)
