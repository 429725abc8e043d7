"""The HTTP application: find the route, check access, decode the body, call the endpoint, encode the response."""

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

from surefoot.server.decisions.policy_lifecycle import PolicyLifecycle
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
    decode_query,
    idempotency_key,
    problem,
    set_id,
)
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import Extension, Route, Serves

log = logging.getLogger("surefoot.server")

# Responses cached for repeated requests with the same Idempotency-Key; clients retry within seconds.
CACHED_RESPONSES = 1000
# Policy paths whose route is cached instead of matched again; bounded, because paths come from clients.
KNOWN_PATHS = 1000
_encode = msgspec.json.Encoder().encode


class _Repeated(Exception):
    """A request that was answered before, with its response."""

    def __init__(self, response: HttpResponse) -> None:
        self.response = response


class App:
    """The HTTP application, also usable as an ASGI application: `open` checks a head, `answer` takes the body.

    Args:
        service: Started and closed with the app.
        guard: Access rules; default: this machine only, without tokens.
        extension: Additional endpoints with other conventions.
        lifecycle: Versions and update jobs of the policies; default: a new `PolicyLifecycle` for the service.
        routes: Creates the routes; default: those of a service that decides and learns.
        pages: Routes of web pages; they are not part of the OpenAPI document.
    """

    def __init__(
        self,
        service: Serves,
        guard: AccessGuard | None = None,
        *,
        extension: Extension | None = None,
        lifecycle: PolicyLifecycle | None = None,
        routes: Callable[[App], list[Route]] | None = None,
        pages: Sequence[Route] = (),
    ) -> None:
        self.service, self.guard, self.extension = service, guard or AccessGuard(), extension
        self.counts: dict[tuple[str, int], int] = {}
        """{(path, status): requests}, for /metrics."""
        self.seconds = 0.0
        """Total time spent answering."""
        if routes is None:
            assert isinstance(service, Service)
            self.routes = all_routes(service, lifecycle or PolicyLifecycle(service), self)
        else:
            self.routes: list[Route] = routes(self)
        added = extension.routes() if extension else []
        self.routes += added
        self._extension_paths = {route.path for route in added}
        self._exact = {(r.method, r.path): r for r in [*self.routes, *pages] if "{" not in r.path}
        self._patterns = [(re.compile(re.sub(r"{\w+}", "([^/]+)", r.path)), r) for r in self.routes if "{" in r.path]
        self._matched: dict[tuple[str, str], tuple[Route, Sequence[str]]] = {}
        self._decoders = {r.body: msgspec.json.Decoder(r.body) for r in self.routes if r.body is not None}
        self._cached: dict[tuple[str, str], tuple[bytes, HttpResponse | None]] = {}
        """{(client, key): (hash of the request, response or None while it runs)}, for requests with an Idempotency-Key."""
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
        """Check a head. Return the request, and a response if it can be answered without the body."""
        request = self.request(head)
        if self.guard.origins:
            request.cors = self.guard.cors(head.headers)
        # Preflights carry no token and must not be refused for that.
        if head.method == "OPTIONS" and request.cors:
            return request, self._preflight(request)
        try:
            route, request.words = self._find(head.method, head.path)
            request.route = route
            path = "/healthz" if route.open else head.path
            request.scopes = self.guard.check(path, head.headers, head.client, route.scope)
            # Retry-After: a load balancer or client tries another instance meanwhile.
            if self.service.draining:
                raise Refused("unavailable", "the service is shutting down", headers={"Retry-After": "5"})
            check_head(head, route)
        except Refused as error:
            return request, self.refusal(request, error)
        return request, None

    def answer(self, request: HttpRequest, raw: bytes, respond: Respond) -> asyncio.Task[None] | None:
        """Call `respond`, now or later. Return the task if the endpoint runs as a coroutine."""
        route = request.matched
        try:
            arguments: list[Any] = []
            if route.body is not None:
                if len(raw) > route.limit:
                    raise Refused("too-large", f"the body has more than {route.limit:,} bytes")
                arguments = [decode(raw or b"{}", self._decoders[route.body], nests=route.begin is None)]
            elif route.query is not None:
                arguments = [decode_query(request.head.query, route.query)]
            key = request.head.headers.get(b"idempotency-key")
            if key is not None and route.key:
                set_id(arguments[0], route.key, key)
            elif key is not None and route.method == "POST":
                respond = self._once(request, idempotency_key(key), raw, respond)
            if route.also is not None and (scope := route.also(arguments[0])) is not None:
                require(scope, request.scopes)
            # Decisions are batched by the service, without one task per request.
            if route.begin is not None:

                def then(result: Any) -> None:
                    failed = isinstance(result, Exception)
                    respond(self._failure(request, result) if failed else self._success(request, result))

                route.begin(*request.words, *arguments, then)
                return None
        except _Repeated as repeated:
            respond(self._counted(request, repeated.response))
            return None
        except Exception as error:
            respond(self._failure(request, error))
            return None
        return asyncio.get_running_loop().create_task(self._run(request, arguments, respond))

    def _once(self, request: HttpRequest, key: str, raw: bytes, respond: Respond) -> Respond:
        """Return a `respond` that caches the response by its key. Raise `_Repeated` if there is a cached one."""
        body = hashlib.blake2b(raw + request.head.path.encode(), digest_size=16).digest()
        place = (self.guard.client_id(request.head.headers, request.head.client), key)
        if (known := self._cached.get(place)) is not None:
            if known[0] != body:
                raise Refused("conflict", f"Idempotency-Key {key!r} was already used with another request")
            if known[1] is None:
                raise Refused("conflict", f"the request with Idempotency-Key {key!r} is still being answered")
            raise _Repeated(known[1])
        self._cached[place] = body, None
        while len(self._cached) > CACHED_RESPONSES:
            self._cached.pop(next(iter(self._cached)))

        def cache(response: HttpResponse) -> None:
            if response.status < 500:
                self._cached[place] = body, response
            else:
                # After a server error the client may try again with the same key.
                self._cached.pop(place, None)
            respond(response)

        return cache

    async def _run(self, request: HttpRequest, arguments: Sequence[Any], respond: Respond) -> None:
        route, head = request.matched, request.head
        more = {"client": self.guard.client_id(head.headers, head.client)} if route.wants_client else {}
        try:
            response = self._success(request, await route.handle(*request.words, *arguments, **more))
        except Exception as error:
            response = self._failure(request, error)
        respond(response)

    def _success(self, request: HttpRequest, result: Any) -> HttpResponse:
        route = request.matched
        content = result if isinstance(result, bytes) else b"" if result is None else _encode(result)
        headers = {**route.headers, **request.cors} if route.headers else request.cors
        return self._counted(request, HttpResponse(route.status, content, route.kind, headers))

    def _failure(self, request: HttpRequest, error: Exception) -> HttpResponse:
        if not isinstance(error, Refused):
            log.error("request %s failed", request.id, exc_info=error)
            error = Refused("failed", "unexpected error; the traceback is in the service's log")
        return self.refusal(request, error)

    def refusal(self, request: HttpRequest, error: Refused) -> HttpResponse:
        """Return the response for a problem, in the form of the path's endpoints."""
        path, headers = request.head.path, {**error.headers, **request.cors}
        if self.extension is not None and (path in self._extension_paths or not path.startswith("/v1/")):
            content, kind = self.extension.error_body(error, request.id)
        else:
            content, kind = _encode(problem(error, request.id)), "application/problem+json"
        return self._counted(request, HttpResponse(error.status, content, kind, headers))

    def _counted(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Count a response; write an audit log line if it changed something or access was denied."""
        route, head, status = request.route, request.head, response.status
        key = (route.path if route else "unknown", status)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.seconds += time.perf_counter() - request.begin
        if status in (401, 403) or (route is not None and route.scope == "admin"):
            # Never the body or the token: they are private.
            who, path = self.guard.client_id(head.headers, head.client), head.path[:200]
            parts = (head.method, path, who, head.client, status, request.id)
            log.info("audit: %s %s by %s from %s: %d, request %s", *parts)
        return response

    def _preflight(self, request: HttpRequest) -> HttpResponse:
        """Answer the CORS preflight of a page of an allowed origin."""
        try:
            # As for a path without token: browsers send it with the request itself only.
            self.guard.check("/healthz", request.head.headers, "", "read")
            status = 204
        except Refused as error:
            status = error.status
        headers = {
            **request.cors,
            "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE",
            "Access-Control-Allow-Headers": "authorization, content-type, idempotency-key",
            "Access-Control-Max-Age": "600",
        }
        return HttpResponse(status, b"", "text/plain", headers)

    def _find(self, method: str, path: str) -> tuple[Route, Sequence[str]]:
        """Return the route of a path, and its path parameters."""
        if (known := self._matched.get((method, path))) is not None:
            return known
        # HEAD is answered like GET, without the body.
        wanted = "GET" if method == "HEAD" else method
        if (route := self._exact.get((wanted, path))) is not None:
            return route, ()
        # The path exists with another method: 405 with Allow instead of 404.
        allowed = {m for m, p in self._exact if p == path}
        for pattern, route in self._patterns:
            if (match := pattern.fullmatch(path)) is None:
                continue
            if route.method == wanted:
                if len(self._matched) < KNOWN_PATHS and path.startswith("/v1/policies/"):
                    self._matched[(method, path)] = route, match.groups()
                return route, match.groups()
            allowed.add(route.method)
        if allowed:
            listed = ", ".join(sorted(allowed))
            raise Refused("method", f"{path} takes {listed}", headers={"Allow": listed})
        raise Refused("unknown", f"nothing is served at {path[:200]}; see /openapi.json")

    async def __call__(self, scope: dict[str, Any], receive: asgi.Receive, send: asgi.Send) -> None:
        """Serve under an ASGI server, whose deadlines then apply."""
        await asgi.serve(self, scope, receive, send)
