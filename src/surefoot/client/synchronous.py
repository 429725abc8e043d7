"""The blocking client: one connection per thread, over `http.client`."""

from __future__ import annotations

import http.client
import threading
import time
from email.message import Message
from typing import Any, TypeVar

import msgspec

from surefoot.client.bodies import IDLE, error_of
from surefoot.client.calls import Call, ServiceMethods, ended
from surefoot.client.errors import ConnectionFailed, TimedOut
from surefoot.server.schema import JobResponse

T = TypeVar("T")


class Surefoot(ServiceMethods):
    """A client of the decision service. Threads may share it: each has its own connection."""

    def _prepare(self) -> None:
        self._local = threading.local()

    def __enter__(self) -> Surefoot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this thread's connection."""
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def finished(self, job: JobResponse | str, *, every: float = 0.2) -> JobResponse:
        """Wait until a job is over and return it; raise `SurefootError` if it failed."""
        id = job if isinstance(job, str) else job.job_id
        while not ended(now := self.job(id)):
            time.sleep(every)
        return now

    def send(self, method: str, path: str, body: Any = None, *, repeatable: bool = True) -> bytes:
        """Send a request and return the raw response. Retry if that is safe."""
        raw = None if body is None else msgspec.json.encode(body)
        tries = 0
        while True:
            try:
                status, headers, response = self._once(method, path, raw)
            except (ConnectionFailed, TimedOut) as failure:
                error = failure
            else:
                if status < 300:
                    return response
                error = error_of(status, headers, response)
            time.sleep(self._pause(error, tries, repeatable=repeatable))
            tries += 1

    def _once(self, method: str, path: str, raw: bytes | None) -> tuple[int, Message, bytes]:
        connection = self._connection()
        headers = self._headers if raw is None else {**self._headers, "Content-Type": "application/json"}
        try:
            connection.request(method, self._prefix + path, raw, headers)
            response = connection.getresponse()
            content = response.read()
            self._local.used = time.monotonic()
        except TimeoutError as why:
            connection.close()
            raise TimedOut(f"no response from {self.base_url} within {self.timeout:g} s") from why
        except (OSError, http.client.HTTPException) as why:
            connection.close()
            raise ConnectionFailed(f"cannot reach {self.base_url}: {why or type(why).__name__}") from why
        return response.status, response.headers, content

    def _connection(self) -> http.client.HTTPConnection:
        """Return this thread's connection; a new one after some idle seconds, when the service may have closed it."""
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is not None and time.monotonic() - getattr(self._local, "used", 0.0) < IDLE:
            return connection
        self.close()
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        self._local.connection = connection = kind(self._host, self._url.port, timeout=self.timeout)
        return connection

    def _send(self, call: Call[T]) -> T:
        return call.decode(self.send(call.method, call.path, call.body, repeatable=call.repeatable))
