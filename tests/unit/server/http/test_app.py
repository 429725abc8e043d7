"""The app: idempotency keys, the audit log, unforeseen errors, draining."""

from __future__ import annotations

from server.conftest import ROW

DECIDE = "/v1/policies/greet/decisions"


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


def test_an_unforeseen_error_is_a_problem_without_a_traceback(serving, monkeypatch):
    async def story(ask):
        def broken(*_):
            raise RuntimeError("secret")

        monkeypatch.setattr("surefoot.server.decisions.administration.describe", broken)
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
