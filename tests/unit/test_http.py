"""Which hosts are this machine, and that redirects are refused."""

from __future__ import annotations

import pytest

from surefoot._http import NoRedirect, is_loopback


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.10", "::1"])
def test_loopback_names_and_addresses_are_this_machine(host: str):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "example.org", "localhost.example.org", "", "::2"])
def test_everything_else_is_not(host: str):
    assert not is_loopback(host)


def test_a_redirect_makes_no_second_request():
    assert NoRedirect().redirect_request(None, None, 302, "Found", {}, "http://elsewhere/") is None
