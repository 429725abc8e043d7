"""HTTP/1.1 on a socket, with deadlines for the head, the body, an idle connection and its end."""

from __future__ import annotations

import asyncio
from collections import deque
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import httptools

from surefoot.server.http.app import App
from surefoot.server.http.messages import HttpRequest, HttpResponse, RequestHead
from surefoot.server.http.problems import Refused

# Slow clients must not hold connections: 10 s for a head, 30 s for a body of at most 16 MB, 5 s idle (as Node and uvicorn),
# and 2 s to read the last response.
HEAD_SECONDS, BODY_SECONDS, IDLE_SECONDS, LINGER_SECONDS = 10.0, 30.0, 5.0, 2.0
HEAD_BYTES = 32 << 10
# Precision of the deadlines.
SWEEP_SECONDS = 0.1
REFUSED_BODY = 1 << 16
"""Largest body of a refused request that is read and discarded, so that the connection stays usable."""
AHEAD = 16
"""Pipelined requests per connection; with more the connection is not read until some are answered."""

PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}
# Most responses are plain JSON: formatting this template takes a third of the time of building headers.
_PLAIN = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncache-control: no-store\r\n"
    b"x-request-id: %b\r\ncontent-length: %d\r\n\r\n"
)


class Connections:
    """The open connections. One timer checks their deadlines."""

    def __init__(self, app: App, *, most: int = 1000) -> None:
        self.app, self.most = app, most
        self.open: set[Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    def __call__(self) -> Connection:
        """Return a new connection, as a protocol factory."""
        return Connection(self)

    def sweep(self) -> None:
        """Close the connections whose deadline has passed, periodically."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [each for each in self.open if each.deadline < now]:
            connection.on_deadline()
        self._sweeping = loop.call_later(SWEEP_SECONDS, self.sweep)

    async def drain(self, seconds: float) -> None:
        """Wait until all requests are answered, at most `seconds`, then close everything."""
        for connection in list(self.open):
            connection.refuse_more()
        until = asyncio.get_running_loop().time() + seconds
        while self.open and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.02)
        for connection in list(self.open):
            connection.transport.abort()
        for task in self.tasks:
            task.cancel()
        if self._sweeping is not None:
            self._sweeping.cancel()


class Connection(asyncio.Protocol):
    """One client connection; requests are read ahead and answered in order."""

    transport: asyncio.Transport

    def __init__(self, all: Connections) -> None:
        self.all, self.app = all, all.app
        self.parser = httptools.HttpRequestParser(self)
        self.deadline = 0.0
        self._loop = asyncio.get_running_loop()
        self._client = ""
        self._url, self._headers, self._head = b"", dict[bytes, bytes](), 0
        self._in_head, self._in_body = False, False
        self._chunks: list[bytes] = []
        self._size = 0
        self._request: HttpRequest | None = None
        self._verdict: HttpResponse | None = None
        """The response to a request that is refused because of its head."""
        self._waiting: deque[tuple[HttpRequest, bytes, bool, HttpResponse | None]] = deque()
        """Complete requests that wait to be answered."""
        self._busy = False
        self._over = False
        """True: further input is discarded."""
        self._last = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self._client = str(peer[0]) if peer else ""
        self.deadline = self._loop.time() + HEAD_SECONDS
        self.all.open.add(self)
        # Refused with a response, so that the client can tell it from a crash.
        if len(self.all.open) > self.all.most:
            self._refuse(Refused("unavailable", "too many connections", headers={"Retry-After": "1"}))

    def connection_lost(self, exc: Exception | None) -> None:
        self.all.open.discard(self)
        self._over = True

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._over = True
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, _Enough):
                raise
        except httptools.HttpParserError as error:
            self._refuse(Refused("http", f"the request could not be parsed: {error}"))
        # The head is not complete yet: without this check it could grow without bound.
        if self._in_head and not self._over:
            self._head += len(data)
            if self._head > HEAD_BYTES:
                self._refuse_head()

    def eof_received(self) -> bool:
        """Keep the connection open while requests that were received before are answered."""
        self._last = True
        return self._busy or bool(self._waiting)

    def on_message_begin(self) -> None:
        self._url, self._headers, self._head, self._in_head = b"", {}, 0, True
        self._chunks, self._size, self._request = [], 0, None
        self.deadline = self._loop.time() + HEAD_SECONDS

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        # Repeated Host headers are joined (RFC 9110 5.3), so that the guard can refuse the request.
        self._headers[name] = b", ".join((self._headers[name], value)) if name == b"host" in self._headers else value
        self._head += len(name) + len(value) + 4

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body = False, True
        if self._head + len(self._url) > HEAD_BYTES:
            self._refuse_head()
            raise _Enough
        if self.parser.get_http_version() not in ("1.1", "1.0"):
            self._refuse(Refused("http", "the HTTP version is not supported; use HTTP/1.1"))
            raise _Enough
        self.deadline = self._loop.time() + BODY_SECONDS
        address, _, query = self._url.partition(b"?")
        path = address.decode("latin-1")
        if "%" in path:
            path = unquote(path)
        head = RequestHead(
            self.parser.get_method().decode("ascii"), path, self._headers, self._client, query.decode("latin-1")
        )
        self._request, self._verdict = self.app.open(head)
        if self._verdict is not None:
            # A small body is read and discarded, a large one ends the connection.
            declared = self._headers.get(b"content-length", b"0")
            if b"transfer-encoding" in self._headers or len(declared) > 6 or int(declared) > REFUSED_BODY:
                self._respond_early(self._verdict)
        elif self._headers.get(b"expect", b"").lower() == b"100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._verdict is not None:
            return
        route = self._request.route if self._request is not None else None
        if route is None or route.body is None:
            if self._size > HEAD_BYTES:
                self._respond_early(self._refusal(Refused("too-large", "this endpoint takes no body")))
            return
        if self._size > route.limit:
            self._respond_early(self._refusal(Refused("too-large", f"the body has more than {route.limit:,} bytes")))
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        request = self._request
        assert request is not None
        raw = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks = []
        self.deadline = float("inf")
        self._waiting.append((request, raw, self.parser.should_keep_alive(), self._verdict))
        if not self._busy:
            self._next()
        elif len(self._waiting) >= AHEAD:
            self.transport.pause_reading()

    def _next(self) -> None:
        """Answer the oldest waiting request."""
        request, raw, keep_alive, verdict = self._waiting.popleft()
        self._busy = True

        def respond(response: HttpResponse) -> None:
            self._respond(request, response, keep_alive=keep_alive)

        if verdict is not None:
            respond(verdict)
            return
        task = self.app.answer(request, raw, respond)
        if task is not None:
            self.all.tasks.add(task)
            task.add_done_callback(self.all.tasks.discard)

    def _respond(self, request: HttpRequest, response: HttpResponse, *, keep_alive: bool) -> None:
        self._busy = False
        if self.transport.is_closing():
            return
        keep_alive = keep_alive and not self._over and not (self._last and not self._waiting)
        self._write(request, response, keep_alive=keep_alive)
        if not keep_alive:
            self._end()
        elif self._waiting:
            if len(self._waiting) < AHEAD:
                self.transport.resume_reading()
            self._next()
        elif not (self._in_head or self._in_body):
            self.deadline = self._loop.time() + IDLE_SECONDS

    def _write(self, request: HttpRequest, response: HttpResponse, *, keep_alive: bool) -> None:
        bare = request.head.method == "HEAD"
        # The common case; see `_PLAIN`.
        usual = response.status == 200 and response.kind == "application/json" and not response.headers
        if keep_alive and usual and not bare:
            head = _PLAIN % (request.id.encode(), len(response.content))
            self.transport.write(head + response.content)
            return
        lines = [f"{name}: {value}\r\n" for name, value in response.head(request.id)]
        lines += [] if keep_alive else ["connection: close\r\n"]
        head = b"HTTP/1.1 %d %b\r\n" % (response.status, PHRASES.get(response.status, b"-"))
        self.transport.write(head + "".join(lines).encode("latin-1") + b"\r\n" + (b"" if bare else response.content))

    def _respond_early(self, response: HttpResponse) -> None:
        """Respond before the request is complete; nothing more is read."""
        request = self._request
        assert request is not None
        # Earlier requests are answered first; the client has to repeat this one on another connection.
        if self._busy or self._waiting:
            self._over, self._last = True, True
            raise _Enough
        self._write(request, response, keep_alive=False)
        self._end()
        raise _Enough

    def _refusal(self, problem: Refused) -> HttpResponse:
        assert self._request is not None
        return self.app.refusal(self._request, problem)

    def _refuse(self, problem: Refused) -> None:
        """Refuse a request that could not be parsed."""
        if self._busy or self._waiting:
            self._over, self._last = True, True
            return
        request = self._request or self.app.request(RequestHead("", "", {}, self._client))
        self._write(request, self.app.refusal(request, problem), keep_alive=False)
        self._end()

    def _refuse_head(self) -> None:
        self._refuse(Refused("head", f"the request head is larger than {HEAD_BYTES:,} bytes"))

    def _end(self) -> None:
        """Close the sending side and leave the client time to read the response."""
        self._over = True
        if self._last or not self.transport.can_write_eof():
            self.transport.close()
            return
        self.transport.write_eof()
        self.deadline = self._loop.time() + LINGER_SECONDS

    def on_deadline(self) -> None:
        """Handle a deadline that has passed."""
        if self._over or self._waiting or self._busy:
            self.transport.abort()
        elif self._in_head or self._in_body or self._request is None:
            self._refuse(Refused("timeout", "the request took too long"))
        else:
            self.transport.close()

    def refuse_more(self) -> None:
        """Accept no further request; close if none is being answered."""
        self._last = True
        if not self._busy and not self._waiting:
            self.transport.close()


class _Enough(Exception):
    """Raised in a callback to stop the parser: the remaining input is ignored."""
