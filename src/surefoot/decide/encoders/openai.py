"""Embeddings from any OpenAI-compatible server, with batches, retries, an optional disk cache and a size check."""

from __future__ import annotations

import os
import urllib.error
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from surefoot._http import post_json
from surefoot.data.journal import Entry, Journal
from surefoot.decide.encoders.encoder import Likeness, unit_rows
from surefoot.errors import EncoderError

# Timeouts, conflicts, rate limits and gateway errors are temporary; other codes would fail again.
_RETRIED_CODES = (408, 409, 429, 500, 502, 503, 504)

# Compared as whole host names: http://localhost.example.com is another machine.
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class OpenAIEncoder:
    """Encoder that posts texts to {base_url}/embeddings. The key is read from the environment and sent to base_url only.

    Args:
        model: The server's model name.
        dim: Size of its vectors; checked against every response.
        base_url: Server; default $OPENAI_BASE_URL, then OpenAI's. Must be https or this machine.
        key_variable: Environment variable with the API key.
        batch: Texts per request.
        retries: Further attempts after a temporary error.
        seconds: Timeout per attempt.
        cache: File that keeps the vectors; None: no cache.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        dim: int = 1536,
        base_url: str | None = None,
        key_variable: str = "OPENAI_API_KEY",
        batch: int = 64,
        retries: int = 3,
        seconds: float = 30.0,
        cache: str | Path | None = None,
    ) -> None:
        self.model, self.dim, self.batch, self.retries, self.seconds = model, dim, batch, retries, seconds
        self.base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1").rstrip("/")
        # Plain HTTP is not encrypted: any host between here and the server could read the key.
        address = urlsplit(self.base_url)
        if address.scheme != "https" and not (address.scheme == "http" and address.hostname in LOOPBACK):
            raise EncoderError(f"base_url is {self.base_url!r}; the key is sent over https or to this machine only")
        self._key = os.environ.get(key_variable, "")
        if not self._key:
            raise EncoderError(
                f"the environment variable {key_variable} is not set; the openai encoder reads its key from it"
            )
        self.name = f"openai-{model}-{dim}"
        self.likeness = Likeness(sharpness=17.0, slope=10.0, middle=0.4)
        self._cache = None if cache is None else Journal(cache)
        self.requests = 0
        """Number of batches sent, not counting retries."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), self.dim), np.float32)
        missing = list[int]()
        for i, text in enumerate(texts):
            known = None if self._cache is None else self._cache.get(self.name, text)
            if known is None:
                missing.append(i)
            else:
                rows[i] = known.body
        for begin in range(0, len(missing), self.batch):
            batch = missing[begin : begin + self.batch]
            rows[batch] = vectors = self._embed([texts[i] for i in batch])
            if self._cache is not None:
                pairs = zip(batch, vectors, strict=True)
                self._cache.put(*(Entry(kind=self.name, id=texts[i], body=row.tolist()) for i, row in pairs))
        return unit_rows(rows)

    def _embed(self, texts: list[str]) -> np.ndarray:
        body = {"model": self.model, "input": texts, "encoding_format": "float"}
        headers, url = {"Authorization": f"Bearer {self._key}"}, f"{self.base_url}/embeddings"
        self.requests += 1
        try:
            response = post_json(url, body, headers, seconds=self.seconds, retries=self.retries, again=_RETRIED_CODES)
        except urllib.error.HTTPError as error:
            raise EncoderError(f"{self.base_url} answered {error.code} {error.reason}") from error
        except (urllib.error.URLError, TimeoutError) as error:
            raise EncoderError(f"{self.base_url} could not be reached: {error}") from error
        # The API does not promise the order of the rows.
        rows = sorted(response.get("data", ()), key=lambda row: row["index"])
        if len(rows) != len(texts):
            raise EncoderError(f"{self.base_url} returned {len(rows)} embeddings for {len(texts)} texts")
        vectors = np.array([row["embedding"] for row in rows], np.float32)
        if vectors.shape[1:] != (self.dim,):
            raise EncoderError(
                f"{self.model} returned vectors of {vectors.shape[-1]} numbers, but dim is {self.dim}; pass the right dim"
            )
        return vectors
