"""The blocking client against small services that answer, drop and refuse as they are told."""

import time
from typing import Any

import pytest

from surefoot.client import (
    Conflict,
    ConnectionFailed,
    Surefoot,
    TimedOut,
    Unavailable,
)

from .conftest import DECISION


def test_a_retry_is_the_same_decision(fakes: Any) -> None:
    fake = fakes(lambda n, body: None if n < 3 else (200, {}, DECISION))
    assert Surefoot(fake.url).decide("p", text="hello").name == "bye"
    assert len(fake.bodies) == 3
    assert len({body["decision_id"] for body in fake.bodies}) == 1


def test_what_must_not_be_done_twice_is_not_tried_twice(fakes: Any) -> None:
    fake = fakes(lambda n, body: None)
    with pytest.raises(ConnectionFailed, match="cannot reach"):
        Surefoot(fake.url).rollback("p")
    assert len(fake.bodies) == 1


def test_a_long_retry_after_is_capped(fakes: Any) -> None:
    fake = fakes(lambda n, body: (503, {"Retry-After": "259200"}, {"detail": "not now"}))
    begin = time.monotonic()
    with pytest.raises(Unavailable) as caught:
        Surefoot(fake.url, max_retry_after=0.02).health()
    assert caught.value.retry_after == 259200
    assert len(fake.bodies) == 3
    assert time.monotonic() - begin < 30.0


def test_conflicts_are_not_tried_again(fakes: Any) -> None:
    fake = fakes(lambda n, body: (409, {}, {"detail": "told before"}))
    with pytest.raises(Conflict, match="told before"):
        Surefoot(fake.url).reward("d1", 1.0)
    assert len(fake.bodies) == 1


def test_a_service_that_never_answers_is_given_up(fakes: Any) -> None:
    fake = fakes(lambda n, body: time.sleep(0.3))
    with pytest.raises(TimedOut, match="within 0.05 s"):
        Surefoot(fake.url, timeout=0.05, max_retries=1).health()


def test_a_token_is_sent_and_names_are_quoted(fakes: Any) -> None:
    fake = fakes(lambda n, body: (200, {}, []))
    Surefoot(fake.url, token="secret").policies()
    assert fake.heads[0]["Authorization"] == "Bearer secret"
    with pytest.raises(ValueError, match="base_url is 'localhost'"):
        Surefoot("localhost")


def test_a_connection_that_was_idle_is_made_anew(fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fakes(lambda n, body: (200, {}, {"status": "ok"}))
    client = Surefoot(fake.url)
    client.health()
    first = client._local.connection
    client.health()
    assert client._local.connection is first
    monkeypatch.setattr("surefoot.client.synchronous.IDLE", 0.0)
    client.health()
    assert client._local.connection is not first
