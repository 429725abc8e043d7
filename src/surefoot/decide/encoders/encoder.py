"""Text encoders: the protocol, the dependency-free hashing encoder, a cache, and `make_encoder`."""

from __future__ import annotations

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
"""Called with one sentence per stage of slow work."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How to read an encoder's cosines; the scale differs between encoders."""

    sharpness: float
    """softmax(sharpness · cosines) approximates the probability that each candidate is the right one."""
    slope: float
    middle: float
    """sigmoid(slope · (cosine - middle)) is the optimistic guess of a candidate's reward if it is tried."""
    relative: bool = False
    """True: for cosines in deviations from their observed mean (`CosineScale`), because the encoder is unknown."""


class Encoder(Protocol):
    """Maps texts to unit vectors. `name` and `dim` are saved with a policy, which works with this encoder only."""

    name: str
    """Includes a version: a different name means different vectors."""
    dim: int
    likeness: Likeness

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return [len(texts), dim] float32; rows have length 1, or 0 for a text without words."""
        ...


_WORD = re.compile(r"[^\W_]+")


class HashingEncoder:
    """Hash words, pairs of words and letter trigrams into `dim` buckets. Needs no model and no extra package.

    It compares words, not meanings: "refund" and "money back" have nothing in common.
    """

    def __init__(self, dim: int = 384) -> None:
        if dim < 8:
            raise EncoderError(f"dim is {dim}; the hashing encoder needs at least 8")
        self.name, self.dim = f"hashing-1-{dim}", dim
        # Like those of the other encoders, chosen with learning curves on banking77 in view (docs/explain/choosing.md).
        # More sharpness trusts the descriptions more, a lower middle explores more options.
        self.likeness = Likeness(sharpness=15.0, slope=8.0, middle=0.2)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = [word.lower() for word in _WORD.findall(text.replace("_", " "))]
            # Weights: function words hardly tell options apart; pairs and trigrams help with order and with inflection,
            # but must not outweigh the words themselves.
            features = [(word, 0.3 if word in _COMMON else 1.0) for word in words]
            features += [(f"{a} {b}", 0.5) for a, b in pairwise(words)]
            for padded in (f"^{word}$" for word in words):
                features += [(padded[i : i + 3], 0.25) for i in range(len(padded) - 2)]
            for feature, weight in features:
                # Not hash(): Python salts it per process, and saved policies need the same vectors in every process.
                code = zlib.crc32(feature.encode())
                row[(code >> 1) % self.dim] += weight if code & 1 else -weight
        return unit_rows(rows)


_COMMON = frozenset(
    _WORD.findall(
        "a an the i my me you your it its is are was be been do does did have has had will would "
        "can could should to of in on for from with at by and or not this that there what when "
        "where which who why how if as so but please"
    )
)


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Return each row divided by its length; rows of zeros stay zero."""
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.where(length > 0, length, 1.0)).astype(np.float32)


class Cached:
    """Cache of the last texts' vectors: descriptions and repeated queries are encoded once."""

    def __init__(self, encoder: Encoder, size: int = 4096) -> None:
        self.inner, self.size = encoder, size
        self.name, self.dim, self.likeness = encoder.name, encoder.dim, encoder.likeness
        self._known: dict[str, np.ndarray] = {}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = {text: row for text in texts if (row := self._known.get(text)) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in rows]
        if missing:
            rows |= zip(missing, self.inner.encode(missing), strict=True)
            for text in missing:
                self._known[text] = rows[text]
            # Dicts keep insertion order, so this drops the oldest text.
            while len(self._known) > self.size:
                self._known.pop(next(iter(self._known)), None)
        return np.stack([rows[text] for text in texts]) if texts else np.zeros((0, self.dim), np.float32)


ENCODERS = ("auto", "static", "minilm", "hashing", "openai")


def make_encoder(name: str = "auto", *, say: Progress | None = None, **options: Any) -> Encoder:
    """Return an encoder by name.

    Args:
        name: `static`, `minilm`, `hashing` (or `hashing-1-DIM`), `openai`, or `auto`: the static table if it has been
            built, else hashing.
        say: Called with one sentence per stage of slow work, and if `auto` falls back to hashing.
        **options: Passed to the encoder's constructor.
    """
    match name.split("-")[0]:
        case "hashing":
            # "hashing-1-64", the name saved with a policy, carries version and dimension.
            dim = name.rsplit("-", 1)[-1]
            return HashingEncoder(**options or ({"dim": int(dim)} if name.count("-") >= 2 and dim.isdigit() else {}))
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
            return _static_or_hashing(say)
        case _:
            raise EncoderError(f"unknown encoder {name!r}; use one of {', '.join(ENCODERS)}")


def _static_or_hashing(say: Progress | None) -> Encoder:
    from surefoot.decide.encoders.static import StaticEncoder, distil_in_background, table_path

    if table_path().exists():
        return StaticEncoder.open(say=say)
    if say is not None:
        # Only with somebody to notify: a library call must not start a process silently.
        remedy = (
            "A table of word vectors is being built in the background (about a minute, once); later runs use it."
            if distil_in_background()
            else "Run `pip install surefoot[embed]` and `surefoot tools encoder` to build a table of word vectors, once."
        )
        say(f"Using the hashing encoder, which compares words, not meanings. {remedy}")
    return HashingEncoder()


@dataclass(frozen=True, slots=True)
class Scales:
    """Shorter forms of vectors by PCA: the first 96 of 384 directions are those with the most variance.

    Plain truncation would cost 12 points of accuracy: none of these encoders was trained for it (Matryoshka).
    """

    mean: np.ndarray
    axes: np.ndarray
    """[dim, dim], one direction per row, sorted by variance."""

    @classmethod
    def fit(cls, vectors: np.ndarray) -> Scales:
        """Fit on at least a few hundred representative vectors; with fewer the last directions are arbitrary."""
        mean = vectors.mean(axis=0)
        _, _, axes = np.linalg.svd(vectors - mean, full_matrices=True)
        return cls(mean.astype(np.float32), axes.astype(np.float32))

    @classmethod
    def standard(cls, encoder: Encoder) -> Scales:
        """Fit on the sentences shipped with the package: the same encoder always has the same scales."""
        shipped = read_shipped("surefoot.decide.encoders", "sentences.yaml")
        return cls.fit(
            encoder.encode([form.format(subject) for subject in shipped["subjects"] for form in shipped["forms"]])
        )

    def __call__(self, vectors: np.ndarray, scale: int) -> np.ndarray:
        """Return unit rows, […, scale]; a scale above the encoder's dimension is its dimension."""
        return unit_rows((vectors - self.mean) @ self.axes[:scale].T)
