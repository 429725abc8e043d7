"""Replies of a language model behind any OpenAI-compatible server."""

from __future__ import annotations

import os
import urllib.error
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from surefoot._http import is_loopback, post_json
from surefoot.errors import ConfigError, RewardError

# Timeouts, conflicts, rate limits and gateway errors are temporary; other codes would fail again.
_RETRIED_CODES = (408, 409, 429, 500, 502, 503, 504)


class ChatModel:
    """Posts prompts to {url}/chat/completions with temperature 0. The key is read from $OPENAI_API_KEY, if it is set.

    Args:
        url: The server's base URL, such as http://127.0.0.1:8000/v1. Plain HTTP is accepted for this machine only.
        model: The server's name of the model.
        max_new_tokens: Length of a reply.
        retries: Further attempts after a temporary error.
        seconds: Timeout per attempt.
    """

    likelihoods = False

    def __init__(
        self, url: str, model: str = "default", *, max_new_tokens: int = 64, retries: int = 3, seconds: float = 60.0
    ) -> None:
        address = urlsplit(url)
        loopback = address.hostname is not None and is_loopback(address.hostname)
        if address.scheme != "https" and not (address.scheme == "http" and loopback):
            raise ConfigError(f"the model's URL is {url!r}; prompts are sent over https or to this machine only")
        self.name, self.url, self.model = f"{model}@{url}", url.rstrip("/"), model
        self.max_new_tokens, self.retries, self.seconds = max_new_tokens, retries, seconds

    def log_likelihood(self, prompts: Sequence[str], answers: Sequence[str]) -> np.ndarray:
        """Raise `ConfigError`: chat servers do not return the probability of a given answer."""
        raise ConfigError(f"{self.name} returns no log-likelihoods; its replies are checked instead")

    def reply(self, prompts: Sequence[str]) -> list[str]:
        """Return the server's reply to each prompt."""
        return [self._reply(prompt) for prompt in prompts]

    def _reply(self, prompt: str) -> str:
        key = os.environ.get("OPENAI_API_KEY", "")
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
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
