"""The service as HTTP sees it: what is answered, and what is refused with which status."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from server.conftest import ROW
from surefoot.errors import ConfigError
from surefoot.server.http.access import Guard, read_tokens
from surefoot.server.http.endpoints import described_routes
from surefoot.server.http.openapi import described

DECIDE = "/v1/policies/greet/decisions"


def test_the_whole_loop(serving):
    async def story(ask):
        for i in range(8):
            made = await ask("POST", DECIDE, {"decision_id": f"d{i}", "embedding": ROW})
            assert made.status == 200
            told = await ask("POST", f"/v1/decisions/d{i}/reward", {"value": float(made.json["action"] == 1)})
            assert (told.status, told.json["status"]) == (200, "stored")
        job = await ask.learned("/v1/policies/greet")
        policy = (await ask("GET", "/v1/policies/greet")).json
        versions = (await ask("GET", "/v1/policies/greet/versions")).json["versions"]
        listed = (await ask("GET", "/v1/policies")).json
        return job, policy, versions, listed

    job, policy, versions, listed = serving(story)
    assert (job["state"], job["result"]["version"]) == ("done", 1)
    assert (policy["version"], policy["decisions"], policy["rewards"]) == (1, 8, 8)
    assert [v["version"] for v in versions] == [1, 0]
    assert listed == [policy]


def test_an_update_is_in_the_policys_record(serving, tmp_path):
    async def story(ask):
        for i in range(8):
            await ask("POST", DECIDE, {"decision_id": f"d{i}", "embedding": ROW})
            await ask("POST", f"/v1/decisions/d{i}/reward", {"value": 0.5})
        await ask.learned("/v1/policies/greet")

    serving(story)
    lines = [json.loads(x) for x in (tmp_path / "d/policies/greet/telemetry.ndjson").read_text().splitlines()]
    (update,) = [x for x in lines if x["kind"] == "update"]
    assert (update["env_steps"], update["updates"], update["m"]["reward_mean"]) == (8, 1, 0.5)
    assert sum(x for name, x in update["m"].items() if name.startswith("action_share")) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        (b"{not json", 400, None),
        (b'{"embedding": [NaN, 0, 0, 0]}', 400, None),
        (b'{"embedding": [1e999, 0, 0, 0]}', 422, "/embedding/0"),
        (b'{"embedding": [' + b"1" * 5000 + b", 0, 0, 0]}", 422, "/embedding/0"),
        (b"[" * 40 + b"]" * 40, 400, None),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 400, None),
        (b'{"embedding": [1, 0, 0, "2"]}', 422, "/embedding/3"),
        (b'{"embedding": [true, 0, 0, 0]}', 422, "/embedding/0"),
        (b'{"embedding": [1, 0, 0]}', 422, "/embedding"),
        (b'{"embedding": []}', 422, "/embedding"),
        (b'{"embedding": [1e12, 0, 0, 0]}', 422, "/embedding/0"),
        (b'{"embedding": [1, 0, 0, 0], "colour": "red"}', 422, "/"),
        (b'{"embedding_b64": "!!!"}', 422, "/embedding_b64"),
        (b'{"embedding_b64": "AAAA"}', 422, "/embedding_b64"),
        (b'{"embedding": [1, 0, 0, 0], "mask": [true]}', 422, "/mask"),
        (b'{"embedding": [1, 0, 0, 0], "decision_id": "../x"}', 422, "/decision_id"),
        (b'{"embedding": [1, 0, 0, 0], "decision_id": "x\\n"}', 422, "/decision_id"),
        (b'{"decision_id": "\xff\xfe", "embedding": [1, 0, 0, 0]}', 400, None),
        (b"[]", 422, "/"),
        (b"", 422, "/"),
    ],
)
def test_what_a_body_cannot_say(serving, body, status, pointer):
    async def story(ask):
        told = await ask("POST", DECIDE, body)
        assert ask.service.policy("greet").made == 0
        return told

    told = serving(story)
    assert (told.status, told.json["status"]) == (status, status)
    assert told.headers["content-type"] == "application/problem+json"
    assert told.json["type"].startswith("about:surefoot/")
    assert told.json["request_id"] == told.headers["x-request-id"]
    assert pointer is None or told.json["pointer"] == pointer
    assert "Traceback" not in told.content.decode()


def test_of_two_keys_the_last_counts(serving):
    async def story(ask):
        return await ask("POST", DECIDE, b'{"embedding": [9, 9], "embedding": [1, 0, 0, 0]}')

    assert serving(story).status == 200


@pytest.mark.parametrize(
    ("method", "path", "changes", "status"),
    [
        ("POST", DECIDE, {"content_type": "text/plain"}, 415),
        ("POST", DECIDE, {"content_type": None}, 415),
        ("POST", DECIDE, {"accept": "image/png"}, 406),
        ("DELETE", DECIDE, {}, 405),
        ("GET", "/v1/nothing", {}, 404),
        ("GET", "/v1/policies/nobody", {}, 404),
        ("GET", "/v1/policies/..", {}, 404),
        ("GET", "/v1/jobs/none", {}, 404),
        ("GET", "/v1/decisions/none", {}, 404),
        ("POST", "/v1/checkpoints/..%2f/activate", {}, 422),
        ("POST", "/v1/checkpoints/none/activate", {}, 404),
        ("POST", DECIDE, {"host": "evil.example"}, 421),
        ("POST", DECIDE, {"host": None}, 421),
        ("POST", DECIDE, {"origin": "http://evil.example"}, 403),
        ("POST", DECIDE, {"content_length": "99999999"}, 413),
    ],
)
def test_what_is_refused_before_the_body_is_read(serving, method, path, changes, status):
    async def story(ask):
        return await ask(method, path, {"embedding": ROW}, **changes)

    told = serving(story)
    assert told.status == status
    assert "access-control-allow-origin" not in told.headers
    if status == 405:
        assert told.headers["allow"] == "POST"


def test_a_body_is_counted_while_it_comes(serving):
    async def story(ask):
        return await ask("POST", DECIDE, b'{"embedding": [' + b"1," * (1 << 20) + b"1]}")

    assert serving(story).status == 413


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
        Guard(host="0.0.0.0")
    with pytest.raises(ConfigError, match=r"never \*"):
        Guard(origins=("*",))
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


def test_a_request_with_the_same_idempotency_key_is_the_same_request(serving):
    async def story(ask):
        wish, path = {"embedding": ROW}, "/v1/decisions/k1/reward"
        first, again = [(await ask("POST", DECIDE, wish, idempotency_key='"k1"')).json for _ in range(2)]
        other = await ask("POST", DECIDE, {"embedding": [0.0] * 4}, idempotency_key="k1")
        both = await ask("POST", DECIDE, {**wish, "decision_id": "k3"}, idempotency_key="k2")
        bad = await ask("POST", DECIDE, wish, idempotency_key="../x")
        told = [(await ask("POST", path, {"value": 1}, idempotency_key="r1")).json["status"] for _ in range(2)]
        update = [await ask("POST", "/v1/policies/greet/updates", {"least": 1}, idempotency_key="u1") for _ in range(2)]
        elsewhere = await ask("POST", "/v1/policies/greet/updates", {"least": 2}, idempotency_key="u1")
        return first, again, [other.status, both.status, bad.status], told, update, elsewhere.status

    first, again, statuses, told, update, elsewhere = serving(story)
    assert first == again
    assert first["decision_id"] == "k1"
    assert statuses == [409, 422, 422]
    assert told == ["stored", "replayed"]
    assert [u.status for u in update] == [202, 202]
    assert update[0].json["job_id"] == update[1].json["job_id"]
    assert elsewhere == 409


def test_every_choices_probability_takes_a_scope_of_its_own(serving):
    tokens = {"d" * 16: frozenset({"decide"}), "x" * 16: frozenset({"decide", "distribution"})}

    async def story(ask):
        async def status(path, body, token):
            return (await ask("POST", path, body, authorization=f"Bearer {token}")).status

        wish, look = {"embedding": ROW}, "/v1/policies/greet/distribution"
        return [
            await status(look, wish, "d" * 16),
            await status(DECIDE, {**wish, "distribution": True}, "d" * 16),
            await status(f"{DECIDE}/batch", {"decisions": [wish, {**wish, "distribution": True}]}, "d" * 16),
            await status(look, wish, "x" * 16),
            await status(DECIDE, {**wish, "distribution": True}, "x" * 16),
        ]

    assert serving(story, tokens=tokens) == [403, 403, 403, 200, 200]


def test_looking_at_the_distribution_decides_nothing(serving):
    async def story(ask):
        told = (
            await ask("POST", "/v1/policies/greet/distribution", {"embedding": ROW, "mask": [True, False, True]})
        ).json
        return told, ask.service.policy("greet").made

    told, made = serving(story)
    assert made == 0
    assert told["names"] == ["hello", "bye", "wave"]
    assert (told["distribution"][1], sum(told["distribution"])) == (0.0, pytest.approx(1.0))


def test_who_changes_something_is_in_the_log_without_what_was_seen(serving, caplog):
    tokens = {"t" * 16: frozenset({"admin"})}

    async def story(ask):
        with caplog.at_level("INFO", logger="surefoot.server"):
            await ask("POST", "/v1/policies/greet/checkpoints", {}, authorization="Bearer " + "t" * 16)
            await ask("POST", DECIDE, {"embedding": ROW}, authorization="Bearer " + "u" * 16)
            await ask("POST", DECIDE, {"embedding": ROW}, authorization="Bearer " + "t" * 16)

    serving(story, tokens=tokens)
    lines = [record.getMessage() for record in caplog.records if "audit" in record.getMessage()]
    assert len(lines) == 2
    assert "/checkpoints" in lines[0]
    assert ": 401" in lines[1]
    assert not any("t" * 16 in line or "0.5" in line for line in lines)


def test_rewards_answer_as_documented(serving):
    async def story(ask):
        await ask("POST", DECIDE, {"decision_id": "x", "embedding": ROW})

        async def status(id, body):
            return (await ask("POST", f"/v1/decisions/{id}/reward", body)).status

        return [
            await status("nobody", {"value": 1}),
            await status("x", {"value": 2}),
            await status("x", {}),
            await status("x", {"value": 1}),
            await status("x", {"value": 1}),
            await status("x", {"value": 0.5}),
        ]

    assert serving(story) == [404, 422, 422, 200, 200, 409]


def test_many_decisions_are_made_together_or_not_at_all(serving):
    async def story(ask):
        raw = base64.b64encode(np.array(ROW, "<f4").tobytes()).decode()
        good = await ask("POST", f"{DECIDE}/batch", {"decisions": [{"embedding_b64": raw}] * 3})
        bad = await ask("POST", f"{DECIDE}/batch", {"decisions": [{"embedding": ROW}, {"embedding": [1]}]})
        return good, bad, ask.service.policy("greet").made

    good, bad, made = serving(story)
    assert len({d["decision_id"] for d in good.json["decisions"]}) == 3
    assert (bad.status, bad.json["pointer"], made) == (422, "/decisions/1/embedding", 3)


def test_an_unforeseen_error_is_a_problem_without_a_traceback(serving, monkeypatch):
    async def story(ask):
        def broken(*_):
            raise RuntimeError("secret")

        monkeypatch.setattr(ask.service, "describe", broken)
        told = await ask("GET", "/v1/policies")
        return told, (await ask("GET", "/healthz")).status

    told, after = serving(story)
    assert (told.status, after) == (500, 200)
    assert "secret" not in told.content.decode()


def test_while_it_drains_it_says_so(serving):
    async def story(ask):
        ask.service.draining = True
        told = await ask("POST", DECIDE, {"embedding": ROW})
        return told.status, told.headers["retry-after"], (await ask("GET", "/readyz")).status

    assert serving(story) == (503, "5", 503)


def test_prometheus_reads_the_counters(serving):
    async def story(ask):
        await ask("POST", DECIDE, {"embedding": ROW})
        return (await ask("GET", "/metrics")).content.decode()

    text = serving(story)
    assert 'surefoot_decisions_total{policy="greet"} 1' in text
    assert 'surefoot_requests_total{path="/v1/policies/{policy}/decisions",status="200"} 1' in text
    assert all(line.startswith(("#", "surefoot_")) for line in text.splitlines())


def test_openapi_describes_every_route_and_every_answer(serving):
    async def story(ask):
        return (await ask("GET", "/openapi.json")).json

    told = serving(story)
    assert told == json.loads(json.dumps(described(described_routes(), secured=False)))
    assert described(described_routes())["security"] == [{"token": []}]
    assert told["openapi"] == "3.1.0"
    decide = told["paths"]["/v1/policies/{policy}/decisions"]["post"]
    assert decide["operationId"] == "decide"
    assert {"200", "400", "401", "404", "409", "413", "415", "422", "507"} <= decide["responses"].keys()
    assert told["components"]["schemas"]["NewDecision"]["additionalProperties"] is False
