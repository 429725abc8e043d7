"""Bodies and responses of the client as they go over the wire."""

import base64
from typing import Any

import numpy as np
import pytest

from surefoot.client import (
    Surefoot,
    Unavailable,
)
from surefoot.client.bodies import query_string
from surefoot.errors import SurefootError

from .conftest import DECISION


def test_an_id_that_is_given_is_kept(fakes: Any) -> None:
    fake = fakes(lambda n, body: (200, {}, DECISION))
    Surefoot(fake.url).decide("p", text="hello", decision_id="mine")
    assert fake.bodies[0] == {"text": "hello", "decision_id": "mine"}


def test_arrays_go_as_base64_and_lists_as_numbers(fakes: Any) -> None:
    fake = fakes(lambda n, body: (200, {}, DECISION))
    client = Surefoot(fake.url)
    for row in (np.array([1.5, -2.0], np.float32), np.array([1.5, -2.0])):
        client.decide("p", embedding=row)
        assert np.frombuffer(base64.b64decode(fake.bodies[-1]["embedding_b64"]), "<f4").tolist() == [1.5, -2.0]
    client.decide("p", embedding=[1.5, -2.0])
    assert fake.bodies[-1]["embedding"] == [1.5, -2.0]


def test_a_retry_after_may_be_a_date(fakes: Any) -> None:
    fake = fakes(lambda n, body: (503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, {}))
    with pytest.raises(Unavailable) as caught:
        Surefoot(fake.url, max_retries=0).health()
    assert caught.value.retry_after == 0.0


def test_fields_of_a_newer_service_are_passed_over(fakes: Any) -> None:
    explained = {
        "decision": {**DECISION, "mood": "fine"},
        "distribution": [0.5, 0.5],
        "names": ["a", "b"],
        "prior": 0.5,
        "learned": 0.0,
        "exploration": 0.5,
        "nearest": [{"decision_id": "d0", "name": "a", "reward": 1.0, "likeness": 1.0, "colour": "red"}],
        "weather": "rain",
    }
    fake = fakes(lambda n, body: (200, {}, explained))
    assert Surefoot(fake.url).explain("d1").nearest[0].reward == 1.0


def test_an_answer_of_another_kind_is_an_error(fakes: Any) -> None:
    fake = fakes(lambda n, body: (200, {}, {"hello": 1}))
    with pytest.raises(SurefootError, match="not a Decision"):
        Surefoot(fake.url).decide("p", text="hello")


def test_a_policy_is_changed_listed_and_deleted(fakes: Any) -> None:
    deleted = {"policy": "p", "decisions": 3}
    fake = fakes(lambda n, body: (200, {}, deleted))
    client = Surefoot(fake.url)
    # The fake answers GET and POST only: these are sent with other methods.
    with pytest.raises(SurefootError, match="501"):
        client.delete_policy("p")
    with pytest.raises(SurefootError, match="501"):
        client.change_policy("p", frozen=True)
    assert "decisions" in client.export_csv("p", limit=5)


def test_a_query_is_part_of_the_address() -> None:
    assert query_string({"limit": 5, "rewarded": True}) == "?limit=5&rewarded=true"
    assert query_string({}) == ""
