"""Who may ask: tokens and scopes, hosts and origins, and how often."""

from __future__ import annotations

import pytest

from server.conftest import ROW
from surefoot.errors import ConfigError
from surefoot.server.http.access import AccessGuard, read_tokens

DECIDE = "/v1/policies/greet/decisions"


def test_own_pages_and_named_sites_may_ask(serving):
    async def story(ask):
        own = await ask("POST", DECIDE, {"embedding": ROW}, origin="http://localhost:8765")
        named = await ask("POST", DECIDE, {"embedding": ROW}, origin="https://app.example")
        return own.status, named.status

    assert serving(story, origins=("https://app.example",)) == (200, 200)


def test_a_browser_is_told_that_a_named_site_may_ask(serving):
    async def story(ask):
        site, other = "https://app.example", "https://evil.example"
        before = await ask("OPTIONS", DECIDE, origin=site)
        told = await ask("POST", DECIDE, {"embedding": ROW}, origin=site)
        foreign = await ask("OPTIONS", DECIDE, origin=other)
        return before, told, foreign

    before, told, foreign = serving(story, origins=("https://app.example",))
    assert before.status == 204
    assert before.headers["access-control-allow-headers"] == "authorization, content-type, idempotency-key"
    assert (told.status, told.headers["access-control-allow-origin"]) == (200, "https://app.example")
    assert told.headers["vary"] == "Origin"
    assert foreign.status == 405
    assert "access-control-allow-origin" not in foreign.headers


def test_tokens_have_scopes(serving):
    tokens = {"d" * 16: frozenset({"decide"}), "r" * 16: frozenset({"read"}), "a" * 16: frozenset({"admin"})}

    async def story(ask):
        async def status(method, path, body, token):
            head = {} if token is None else {"authorization": f"Bearer {token}"}
            return (await ask(method, path, body, **head)).status

        wish = {"embedding": ROW}
        return [
            await status("GET", "/healthz", None, None),
            await status("POST", DECIDE, wish, None),
            await status("POST", DECIDE, wish, "x" * 16),
            await status("POST", DECIDE, wish, "d" * 16),
            await status("POST", DECIDE, wish, "r" * 16),
            await status("GET", "/v1/policies", None, "d" * 16),
            await status("GET", "/v1/policies", None, "r" * 16),
            await status("POST", "/v1/policies/greet/rollback", None, "d" * 16),
            await status("POST", "/v1/policies/greet/rollback", None, "a" * 16),
        ]

    assert serving(story, tokens=tokens) == [200, 401, 401, 200, 403, 403, 200, 403, 409]


def test_others_are_served_only_with_a_token(tmp_path):
    with pytest.raises(ConfigError, match="--token-file"):
        AccessGuard(host="0.0.0.0")
    with pytest.raises(ConfigError, match=r"not allowed"):
        AccessGuard(origins=("*",))
    tokens = tmp_path / "tokens"
    tokens.write_text("# who may\n" + "k" * 32 + " decide,read\n")
    assert read_tokens(tokens) == {"k" * 32: frozenset({"decide", "read"})}
    for text, why in (("short\n", "16 characters"), ("k" * 20 + " fly\n", "fly"), ("", "no token")):
        tokens.write_text(text)
        with pytest.raises(ConfigError, match=why):
            read_tokens(tokens)


def test_who_asks_too_often_is_told_when_to_come_back(serving):
    now = [0.0]

    async def story(ask):
        told = [(await ask("GET", "/v1/policies")).status for _ in range(5)]
        late = await ask("GET", "/v1/policies")
        now[0] += 1.0
        return told, late, (await ask("GET", "/v1/policies")).status

    told, late, again = serving(story, per_second=4.0, clock=lambda: now[0])
    assert told == [200, 200, 200, 200, 429]
    assert int(late.headers["retry-after"]) >= 1
    assert again == 200
