"""What every outgoing HTTP request of this package needs: refuse redirects, and recognise this machine's addresses."""

from __future__ import annotations

import ipaddress
import urllib.request
from functools import lru_cache
from typing import Any


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuse redirects: a response must not send data to an address that was not checked."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return True if `host` is a name or an address of this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
