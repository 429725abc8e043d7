"""Access to the studio: the token of the printed URL, and the Host and Origin checks of `surefoot serve`."""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from surefoot.server.http.access import AccessGuard
from surefoot.server.http.problems import Refused

PRINTED = "open the address that `surefoot studio` printed"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(24)


def stored_token(directory: Path) -> str:
    """Return the token of a studio's directory, created at the first start: tabs reconnect after a restart.

    Only the owner may read the file; one with other permissions or contents is replaced.
    """
    file = directory / "graphs" / ".token"
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_file() and not file.is_symlink() and file.stat().st_mode & 0o077 == 0:
        token = file.read_text(encoding="utf-8").strip()
        if _TOKEN.fullmatch(token):
            return token
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(token := new_token())
    return token


@dataclass(frozen=True, slots=True, kw_only=True)
class TabGuard:
    """Host and Origin checks on loopback, and a token that is exchanged for a cookie."""

    port: int
    token: str = field(default_factory=new_token)

    @property
    def cookie(self) -> str:
        """The cookie's name; it includes the port, as browsers share cookies between the ports of a host."""
        return f"surefoot-studio-{self.port}"

    @property
    def url(self) -> str:
        """The address to open in the browser."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def check_host(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raise `Refused` unless the request names this machine and comes from no other site's page."""
        AccessGuard(port=self.port, other_origin=PRINTED).check("/", dict(headers), "", "read")

    def check_socket(self, headers: Iterable[tuple[bytes, bytes]], cookies: Mapping[str, str]) -> None:
        """Check a WebSocket. It must have an Origin: browsers open WebSockets to any site."""
        if b"origin" not in dict(headers := list(headers)):
            raise Refused("origin", "the WebSocket has no Origin; open it from the studio's page")
        self.check_host(headers)
        self.check_cookie(cookies)

    def check_cookie(self, cookies: Mapping[str, str]) -> None:
        """Raise `Refused` unless the cookie holds the token."""
        if not self.is_token(cookies.get(self.cookie, "")):
            raise Refused("forbidden", f"{PRINTED}; it contains the token")

    def is_token(self, token: str) -> bool:
        """Return whether this is the token."""
        return hmac.compare_digest(token.encode(), self.token.encode())
