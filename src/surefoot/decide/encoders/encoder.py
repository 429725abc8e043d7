"""Texts as unit vectors: what an encoder is, the one that needs nothing, and the way to the others."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from surefoot.data.shipped_yaml import read_shipped
from surefoot.errors import EncoderError

Progress = Callable[[str], None]
"""Told one sentence at a time about work that takes long."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How an encoder's cosines are to be read; they differ from one encoder to the next."""

    sharpness: float
    """Softmax of this times the cosines is about the probability that each candidate is the right one."""
    slope: float
    middle: float
    """sigmoid(slope · (cosine - middle)) is the hopeful guess: what a candidate may be worth if tried."""


class Encoder(Protocol):
    """Turns texts into unit vectors. `name` and `dim` are saved with a policy: it is of no use to any other encoder."""

    name: str
    """With its version: another name means other numbers."""
    dim: int
    likeness: Likeness

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """[len(texts), dim] float32, each row of length 1 (or 0 for a text without any word)."""
        ...


_WORD = re.compile(r"[^\W_]+")


class HashingEncoder:
    """Words, pairs of words and trigrams of letters, hashed into `dim` places. No model, no dependency.

    It knows words, not meanings: "refund" and "money back" have nothing in common. Hashes are crc32, the same everywhere.
    """

    def __init__(self, dim: int = 384) -> None:
        if dim < 8:
            raise EncoderError(f"dim is {dim}; the hashing encoder needs at least 8 places")
        self.name, self.dim = f"hashing-1-{dim}", dim
        self.likeness = Likeness(sharpness=15.0, slope=8.0, middle=0.2)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature, weight in _features(text):
                code = zlib.crc32(feature.encode())
                row[(code >> 1) % self.dim] += weight if code & 1 else -weight
        return unit_rows(rows)


def _features(text: str) -> list[tuple[str, float]]:
    words = [word.lower() for word in _WORD.findall(text.replace("_", " "))]
    found = [(word, 0.3 if word in _COMMON else 1.0) for word in words]
    found += [(f"{a} {b}", 0.5) for a, b in pairwise(words)]
    for word in words:
        padded = f"^{word}$"
        found += [(padded[i : i + 3], 0.25) for i in range(len(padded) - 2)]
    return found


_COMMON = frozenset(
    _WORD.findall(
        "a an the i my me you your it its is are was be been do does did have has had will would "
        "can could should to of in on for from with at by and or not this that there what when "
        "where which who why how if as so but please"
    )
)


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Each row divided by its length; a row of zeros stays one."""
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.where(length > 0, length, 1.0)).astype(np.float32)


class Cached:
    """Remembers the vectors of the last texts, so that descriptions and repeated queries are encoded once."""

    def __init__(self, encoder: Encoder, size: int = 4096) -> None:
        self.inner, self.size = encoder, size
        self.name, self.dim, self.likeness = encoder.name, encoder.dim, encoder.likeness
        self._known: dict[str, np.ndarray] = {}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        found = {text: row for text in texts if (row := self._known.get(text)) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            found |= zip(missing, self.inner.encode(missing), strict=True)
            for text in missing:
                self._known[text] = found[text]
            while len(self._known) > self.size:
                self._known.pop(next(iter(self._known)), None)
        return np.stack([found[text] for text in texts]) if texts else np.zeros((0, self.dim), np.float32)


ENCODERS = ("auto", "static", "minilm", "hashing", "openai")


def make_encoder(name: str = "auto", *, say: Progress | None = None, **options: Any) -> Encoder:
    """The encoder of that name. `auto` is the static table if it is there; else hashing, and it says so."""
    match name.split("-")[0]:
        case "hashing":
            return HashingEncoder(**options) if options else HashingEncoder(_dim_in(name, 384))
        case "minilm":
            from surefoot.decide.encoders.minilm import MiniLMEncoder

            return MiniLMEncoder(**options)
        case "static":
            from surefoot.decide.encoders.static import StaticEncoder

            return StaticEncoder.open(say=say, **options)
        case "openai":
            from surefoot.decide.encoders.openai import OpenAIEncoder

            return OpenAIEncoder(**options)
        case "auto":
            return _auto(say)
        case _:
            raise EncoderError(f"no encoder {name!r}; there are {', '.join(ENCODERS)}")


def _auto(say: Progress | None) -> Encoder:
    from surefoot.decide.encoders.static import StaticEncoder, distil_aside, table_path

    if table_path().exists():
        return StaticEncoder.open(say=say)
    begun = say is not None and distil_aside()
    if say is not None:
        making = (
            "a table of word vectors is being made on the side (about a minute, once); what is begun after that uses it"
            if begun
            else "`pip install surefoot[embed]` and `surefoot tools encoder` make a table of word vectors (a minute, once)"
        )
        say(f"texts are hashed, which knows words but not meanings. {making}")
    return HashingEncoder()


def _dim_in(name: str, otherwise: int) -> int:
    last = name.rsplit("-", 1)[-1]
    return int(last) if last.isdigit() and name.count("-") >= 2 else otherwise


@dataclass(frozen=True, slots=True)
class Scales:
    """Shorter forms of a vector by fitted PCA: the first 96 of 384 directions are those that vary most.

    Plain truncation would throw away 12 points of accuracy: no encoder here was trained for it.
    """

    mean: np.ndarray
    axes: np.ndarray
    """[dim, dim], a direction a row, those with most variance first."""

    @classmethod
    def fit(cls, vectors: np.ndarray) -> Scales:
        """From at least a few hundred texts like those to come; fewer leave the last directions arbitrary."""
        mean = vectors.mean(axis=0)
        _, _, axes = np.linalg.svd(vectors - mean, full_matrices=True)
        return cls(mean.astype(np.float32), axes.astype(np.float32))

    @classmethod
    def standard(cls, encoder: Encoder) -> Scales:
        """Fitted once on the project's own sentences, so that the same encoder always has the same scales."""
        shipped = read_shipped("surefoot.decide.encoders", "sentences.yaml")
        return cls.fit(encoder.encode([form.format(one) for one in shipped["subjects"] for form in shipped["forms"]]))

    def __call__(self, vectors: np.ndarray, scale: int) -> np.ndarray:
        """[…, scale] unit rows; a scale beyond the encoder's dimension is its dimension."""
        kept = self.axes[: min(scale, len(self.axes))]
        return unit_rows((vectors - self.mean) @ kept.T)


def explained(scales: Scales, vectors: np.ndarray, scale: int) -> float:
    """Share of the variance of `vectors` that the first `scale` directions keep, 0 … 1."""
    centred = vectors - scales.mean
    total = float((centred**2).sum())
    kept = float(((centred @ scales.axes[:scale].T) ** 2).sum())
    return kept / total if math.isfinite(total) and total > 0 else 1.0
