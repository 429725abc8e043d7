"""Services that keep nothing: trained policies as they are, and read-only copies of a service's own. Any number can run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from surefoot.data.journal import Journal
from surefoot.decide.promotion import Versions
from surefoot.errors import ConfigError, SurefootError
from surefoot.server import schema
from surefoot.server.decisions.numpy_network import net_of
from surefoot.server.decisions.served_policy import Serving, chances_of, encoder_of
from surefoot.server.http.access import Guard
from surefoot.server.http.app import App
from surefoot.server.http.endpoints import DistributionEndpoint, RunEndpoints, ServerEndpoints
from surefoot.server.http.metrics import requests_only
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import Route, routes_of
from surefoot.server.trained_runs import Runs

log = logging.getLogger("surefoot.server")
LOOK_SECONDS = 1.0
"""How often a copy looks whether another version answers now."""


class Copies:
    """The policies of a service in another process, as they are on the disk. Nothing is ever written."""

    def __init__(self, directory: Path, digits: int | None = None) -> None:
        self.directory, self.digits = directory, digits
        self.policies: dict[str, Serving] = {}
        self._journal: Journal | None = None
        self._turn = threading.Lock()  # who looked last says what there is

    def refresh(self) -> None:
        """Take up policies and versions that are new. One that cannot be read stays as it was known."""
        with self._turn:
            self._journal = self._journal or Journal(self.directory / "decisions.sqlite")
            found: dict[str, Serving] = {}
            for entry in self._journal.scan("policy"):
                config = msgspec.convert(entry.body, schema.NewPolicy)
                serving = self._current(config)
                if serving is not None:
                    found[config.name] = serving
            self.policies = found

    def _current(self, config: schema.NewPolicy) -> Serving | None:
        versions = Versions(self.directory / "policies" / config.name)
        known, live = self.policies.get(config.name), versions.live
        if live is None or (known is not None and known.version == live):
            return known
        try:
            return _copy(config, versions, live)
        except (SurefootError, OSError) as why:
            log.warning("version %d of %s could not be read: %s", live, config.name, why)
            return known

    def find(self, name: str) -> None:
        """Look again if there is a policy of that name by now."""
        if self._journal is not None and self._journal.has("policy", name):
            self.refresh()

    async def distribution(self, name: str, new: schema.NewDecision) -> schema.Chances:
        """Every choice's probability, by the version that this copy knows."""
        if name not in self.policies:  # who was told that it is there may ask any copy
            await asyncio.get_running_loop().run_in_executor(None, self.find, name)
        if name not in self.policies:
            raise Refused("unknown", f"there is no policy {name!r}; there are {', '.join(self.policies) or 'none yet'}")
        return chances_of(self.policies[name], new, self.digits)

    def close(self) -> None:
        """Let go of the file."""
        if self._journal is not None:
            self._journal.close()


def _copy(config: schema.NewPolicy, versions: Versions, live: int) -> Serving:
    parts: dict[str, Any] = versions.load(live).parts
    weights = {name: np.asarray(x) for name, x in parts["weights"].items()}
    network = net_of(weights, actions=len(config.actions))
    return Serving(config=config, versions=versions, network=network, version=live, encoder=encoder_of(config))


class Reading:
    """What stands behind such a service."""

    def __init__(self, runs: Runs, copies: Copies | None = None, *, alone: bool = True) -> None:
        self.runs, self.copies, self.alone, self.draining = runs, copies, alone, False
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read everything, beside the loop: torch takes seconds."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self.runs.load)
        remembering = [name for name, policy in self.runs.policies.items() if policy.remembers]
        if remembering and not self.alone:
            raise ConfigError(
                f"{remembering[0]} remembers within an episode, and its memory lives in one process; leave --replicas out"
            )
        if self.copies is not None:
            await loop.run_in_executor(None, self.copies.refresh)
            self._looking = loop.create_task(self._look(self.copies))

    async def _look(self, copies: Copies) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await asyncio.get_running_loop().run_in_executor(None, copies.refresh)
            except (SurefootError, OSError) as why:  # the old ones go on
                log.warning("the policies could not be looked at: %s", why)

    async def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking
        if self.copies is not None:
            self.copies.close()


def reading_app(runs: Runs, guard: Guard, copies: Copies | None = None, *, alone: bool = True) -> App:
    """Runs, and copies of policies where there are some, over HTTP."""
    reading = Reading(runs, copies, alone=alone)

    def routes(app: App) -> list[Route]:
        def metrics() -> bytes:
            return requests_only(app.counts, app.seconds)

        owners: list[Any] = [ServerEndpoints(reading, app, metrics), RunEndpoints(runs)]
        if copies is not None:
            owners.append(DistributionEndpoint(copies.distribution))
        return [route for owner in owners for route in routes_of(owner)]

    return App(reading, guard, routes=routes)
