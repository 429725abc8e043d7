"""Who may come in: whoever holds the URL's token, from a page of our own, asking for this machine by its own name."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field


class Refused(Exception):
    """Why a request is not answered."""


def new_token() -> str:
    """Not to be guessed."""
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Looks at a request's head before anything else does. A rebound DNS name fails at Host, another page at Origin."""

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

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Raise unless the request names this machine, and comes from no other site's page."""
        given = headers.get("host", "")
        name, _, port = given.rpartition(":")
        if port != str(self.port) or not is_loopback(name.strip("[]")):
            raise Refused(f"this is 127.0.0.1:{self.port}, not {given[:80]!r}")
        origin = headers.get("origin")
        if origin is not None and origin not in self._own():
            raise Refused(f"a page of {origin[:80]!r} may not ask")

    def check_socket(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> None:
        """For a WebSocket, which a browser opens to any site: the origin must be there."""
        self.check_host(headers)
        if headers.get("origin") not in self._own():
            raise Refused("a WebSocket comes from a page of the studio")
        self.check_cookie(cookies)

    def check_cookie(self, cookies: Mapping[str, str]) -> None:
        """Raise unless the token was shown before."""
        if not self.knows(cookies.get(self.cookie, "")):
            raise Refused("open the address that `surefoot studio` printed; it has the token in it")

    def knows(self, token: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def _own(self) -> set[str]:
        return {f"http://{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]")}
