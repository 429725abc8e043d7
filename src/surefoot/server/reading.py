"""A service that keeps nothing: trained policies as they are. Any number of it can run side by side."""

from __future__ import annotations

import asyncio

from surefoot.server.app import App
from surefoot.server.guard import Guard
from surefoot.server.metrics import requests_only
from surefoot.server.routes import Route, base_routes, run_routes
from surefoot.server.runs import Runs


class Reading:
    """What stands behind it."""

    def __init__(self, runs: Runs) -> None:
        self.runs, self.draining = runs, False

    async def start(self) -> None:
        """Read everything, beside the loop: torch takes seconds."""
        await asyncio.get_running_loop().run_in_executor(None, self.runs.load)

    async def close(self) -> None:
        """Nothing is open."""


def reading_app(runs: Runs, guard: Guard) -> App:
    """Runs over HTTP."""
    reading = Reading(runs)

    def routes(app: App) -> list[Route]:
        def metrics() -> bytes:
            return requests_only(app.counts, app.seconds)

        return [*base_routes(reading, app, metrics), *run_routes(runs)]

    return App(reading, guard, routes=routes)
