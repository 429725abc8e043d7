"""A service that learns in this process, and a way to ask its app without a socket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from surefoot.compat.directive023 import Directive023
from surefoot.server.decisions.administration import create
from surefoot.server.decisions.policy_lifecycle import PolicyLifecycle
from surefoot.server.decisions.service import Service
from surefoot.server.http.access import AccessGuard
from surefoot.server.http.app import App

HEAD = {"host": "127.0.0.1:8765", "content-type": "application/json"}
POLICY = {"name": "greet", "actions": ["hello", "bye", "wave"], "embedding_size": 4}
ROW = [1.0, 0.0, 0.5, -1.0]


def times_begun(log: Path) -> int:
    """How often a write-ahead log began anew, by its own header."""
    with log.open("rb") as file:
        return int.from_bytes(file.read(16)[12:], "big")


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Asking:
    """Asks an app; `json` bodies are encoded, bytes are sent as they are."""

    def __init__(self, app: App) -> None:
        self.app, self.service = app, app.service

    async def __call__(self, method: str, path: str, body: Any = None, *, query: str = "", **changes: Any) -> Answer:
        headers = {**HEAD, **{name.replace("_", "-"): value for name, value in changes.items()}}
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent: list[dict[str, Any]] = []
        chunks = [raw[i : i + 65536] for i in range(0, len(raw), 65536)] or [b""]

        async def receive() -> dict[str, Any]:
            chunk = chunks.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(n.lower().encode(), v.encode()) for n, v in headers.items() if v is not None],
            "client": ("127.0.0.1", 5),
        }
        await self.app(scope, receive, send)
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], told, sent[1]["body"])

    async def learned(self, path: str) -> dict[str, Any]:
        """Ask for an update and wait for the job."""
        told = await self("POST", f"{path}/updates", {})
        assert told.status == 202, told.content
        while (job := (await self("GET", f"/v1/jobs/{told.json['job_id']}")).json)["state"] in ("waiting", "running"):
            await asyncio.sleep(0.02)
        return job


@pytest.fixture
def serving(tmp_path):
    """Runs a story told to an app with one policy."""

    def run(story, *, compat=False, policy=POLICY, **guard):
        async def whole():
            service = Service(tmp_path / "d", seed=0)
            lifecycle = PolicyLifecycle(service)
            theirs = Directive023(service, input_dim=4, least=8) if compat else None
            app = App(service, AccessGuard(**guard), extension=theirs, lifecycle=lifecycle)
            await service.start()
            if theirs:
                await theirs.prepare()
            ask = Asking(app)
            try:
                if policy and policy["name"] not in service.policies:
                    from msgspec import convert

                    from surefoot.server.schema import NewPolicy

                    made = {name: value for name, value in policy.items() if name != "settings"}
                    training = {"automatic": False, "settings": policy.get("settings", {})}
                    await create(service, convert({**made, "training": training}, NewPolicy))
                return await story(ask)
            finally:
                await service.close()

        return asyncio.run(whole())

    return run
