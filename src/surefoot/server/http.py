"""uvicorn with the deadlines it lacks: for a request's head, for its body, and for the size of the head."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS, BODY_SECONDS, IDLE_SECONDS = 10.0, 30.0, 5.0
HEAD_BYTES = 32 << 10


class Deadlined(HttpToolsProtocol):
    """A connection that is closed when its head or its body takes too long, or its head is too large."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._head, self._in_head = 0, False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._within(HEAD_SECONDS, 408)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head, self._in_head = 0, True
        self._within(HEAD_SECONDS, 408)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:  # all of it was head, and there is no end yet
            self._head += len(data)
            if self._head > HEAD_BYTES:
                self._refuse(431)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > HEAD_BYTES:
            self._refuse(431)
            return
        self._within(BODY_SECONDS, 408)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_time()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._in_time()

    def _within(self, seconds: float, status: int) -> None:
        self._in_time()
        self._deadline = self.loop.call_later(seconds, self._refuse, status)

    def _in_time(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: int) -> None:
        cycle: Any = self.cycle  # None before the first request
        if self.transport.is_closing():
            return
        started = cycle is not None and cycle.response_started
        if not started:
            phrase = {408: b"Request Timeout", 431: b"Request Header Fields Too Large"}[status]
            self.transport.write(
                b"HTTP/1.1 %d %s\r\ncontent-type: application/problem+json\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                % (status, phrase)
            )
        self.transport.close()
