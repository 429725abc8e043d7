"""Embeddings from any server that speaks OpenAI's API: batches, retries, a cache on disk, and a check of their size."""

from __future__ import annotations

import os
import urllib.error
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surefoot._http import post_json
from surefoot.data.journal import Entry, Journal
from surefoot.decide.encoders.encoder import Likeness, unit_rows
from surefoot.errors import EncoderError

_AGAIN = (408, 409, 429, 500, 502, 503, 504)


class OpenAIEncoder:
    """POST {base_url}/embeddings. The key comes from the environment and goes nowhere else than to base_url."""

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
        if not self.base_url.startswith(("https://", "http://127.0.0.1", "http://localhost")):
            raise EncoderError(f"base_url is {self.base_url!r}; a key is only sent over https or to this machine")
        self._key = os.environ.get(key_variable, "")
        if not self._key:
            raise EncoderError(f"the environment has no {key_variable}; the openai encoder takes its key from there")
        self.name = f"openai-{model}-{dim}"
        self.likeness = Likeness(sharpness=17.0, slope=10.0, middle=0.4)
        self._cache = None if cache is None else Journal(cache)
        self.requests = 0
        """Batches that were sent; repeated attempts do not count."""

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
            some = missing[begin : begin + self.batch]
            rows[some] = found = self._ask([texts[i] for i in some])
            if self._cache is not None:
                kind = self.name
                self._cache.put(
                    *(Entry(kind=kind, id=texts[i], body=row.tolist()) for i, row in zip(some, found, strict=True))
                )
        return unit_rows(rows)

    def _ask(self, texts: list[str]) -> np.ndarray:
        body = {"model": self.model, "input": texts, "encoding_format": "float"}
        headers, url = {"Authorization": f"Bearer {self._key}"}, f"{self.base_url}/embeddings"
        self.requests += 1
        try:
            response = post_json(url, body, headers, seconds=self.seconds, retries=self.retries, again=_AGAIN)
        except urllib.error.HTTPError as error:
            raise EncoderError(f"{self.base_url} answered {error.code} {error.reason}") from error
        except (urllib.error.URLError, TimeoutError) as error:
            raise EncoderError(f"{self.base_url} could not be reached: {error}") from error
        rows = sorted(response.get("data", ()), key=lambda row: row["index"])
        if len(rows) != len(texts):
            raise EncoderError(f"{self.base_url} gave {len(rows)} embeddings for {len(texts)} texts")
        vectors = np.array([row["embedding"] for row in rows], np.float32)
        if vectors.shape[1:] != (self.dim,):
            raise EncoderError(
                f"{self.model} gave vectors of {vectors.shape[-1]} numbers; dim is {self.dim}: set it to match"
            )
        return vectors
