"""Bodies and heads: what is refused with which status and pointer."""

from __future__ import annotations

import pytest

from server.conftest import ROW

DECIDE = "/v1/policies/greet/decisions"


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
        assert ask.service.policy("greet").decision_count == 0
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
        assert told.headers["allow"] == "GET, POST"


def test_a_body_is_counted_while_it_comes(serving):
    async def story(ask):
        return await ask("POST", DECIDE, b'{"embedding": [' + b"1," * (1 << 20) + b"1]}")

    assert serving(story).status == 413
