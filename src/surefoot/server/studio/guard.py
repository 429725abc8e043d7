"""Who may open a tab: whoever holds the URL's token. What `surefoot serve` refuses by Host and Origin is refused here too."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from surefoot.server.http.access import AccessGuard
from surefoot.server.http.problems import Refused


def new_token() -> str:
    """Not to be guessed."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True, kw_only=True)
class TabGuard:
    """The server's guard on loopback, and a token that is shown once and is a cookie from then on."""

    port: int
    token: str = field(default_factory=new_token)

    @property
    def cookie(self) -> str:
        """Its name; cookies know hosts but no ports, so the port is part of it."""
        return f"surefoot-studio-{self.port}"

    @property
    def url(self) -> str:
        """What is opened in the browser."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def check_host(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raise unless the request names this machine, and comes from no other site's page."""
        AccessGuard(port=self.port).check("/", dict(headers), "", "read")

    def check_socket(self, headers: Iterable[tuple[bytes, bytes]], cookies: Mapping[str, str]) -> None:
        """For a WebSocket, which a browser opens to any site: the origin must be there."""
        given = dict(headers)
        self.check_host(given.items())
        if b"origin" not in given:
            raise Refused("origin", "a WebSocket comes from a page of the studio")
        self.check_cookie(cookies)

    def check_cookie(self, cookies: Mapping[str, str]) -> None:
        """Raise unless the token was shown before."""
        if not self.knows(cookies.get(self.cookie, "")):
            raise Refused("forbidden", "open the address that `surefoot studio` printed; it has the token in it")

    def knows(self, token: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(token.encode(), self.token.encode())
