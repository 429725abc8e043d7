"""Tests of `surefoot.server.http.asgi`."""

from __future__ import annotations

import asyncio

from surefoot.errors import ConfigError
from surefoot.server.http.app import App
from surefoot.server.http.endpoints import ServerEndpoints
from surefoot.server.http.route import routes_of


class Service:
    """Starts, or does not, and notes that it was closed."""

    draining = False

    def __init__(self, fails: bool) -> None:
        self.fails, self.closed = fails, False

    async def start(self) -> None:
        if self.fails:
            raise ConfigError("no room")

    async def close(self) -> None:
        self.closed = True


def lifespan(service: Service) -> list[dict]:
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[dict] = []

    async def receive() -> dict:
        return messages.pop(0)

    async def send(message: dict) -> None:
        sent.append(message)

    asyncio.run(App(service, routes=lambda app: [])({"type": "lifespan"}, receive, send))
    return sent


def test_the_service_starts_and_stops_with_the_server():
    service = Service(fails=False)
    assert [m["type"] for m in lifespan(service)] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert service.closed


def test_a_service_that_cannot_start_says_why():
    service = Service(fails=True)
    assert lifespan(service) == [{"type": "lifespan.startup.failed", "message": "no room"}]
    assert not service.closed


def test_two_host_headers_are_a_bad_request():
    service, sent = Service(fails=False), list[dict]()
    app = App(service, routes=lambda app: routes_of(ServerEndpoints(service, app)))

    async def send(message: dict) -> None:
        sent.append(message)

    for headers, status in (([(b"host", b"127.0.0.1")], 200), ([(b"host", b"127.0.0.1")] * 2, 400)):
        scope = {"type": "http", "method": "GET", "path": "/healthz", "headers": headers, "client": ("127.0.0.1", 1)}
        asyncio.run(app(scope, None, send))
        assert sent[-2]["status"] == status
