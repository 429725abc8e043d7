"""Tests of `surefoot.server.http.problems`."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from surefoot.server.http.problems import PROBLEMS, Refused


def test_every_status_is_an_error_of_http():
    assert all(HTTPStatus(status) and 400 <= status < 600 for status, _ in PROBLEMS.values())


def test_a_refusal_has_the_status_of_its_kind():
    refused = Refused("rate", "the limit is 5", pointer="/x", headers={"Retry-After": "1"})
    assert (refused.status, refused.title) == (429, "Too many requests")
    assert (str(refused), refused.pointer, refused.headers) == ("the limit is 5", "/x", {"Retry-After": "1"})
    with pytest.raises(KeyError):
        Refused("no such kind", "")
