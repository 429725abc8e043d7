"""Read-only copies of a service's policies: what they know of the one that writes, and when."""

from __future__ import annotations

import pytest

from surefoot.server.http.access import AccessGuard
from surefoot.server.read_only import Copies, read_only_app
from surefoot.server.trained_runs import Runs

from .conftest import POLICY, ROW, Asking

LOOK, SEEN = "/v1/policies/greet/distribution", {"embedding": ROW}


@pytest.fixture
def beside(serving, tmp_path, monkeypatch):
    """Tells a story to a service and to a copy of it that began before there was a policy, and never looks by itself."""
    monkeypatch.setattr("surefoot.server.read_only.REFRESH_SECONDS", 3600.0)

    def run(story):
        async def both(ask):
            app = read_only_app(Runs([]), AccessGuard(), copies := Copies(tmp_path / "d"))
            await app.start()
            try:
                await story(ask, Asking(app), copies)
            finally:
                await app.service.close()

        serving(both, policy=None)

    return run


def test_a_policy_that_was_acknowledged_is_known_to_every_copy_at_once(beside):
    async def story(writer, reader, copies):
        assert (await reader("POST", LOOK, SEEN)).status == 404
        assert (await writer("POST", "/v1/policies", POLICY)).status == 201
        there = await reader("POST", LOOK, SEEN)
        assert there.status == 200
        assert there.json == (await writer("POST", LOOK, SEEN)).json

    beside(story)


def test_a_name_that_nobody_has_makes_a_copy_read_nothing_again(beside):
    async def story(writer, reader, copies):
        await writer("POST", "/v1/policies", POLICY)
        await reader("POST", LOOK, SEEN)
        known = copies.policies
        answer = await reader("POST", LOOK.replace("greet", "nobody"), SEEN)
        assert answer.status == 404
        assert answer.json["detail"] == "unknown policy 'nobody'; the service has greet"
        assert copies.policies is known

    beside(story)


def test_a_policy_that_cannot_be_read_is_not_there_and_the_others_go_on(beside, tmp_path):
    async def story(writer, reader, copies):
        await writer("POST", "/v1/policies", POLICY)
        await writer("POST", "/v1/policies", POLICY | {"name": "torn"})
        for file in (tmp_path / "d/policies/torn").rglob("*.safetensors"):
            file.write_bytes(b"")
        assert (await reader("POST", LOOK.replace("greet", "torn"), SEEN)).status == 404
        assert (await reader("POST", LOOK, SEEN)).status == 200

    beside(story)
