"""The exceptions of the client."""

from typing import Any

import pytest

from surefoot.client import (
    Invalid,
    StatusError,
    Surefoot,
)
from surefoot.errors import SurefootError


def test_an_error_is_of_its_status_and_has_the_problems_fields(fakes: Any) -> None:
    problem = {
        "type": "about:surefoot/invalid",
        "title": "T",
        "detail": "2 numbers",
        "pointer": "/x",
        "request_id": "r",
    }
    fake = fakes(lambda n, body: (422, {}, problem))
    with pytest.raises(Invalid, match=r"422: 2 numbers \(at /x\)") as caught:
        Surefoot(fake.url).decide("p", text="hello")
    assert (caught.value.type, caught.value.pointer, caught.value.request_id) == (problem["type"], "/x", "r")
    assert isinstance(caught.value, StatusError)
    assert isinstance(caught.value, SurefootError)
    assert len(fake.bodies) == 1


def test_an_error_without_a_reason_still_says_its_status() -> None:
    assert str(StatusError(418, {})) == "418: no reason given"
    assert str(StatusError(500, {"error": "Not found"})) == "500: Not found"
    assert str(StatusError(422, {"title": "T", "pointer": "/x"})) == "422: T (at /x)"
