"""Outgoing HTTP requests: JSON over POST with retries, no redirects; chat servers; and a test for loopback addresses."""

from __future__ import annotations

import ipaddress
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from surefoot.errors import ConfigError, RewardError

# Timeouts, conflicts, rate limits and gateway errors are temporary; other codes would fail again.
_RETRIED_CODES = (408, 409, 429, 500, 502, 503, 504)


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


class ChatServer:
    """Posts messages to {url}/chat/completions with temperature 0. The key is read from $OPENAI_API_KEY, if it is set.

    Args:
        url: The base URL of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1. Plain HTTP is accepted for this
            machine only.
        model: The server's name of the model.
        max_new_tokens: Length of a reply.
        retries: Further attempts after a temporary error.
        seconds: Timeout per attempt.
    """

    def __init__(
        self, url: str, model: str = "default", *, max_new_tokens: int = 64, retries: int = 3, seconds: float = 60.0
    ) -> None:
        address = urlsplit(url)
        loopback = address.hostname is not None and is_loopback(address.hostname)
        if address.scheme != "https" and not (address.scheme == "http" and loopback):
            raise ConfigError(f"the model's URL is {url!r}; prompts are sent over https or to this machine only")
        self.name, self.url, self.model = f"{model}@{url}", url.rstrip("/"), model
        self.max_new_tokens, self.retries, self.seconds = max_new_tokens, retries, seconds

    @classmethod
    def named(cls, name: str, **options: Any) -> ChatServer:
        """Return the server that [MODEL@]URL names."""
        model, _, url = name.rpartition("@")
        return cls(url, model or "default", **options)

    def complete(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the server's next message in a conversation. Raise `RewardError` if there is none."""
        key = os.environ.get("OPENAI_API_KEY", "")
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [dict(message) for message in messages],
            "temperature": 0,
            "max_tokens": self.max_new_tokens,
        }
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url = f"{self.url}/chat/completions"
        try:
            response = post_json(url, body, headers, seconds=self.seconds, retries=self.retries, again=_RETRIED_CODES)
            content = response["choices"][0]["message"]["content"]
        except urllib.error.HTTPError as error:
            raise RewardError(f"{self.url} answered {error.code} {error.reason}") from error
        except (urllib.error.URLError, TimeoutError, OSError) as error:
            raise RewardError(f"{self.url} could not be reached: {error}") from error
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise RewardError(f"{self.url} did not answer as an OpenAI-compatible server does: {error!r}") from error
        return str(content or "")
