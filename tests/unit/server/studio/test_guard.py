"""Who may open a tab."""

import pytest

from surefoot.server.http.problems import Refused
from surefoot.server.studio.guard import TabGuard, stored_token

GUARD = TabGuard(port=8765, token="t" * 24)
HOST, ORIGIN = (b"host", b"127.0.0.1:8765"), (b"origin", b"http://127.0.0.1:8765")


@pytest.mark.parametrize("host", [b"127.0.0.1:8765", b"localhost:8765", b"[::1]:8765"])
def test_this_machine_by_its_own_names(host: bytes) -> None:
    GUARD.check_host([(b"host", host)])


@pytest.mark.parametrize("host", [b"", b"evil.example:8765", b"127.0.0.1.evil.example:8765"])
def test_another_name_is_refused(host: bytes) -> None:
    with pytest.raises(Refused, match=r"this server is 127\.0\.0\.1:8765"):
        GUARD.check_host([(b"host", host)])


def test_another_sites_page_is_refused() -> None:
    for other in (b"http://evil.example", b"http://127.0.0.1:9999"):
        with pytest.raises(Refused, match="is not allowed; open the address that `surefoot studio` printed"):
            GUARD.check_host([HOST, (b"origin", other)])
    with pytest.raises(Refused, match="from the studio's page"):
        GUARD.check_socket([HOST], {GUARD.cookie: GUARD.token})


def test_the_cookie_holds_the_token_and_names_the_port() -> None:
    GUARD.check_socket([HOST, ORIGIN], {"surefoot-studio-8765": GUARD.token})
    for cookies in ({}, {"surefoot-studio-8765": "x"}, {"surefoot-studio-1": GUARD.token}):
        with pytest.raises(Refused, match="it contains the token"):
            GUARD.check_socket([HOST, ORIGIN], cookies)


def test_tokens_are_not_repeated() -> None:
    assert TabGuard(port=1).token != TabGuard(port=1).token


def test_a_directory_keeps_its_token_unless_others_can_read_it(tmp_path) -> None:
    token = stored_token(tmp_path)
    file = tmp_path / "graphs" / ".token"
    assert file.stat().st_mode & 0o777 == 0o600
    assert stored_token(tmp_path) == token
    file.chmod(0o644)
    assert stored_token(tmp_path) != token
    file.write_text("short")
    assert len(stored_token(tmp_path)) == 32
