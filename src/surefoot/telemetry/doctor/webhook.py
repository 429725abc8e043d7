"""Send alerts to a URL from a background thread, so that a slow receiver never delays the caller."""

from __future__ import annotations

import json
import queue
import sys
import threading
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from surefoot._http import NoRedirect, is_loopback
from surefoot.errors import ConfigError

# Timeout of one request, and of the wait for a free place in the queue at the end.
_SECONDS = 5.0


def checked_url(url: str) -> str:
    """Return `url` if it is https, or http on this machine. Raise `ConfigError` otherwise: alerts are not sent in the clear."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigError(f"--webhook {url!r} is not a URL: {error}") from None
    if (parts.scheme == "https" and host) or (parts.scheme == "http" and is_loopback(host)):
        return url
    raise ConfigError(
        f"--webhook {url!r} is refused; use https://…, or http:// on this machine (127.0.0.1, ::1, localhost)"
    )


class Webhook:
    """Post JSON messages from a background thread. Report a receiver that fails once, on stderr."""

    def __init__(self, url: str) -> None:
        self._url = checked_url(url)
        local = is_loopback(urlsplit(url).hostname or "")
        proxies = [urllib.request.ProxyHandler({})] if local else []
        self._opener = urllib.request.build_opener(NoRedirect, *proxies)
        self._waiting: queue.Queue[dict[str, Any] | None] = queue.Queue(maxsize=1000)
        self._failed = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def send(self, message: dict[str, Any]) -> None:
        """Queue a message; drop it if the queue is full."""
        try:
            self._waiting.put_nowait(message)
        except queue.Full:
            self._warn("1000 messages are queued; newer ones are dropped")

    def close(self) -> None:
        """Wait a few seconds for the queued messages to be sent."""
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
                self._warn(str(error))

    def _warn(self, reason: str) -> None:
        if not self._failed:
            self._failed = True
            print(f"surefoot telemetry watch: the webhook does not accept alerts: {reason}", file=sys.stderr)
