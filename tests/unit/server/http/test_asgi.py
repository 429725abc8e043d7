"""The app under an ASGI server."""

from __future__ import annotations

import asyncio

from surefoot.errors import ConfigError
from surefoot.server.http.app import App


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
    asked = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[dict] = []

    async def receive() -> dict:
        return asked.pop(0)

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
