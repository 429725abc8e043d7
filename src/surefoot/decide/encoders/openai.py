"""Embeddings from any server that speaks OpenAI's API: batches, retries, a cache on disk, and a check of their size."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot._http import NoRedirect
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
        answer = self._post({"model": self.model, "input": texts, "encoding_format": "float"})
        rows = sorted(answer.get("data", ()), key=lambda row: row["index"])
        if len(rows) != len(texts):
            raise EncoderError(f"{self.base_url} gave {len(rows)} embeddings for {len(texts)} texts")
        made = np.array([row["embedding"] for row in rows], np.float32)
        if made.shape[1:] != (self.dim,):
            raise EncoderError(
                f"{self.model} gave vectors of {made.shape[-1]} numbers; dim is {self.dim}: set it to match"
            )
        return made

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.base_url}/embeddings",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
        )
        for tries in range(self.retries + 1):
            self.requests += 1
            try:
                with _OPENER.open(request, timeout=self.seconds) as response:
                    return json.loads(response.read())
            except urllib.error.HTTPError as error:
                if error.code not in _AGAIN or tries == self.retries:
                    raise EncoderError(f"{self.base_url} answered {error.code} {error.reason}") from error
                time.sleep(min(float(error.headers.get("Retry-After") or 0.2 * 2**tries), 10.0))
            except (urllib.error.URLError, TimeoutError) as error:
                if tries == self.retries:
                    raise EncoderError(f"{self.base_url} could not be reached: {error}") from error
                time.sleep(0.2 * 2**tries)
        raise AssertionError("unreachable")


_OPENER = urllib.request.build_opener(NoRedirect)
