"""Outgoing HTTP requests: JSON over POST with retries, no redirects; and a test for loopback addresses."""

from __future__ import annotations

import ipaddress
import json
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping
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


def post_json(
    url: str,
    body: Any,
    headers: Mapping[str, str],
    *,
    seconds: float,
    retries: int,
    again: Collection[int],
    largest: int | None = None,
    longest_wait: float = 10.0,
) -> Any:
    """POST a JSON body and return the decoded response. Redirects are refused: they would send a token to another host.

    Retry after the status codes in `again` and after connection errors, waiting at most `longest_wait` seconds between
    two tries; then raise urllib's last error. Read at most `largest` bytes of the response.
    """
    content = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers=content, method="POST")
    opener = urllib.request.build_opener(NoRedirect)
    for tries in range(retries + 1):
        # 0.2, 0.4, 0.8 … seconds: quick after a hiccup, and `longest_wait` bounds it. The server's Retry-After goes first.
        wait = 0.2 * 2**tries
        try:
            with opener.open(request, timeout=seconds) as response:
                return json.loads(response.read(largest))
        except urllib.error.HTTPError as error:
            if error.code not in again or tries == retries:
                raise
            wait = float(error.headers.get("Retry-After") or wait)
        except (urllib.error.URLError, TimeoutError):
            if tries == retries:
                raise
        time.sleep(min(wait, longest_wait))
    raise AssertionError("unreachable")
