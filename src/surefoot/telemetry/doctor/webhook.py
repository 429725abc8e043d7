"""Alerts sent to a URL, without ever holding up the one who watches."""

from __future__ import annotations

import ipaddress
import json
import queue
import sys
import threading
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from surefoot.cli.usage import Usage

_SECONDS = 5.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An answer must not lead to where the URL was not allowed to."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def checked_url(url: str) -> str:
    """The URL if it is https, or http on this machine; alerts go nowhere else in the clear."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise Usage(f"--webhook {url!r} is no URL: {error}") from None
    if parts.scheme == "https" and host:
        return url
    if parts.scheme == "http" and is_loopback(host):
        return url
    raise Usage(
        f"--webhook {url!r} is refused; https://…, or http:// on this machine (127.0.0.1, ::1, localhost), works"
    )


def is_loopback(host: str) -> bool:
    """True for this machine's own names."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Webhook:
    """Posts JSON from a thread of its own; a hook that does not answer is told once and costs nothing more."""

    def __init__(self, url: str) -> None:
        self._url = checked_url(url)
        own = is_loopback(urlsplit(url).hostname or "")
        proxies = [urllib.request.ProxyHandler({})] if own else []
        self._opener = urllib.request.build_opener(_NoRedirect, *proxies)
        self._waiting: queue.Queue[dict[str, Any] | None] = queue.Queue(maxsize=1000)
        self._told = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def send(self, message: dict[str, Any]) -> None:
        """Queue a message; dropped if a thousand wait already."""
        try:
            self._waiting.put_nowait(message)
        except queue.Full:
            self._complain("a thousand messages wait; newer ones are dropped")

    def close(self) -> None:
        """Wait a moment for what is still to be sent."""
        try:
            self._waiting.put(None, timeout=_SECONDS)
        except queue.Full:
            return
        self._thread.join(2 * _SECONDS)

    def _work(self) -> None:
        while (message := self._waiting.get()) is not None:
            body = json.dumps(message).encode()
            request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"}, method="POST")
            try:
                with self._opener.open(request, timeout=_SECONDS):
                    pass
            except (OSError, ValueError, urllib.error.HTTPError) as error:
                self._complain(str(error))

    def _complain(self, why: str) -> None:
        if not self._told:
            self._told = True
            print(f"surefoot telemetry watch: the webhook does not take alerts: {why}", file=sys.stderr)
