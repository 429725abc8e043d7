"""The asyncio client: calls can be cancelled, connections are reused."""

from __future__ import annotations

import asyncio
import email
import ssl
import time
from collections import deque
from email.message import Message
from typing import Any, TypeVar

import msgspec

from surefoot.client.bodies import IDLE, error_of
from surefoot.client.calls import Call, ServiceMethods, ended
from surefoot.client.errors import ConnectionFailed, TimedOut
from surefoot.server.schema import JobResponse

T = TypeVar("T")
Link = tuple[asyncio.StreamReader, asyncio.StreamWriter, float]


class AsyncSurefoot(ServiceMethods):
    """A client of the decision service. Tasks of one event loop may share it; each request has its own connection."""

    def _prepare(self) -> None:
        self._tls = ssl.create_default_context() if self._url.scheme == "https" else None
        self._port = self._url.port or (443 if self._tls else 80)
        headers = {"Host": self._url.netloc.rpartition("@")[2], **self._headers}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._idle: deque[Link] = deque()

    async def __aenter__(self) -> AsyncSurefoot:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop()[1].close()

    async def finished(self, job: JobResponse | str, *, every: float = 0.2) -> JobResponse:
        """Wait until a job is over and return it; raise `SurefootError` if it failed."""
        id = job if isinstance(job, str) else job.job_id
        while not ended(now := await self.job(id)):
            await asyncio.sleep(every)
        return now

    async def send(self, method: str, path: str, body: Any = None, *, repeatable: bool = True) -> bytes:
        """Send a request and return the raw response. Retry if that is safe."""
        raw = None if body is None else msgspec.json.encode(body)
        tries = 0
        while True:
            try:
                async with asyncio.timeout(self.timeout):
                    status, headers, response = await self._once(method, path, raw)
            except TimeoutError as why:
                error = TimedOut(f"no response from {self.base_url} within {self.timeout:g} s")
                error.__cause__ = why
            except (OSError, EOFError, ValueError) as why:
                error = ConnectionFailed(f"cannot reach {self.base_url}: {why or type(why).__name__}")
                error.__cause__ = why
            else:
                if status < 300:
                    return response
                error = error_of(status, headers, response)
            await asyncio.sleep(self._pause(error, tries, repeatable=repeatable))
            tries += 1

    async def _once(self, method: str, path: str, raw: bytes | None) -> tuple[int, Message, bytes]:
        reader, writer = await self._link()
        try:
            length = "" if raw is None and method == "GET" else f"Content-Length: {len(raw or b'')}\r\n"
            kind = "" if raw is None else "Content-Type: application/json\r\n"
            head = f"{method} {self._prefix}{path} HTTP/1.1\r\n{self._head}{kind}{length}\r\n"
            writer.write(head.encode("latin-1") + (raw or b""))
            await writer.drain()
            first, _, lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").partition("\r\n")
            status, headers = int(first.split()[1]), email.message_from_string(lines)
            response = await reader.readexactly(int(headers.get("content-length") or 0))
        except BaseException:
            # Also on cancellation: a response that arrives later must not be taken for the next request's.
            writer.close()
            raise
        if (headers.get("connection") or "").lower() == "close":
            writer.close()
        else:
            self._idle.append((reader, writer, time.monotonic()))
        return status, headers, response

    async def _link(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a free connection; not one that was idle for some seconds, as the service may have closed it."""
        while self._idle:
            reader, writer, used = self._idle.pop()
            if time.monotonic() - used < IDLE and not writer.is_closing() and not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self._host, self._port, ssl=self._tls)

    async def _send(self, call: Call[T]) -> T:
        return call.decode(await self.send(call.method, call.path, call.body, repeatable=call.repeatable))
