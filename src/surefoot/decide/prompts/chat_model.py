"""Replies of a language model behind any OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot._http import ChatServer
from surefoot.errors import ConfigError


class ChatModel:
    """Answers prompts by a `ChatServer`, which takes the same arguments."""

    likelihoods = False

    def __init__(self, url: str, model: str = "default", **options: Any) -> None:
        self.server = ChatServer(url, model, **options)
        self.name = self.server.name

    def log_likelihood(self, prompts: Sequence[str], answers: Sequence[str]) -> np.ndarray:
        """Raise `ConfigError`: chat servers do not return the probability of a given answer."""
        raise ConfigError(f"{self.name} returns no log-likelihoods; its replies are checked instead")

    def reply(self, prompts: Sequence[str]) -> list[str]:
        return [self.server.complete([{"role": "user", "content": prompt}]) for prompt in prompts]
