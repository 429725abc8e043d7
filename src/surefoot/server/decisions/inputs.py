"""Inputs of a decision as numbers: embeddings, texts, structured features and candidates, checked and scaled."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from surefoot.decide.core.candidates import Candidates
from surefoot.decide.encoders.encoder import Encoder, HashingEncoder, unit_rows
from surefoot.decide.encoders.observed import GivenVectors
from surefoot.server import schema
from surefoot.server.http.problems import Refused

# Numbers in all candidates of a decision: 4 MB of float32, a fifth of the time that a request may take.
MOST_NUMBERS = 1 << 20
# Decisions after which the length of a policy's embeddings is known.
_SETTLED = 1000
# Numeric features whose mean and deviation are kept; further ones are used unscaled.
_MOST_FEATURES = 1000


def encoder_of(config: schema.NewPolicy) -> Encoder:
    """Return the encoder of a policy: of texts, or the size of the embeddings that it is sent."""
    if config.encoder == "hashing":
        return HashingEncoder(config.embedding_size)
    return GivenVectors(config.embedding_size, prior=config.prior)


class Inputs:
    """Reads requests for one policy. Embeddings are divided by their mean length, numeric features by their deviation."""

    def __init__(self, config: schema.NewPolicy, encoder: Encoder) -> None:
        self.config, self.encoder = config, encoder
        self.count, self.length = 0, 1.0
        """Embeddings seen, and their mean length."""
        self.numeric: dict[str, list[float]] = {}
        """{numeric feature: [count, mean, sum of squared deviations]}"""

    @property
    def settled(self) -> bool:
        """True if the length of embeddings is known, or texts are encoded here."""
        return self.count >= _SETTLED or self.config.encoder != "none"

    def vector(self, new: schema.NewDecision, pointer: str) -> tuple[np.ndarray, bytes]:
        """Return the query's vector, [size] float32, and the bytes that identify it in a retry."""
        b64, numbers, text = new.embedding_b64, new.embedding, new.text
        forms = (b64 is not UNSET) + (numbers is not UNSET) + (text is not UNSET)
        if forms == 0 and new.features is not UNSET:
            return np.zeros(self.config.embedding_size, np.float32), b""
        if forms != 1:
            raise Refused("invalid", "give one of embedding, embedding_b64 and text", pointer=pointer or "/")
        if text is not UNSET:
            if self.config.encoder == "none":
                raise Refused("invalid", "this policy has no encoder; send an embedding", pointer=f"{pointer}/text")
            row = self.encoder.encode([text])[0]
            return row, row.tobytes()
        row, raw = floats(numbers, b64, self.config.embedding_size, pointer)
        return row, raw

    def scaled(self, row: np.ndarray, *, observe: bool = True) -> np.ndarray:
        """Return an embedding divided by the mean length of all so far; those of length 1 are not changed."""
        if observe and self.count < _SETTLED and (length := math.sqrt(float(row @ row))) > 0.0:
            self.count += 1
            self.length += (length - self.length) / self.count
        # 1e-3: encoders round, and a policy must compute the same whether its vectors come over HTTP or not.
        return row if abs(self.length - 1.0) < 1e-3 else (row / np.float32(self.length)).astype(np.float32)

    def features(self, new: schema.NewDecision, *, observe: bool = True) -> np.ndarray | None:
        """Return the features as numbers, [feature_size]; None if the policy has none.

        A category is counted in the bucket of its name and value, a number in that of its name.
        """
        size, named = self.config.feature_size, {} if new.features is UNSET else new.features
        if not size:
            return None
        if observe:
            self.add_features(named)
        row = np.zeros(size, np.float32)
        for name, value in named.items():
            if isinstance(value, bool | str):
                code, number = zlib.crc32(f"{name}={value}".encode()), 1.0
            else:
                code, number = zlib.crc32(name.encode()), self._standard(name, float(value))
            row[(code >> 1) % size] += number if code & 1 else -number
        # Together about as long as an embedding: neither then outweighs the other, however many there are.
        return row / np.float32(math.sqrt(max(1, len(named))))

    def add_features(self, named: Mapping[str, Any]) -> None:
        """Count the numbers among features in their means and deviations."""
        for name, value in named.items():
            if isinstance(value, bool | str) or (name not in self.numeric and len(self.numeric) >= _MOST_FEATURES):
                continue
            known = self.numeric.setdefault(name, [0.0, 0.0, 0.0])
            known[0] += 1.0
            moved = float(value) - known[1]
            known[1] += moved / known[0]
            known[2] += moved * (float(value) - known[1])

    def _standard(self, name: str, value: float) -> float:
        """Return a number in deviations from its mean, at most 3 in size: one outlier must not decide alone."""
        count, mean, squares = self.numeric.get(name, (1.0, 0.0, 1.0))
        deviation = math.sqrt(squares / count) if count else 0.0
        return 0.0 if deviation == 0.0 else max(-3.0, min(3.0, (value - mean) / deviation))

    def candidates(self, new: schema.NewDecision, pointer: str) -> Candidates:
        """Return the ids of the candidates and their vectors, rows of length 1."""
        if new.candidates is UNSET:
            raise Refused("invalid", "pass candidates: this policy has no fixed actions", pointer=pointer or "/")
        ids, size = [each.id for each in new.candidates], self.config.embedding_size
        if len(set(ids)) != len(ids):
            twice = next(place for place, id in enumerate(ids) if id in ids[:place])
            where = f"{pointer}/candidates/{twice}/id"
            raise Refused("invalid", f"two candidates are called {ids[twice]!r}", pointer=where)
        if len(ids) * size > MOST_NUMBERS:
            detail = f"{len(ids)} candidates of {size} numbers; {MOST_NUMBERS:,} numbers are the most"
            raise Refused("invalid", detail, pointer=f"{pointer}/candidates")
        rows = np.zeros((len(ids), size), np.float32)
        texts: dict[int, str] = {}
        for place, each in enumerate(new.candidates):
            where = f"{pointer}/candidates/{place}"
            forms = (each.embedding is not UNSET) + (each.embedding_b64 is not UNSET) + (each.description is not UNSET)
            if forms != 1:
                raise Refused("invalid", "give one of description, embedding and embedding_b64", pointer=where)
            if each.description is UNSET:
                rows[place], _ = floats(each.embedding, each.embedding_b64, size, where)
            elif self.config.encoder == "none":
                raise Refused("invalid", "this policy has no encoder; send embeddings", pointer=f"{where}/description")
            else:
                # Without the id, which may be any key of the caller's.
                texts[place] = each.description
        if texts:
            # All descriptions in one call: encoders are faster per text in a batch.
            rows[list(texts)] = self.encoder.encode(list(texts.values()))
        return Candidates(ids, unit_rows(rows))

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "length": self.length, "numeric": {n: list(x) for n, x in self.numeric.items()}}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.count, self.length = int(state["count"]), float(state["length"])
        self.numeric = {str(name): [float(x) for x in values] for name, values in state["numeric"].items()}


def floats(
    numbers: list[float] | msgspec.UnsetType, b64: bytes | msgspec.UnsetType, size: int, pointer: str
) -> tuple[np.ndarray, bytes]:
    """Return an embedding, [size] float32, and its bytes. Raise `Refused` if it has another size or is not finite."""
    if b64 is not UNSET:
        where = f"{pointer}/embedding_b64"
        if len(b64) != 4 * size:
            raise Refused("invalid", f"{len(b64)} bytes; {size} float32 are {4 * size}", pointer=where)
        row, raw = np.frombuffer(b64, "<f4"), b64
    else:
        where = f"{pointer}/embedding"
        assert numbers is not UNSET
        if len(numbers) != size:
            raise Refused("invalid", f"{len(numbers)} numbers; this policy expects {size}", pointer=where)
        row = np.array(numbers, np.float32)
        raw = row.tobytes()
    # One product finds NaN and infinity faster than a look at every number; as large finite numbers overflow in it,
    # only the second check decides.
    if not math.isfinite(row @ row) and not np.isfinite(row).all():
        raise Refused("invalid", "NaN or infinity", pointer=f"{where}/{int(np.flatnonzero(~np.isfinite(row))[0])}")
    return row, raw
