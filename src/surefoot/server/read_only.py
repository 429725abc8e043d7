"""Services that write nothing: trained policies, and read-only copies of a service's policies. Any number can run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from pathlib import Path
from typing import Any

from surefoot.data.journal import Entry, Journal
from surefoot.decide.policy.experience_log import Log
from surefoot.decide.promotion import Versions
from surefoot.errors import ConfigError, SurefootError
from surefoot.server import schema
from surefoot.server.decisions.recovery import read_policy
from surefoot.server.decisions.requests import chances_of
from surefoot.server.decisions.served_policy import ServedPolicy
from surefoot.server.decisions.snapshots import restore
from surefoot.server.http.access import AccessGuard
from surefoot.server.http.app import App
from surefoot.server.http.endpoints import DistributionEndpoint, RunEndpoints, ServerEndpoints
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import Route, routes_of
from surefoot.server.trained_runs import Runs

log = logging.getLogger("surefoot.server")
# A replica answers with an old version for at most this long; checking costs one query per policy.
REFRESH_SECONDS = 1.0


class Copies:
    """Read-only copies of a service's policies, loaded from its directory."""

    def __init__(self, directory: Path, digits: int | None = None) -> None:
        self.directory, self.digits = directory, digits
        self.policies: dict[str, ServedPolicy] = {}
        self._loaded: dict[str, tuple[Any, ServedPolicy]] = {}
        """{key: (its stored form, the policy)}"""
        self._journal: Journal | None = None
        # One refresh at a time: an older one must not overwrite a newer one.
        self._refresh_lock = threading.Lock()

    def refresh(self) -> None:
        """Load new policies and versions. A policy whose new version cannot be read keeps the loaded one."""
        with self._refresh_lock:
            self._journal = self._journal or Journal(self.directory / "decisions.sqlite")
            policies: dict[str, ServedPolicy] = {}
            for entry in self._journal.scan("policy"):
                known, versions = self._loaded.get(entry.id), Versions(self.directory / "policies" / entry.id)
                live = versions.live
                if live is not None and (known is None or known[1].version != live or known[0] != entry.body):
                    try:
                        known = self._loaded[entry.id] = (entry.body, self._load(entry, live))
                    except (SurefootError, OSError) as error:
                        log.warning("version %d of %s could not be read: %s", live, entry.id, error)
                if known is not None:
                    policies[known[1].config.name] = known[1]
            self.policies = policies

    def _load(self, entry: Entry, live: int) -> ServedPolicy:
        serving = read_policy(entry, self.directory)
        # Without a log: a copy does not learn.
        restore(serving, serving.versions.load(live).parts, Log(serving.learner.dim, 1))
        serving.version = serving.newest = live
        return serving

    def find(self, name: str) -> None:
        """Refresh if the service now has a policy of that name."""
        entries = [] if self._journal is None else self._journal.scan("policy")
        if any(entry.body.get("config", {}).get("name") == name for entry in entries):
            self.refresh()

    async def distribution(self, name: str, new: schema.NewDecision) -> schema.Chances:
        """Return the probability of every choice under the loaded version."""
        # It may have been created after the last refresh.
        if name not in self.policies:
            await asyncio.get_running_loop().run_in_executor(None, self.find, name)
        if name not in self.policies:
            raise Refused(
                "unknown", f"unknown policy {name!r}; the service has {', '.join(self.policies) or 'none yet'}"
            )
        return chances_of(self.policies[name], new, self.digits)

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()


class ReadOnlyService:
    """Service of trained runs and copies of policies, which writes nothing."""

    def __init__(self, runs: Runs, copies: Copies | None = None, *, alone: bool = True) -> None:
        self.runs, self.copies, self.alone, self.draining = runs, copies, alone, False
        self._refreshing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load everything, in a thread: importing torch takes seconds."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self.runs.load)
        recurrent = [name for name, policy in self.runs.policies.items() if policy.recurrent]
        # Steps of an episode could reach a process that does not have its state.
        if recurrent and not self.alone:
            raise ConfigError(f"{recurrent[0]} is recurrent, and its state is held in one process; omit --replicas")
        if self.copies is not None:
            await loop.run_in_executor(None, self.copies.refresh)
            self._refreshing = loop.create_task(self._refresh_forever(self.copies))

    async def _refresh_forever(self, copies: Copies) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                await asyncio.get_running_loop().run_in_executor(None, copies.refresh)
            except (SurefootError, OSError) as error:
                # The loaded versions keep answering.
                log.warning("the policies could not be refreshed: %s", error)

    async def close(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._refreshing
        if self.copies is not None:
            self.copies.close()


def read_only_app(runs: Runs, guard: AccessGuard, copies: Copies | None = None, *, alone: bool = True) -> App:
    """Return an app for trained runs and copies of policies; `alone` if no other process serves the same runs."""
    service = ReadOnlyService(runs, copies, alone=alone)

    def routes(app: App) -> list[Route]:
        owners: list[Any] = [ServerEndpoints(service, app), RunEndpoints(runs)]
        if copies is not None:
            owners.append(DistributionEndpoint(copies.distribution))
        return [route for owner in owners for route in routes_of(owner)]

    return App(service, guard, routes=routes)
