"""Who may come in."""

import pytest

from surefoot.server.studio.guard import Guard, Refused, is_loopback

GUARD = Guard(port=8765, token="t" * 24)
OWN = {"host": "127.0.0.1:8765", "origin": "http://127.0.0.1:8765"}


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "[::1]:8765"])
def test_this_machine_by_its_own_names(host: str) -> None:
    GUARD.check_host({"host": host})


@pytest.mark.parametrize("host", ["", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil.example:8765"])
def test_another_name_is_refused(host: str) -> None:
    with pytest.raises(Refused, match="this is 127.0.0.1:8765"):
        GUARD.check_host({"host": host})


def test_another_sites_page_is_refused() -> None:
    with pytest.raises(Refused, match="may not ask"):
        GUARD.check_host(OWN | {"origin": "http://evil.example"})
    with pytest.raises(Refused, match="from a page of the studio"):
        GUARD.check_socket({"host": OWN["host"]}, {GUARD.cookie: GUARD.token})


def test_the_cookie_holds_the_token_and_names_the_port() -> None:
    GUARD.check_socket(OWN, {"surefoot-studio-8765": GUARD.token})
    for cookies in ({}, {"surefoot-studio-8765": "x"}, {"surefoot-studio-1": GUARD.token}):
        with pytest.raises(Refused, match="it has the token in it"):
            GUARD.check_socket(OWN, cookies)


def test_tokens_are_not_repeated_and_loopback_is_known() -> None:
    assert Guard(port=1).token != Guard(port=1).token
    assert is_loopback("127.8.8.8")
    assert not is_loopback("10.0.0.1")
    assert not is_loopback("example.org")
