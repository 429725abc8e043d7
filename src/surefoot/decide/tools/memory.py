"""Searchable passages for an agent: BM25 and embeddings at several scales."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.decide.encoders.encoder import Encoder, Scales
from surefoot.decide.tools.depth import FUSED, Depth
from surefoot.errors import ToolError

_WORD = re.compile(r"[^\W_]+")
# The usual parameters of Okapi BM25 (Robertson and Zaragoza 2009).
_K1, _B = 1.5, 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One passage of text."""

    id: str
    text: str
    episode: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage and its score for a query."""

    passage: Passage
    score: float
    """0 … 1."""


class TextMemory:
    """Passages with an index of words and vectors, which is rebuilt on the first search after a change.

    Args:
        encoder: Computes the vectors.
        scales: Shorter forms of the vectors; default: `Scales.standard(encoder)`.
    """

    def __init__(self, encoder: Encoder, scales: Scales | None = None) -> None:
        self.encoder = encoder
        self._scales = scales
        self._passages: dict[str, Passage] = {}
        self._index: _Index | None = None

    def __len__(self) -> int:
        return len(self._passages)

    @property
    def passages(self) -> list[Passage]:
        return list(self._passages.values())

    @property
    def scales(self) -> Scales:
        if self._scales is None:
            self._scales = Scales.standard(self.encoder)
        return self._scales

    def add(self, text: str, id: str | None = None, **metadata: Any) -> str:
        """Add a passage and return its id; an existing id is replaced."""
        if not text.strip():
            raise ToolError("the text is empty; a passage needs at least one word")
        id = id or f"shard-{len(self._passages)}"
        self._passages[id] = Passage(id=id, text=text, metadata=metadata)
        self._index = None
        return id

    def add_files(self, directory: str | Path, *, patterns: Sequence[str] = ("*.md", "*.txt", "*.rst")) -> int:
        """Add every text file below a directory, split at headings and blank lines; return the number of passages."""
        root, before = Path(directory), len(self)
        if not root.is_dir():
            raise ToolError(f"{directory} is not a directory")
        for path in sorted(path for pattern in patterns for path in root.rglob(pattern)):
            text = path.read_text(encoding="utf-8", errors="replace")
            for n, piece in enumerate(pieces(text)):
                self.add(piece, f"{path.relative_to(root).as_posix()}#{n}")
        return len(self) - before

    def search(self, text: str, vector: np.ndarray | None = None, depth: Depth = FUSED) -> list[Hit]:
        """Return the best passages: `fast` on the smallest scale, `fused` on all scales, with the depth's share of BM25."""
        if not self._passages:
            return []
        if self._index is None:
            self._index = _Index(list(self._passages.values()), self.encoder)
        query = self.encoder.encode([text])[0] if vector is None else vector
        # Weighted sum of the cosines at each scale.
        near = np.zeros(len(self._passages))
        used = list(zip(depth.scales, depth.weights, strict=True))
        for scale, weight in used[:1] if depth.retrieval == "fast" else used:
            share = 1.0 if depth.retrieval == "fast" else weight
            near += share * (self._index.scaled(scale, self.scales) @ self.scales(query, scale))
        score = _unit(near)
        if depth.bm25:
            score = (1.0 - depth.bm25) * score + depth.bm25 * _unit(self._index.bm25(text))
        best = np.argsort(-score, kind="stable")[: depth.k]
        return [Hit(passage=self._index.passages[i], score=float(score[i])) for i in best]

    def lookup(self, text: str, k: int = 5) -> list[Hit]:
        """Return the k best passages, words and meaning weighted equally; for the `search` tool."""
        if not self._passages:
            return []
        self._index = self._index or _Index(list(self._passages.values()), self.encoder)
        near = self._index.vectors @ self.encoder.encode([text])[0]
        words = self._index.bm25(text)
        top = float(words.max(initial=0.0))
        # BM25 has no upper bound: it is divided by its maximum.
        score = 0.5 * np.clip(near, 0.0, 1.0) + 0.5 * (words / top if top > 0 else words)
        best = np.argsort(-score, kind="stable")[:k]
        return [Hit(passage=self._index.passages[i], score=float(score[i])) for i in best]


class _Index:
    """Vectors and word counts of a set of passages."""

    def __init__(self, passages: list[Passage], encoder: Encoder) -> None:
        self.passages = passages
        self.vectors = encoder.encode([passage.text for passage in passages])
        self._scaled: dict[int, np.ndarray] = {}
        counts = [Counter(words_of(f"{passage.id} {passage.text}")) for passage in passages]
        self._length = np.array([sum(count.values()) for count in counts], float)
        self._mean = max(1.0, float(self._length.mean()))
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for i, count in enumerate(counts):
            for word, times in count.items():
                self._postings.setdefault(word, []).append((i, times))

    def scaled(self, scale: int, scales: Scales) -> np.ndarray:
        if scale not in self._scaled:
            self._scaled[scale] = scales(self.vectors, scale)
        return self._scaled[scale]

    def bm25(self, text: str) -> np.ndarray:
        """Return the Okapi BM25 score of every passage."""
        score, n = np.zeros(len(self.passages)), len(self.passages)
        for word in set(words_of(text)):
            postings = self._postings.get(word, ())
            rarity = math.log(1.0 + (n - len(postings) + 0.5) / (len(postings) + 0.5))
            for i, times in postings:
                norm = times + _K1 * (1.0 - _B + _B * self._length[i] / self._mean)
                score[i] += rarity * times * (_K1 + 1.0) / norm
        return score


def words_of(text: str) -> list[str]:
    """Return the lower-case words without common English endings."""
    # Crude stemming is enough to match plurals and tenses; a real stemmer would be one more dependency.
    return [_stem(word.lower()) for word in _WORD.findall(text.replace("_", " "))]


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def pieces(text: str, longest: int = 900) -> list[str]:
    """Return the paragraphs, each with its heading, short ones joined up to `longest` characters."""
    heading, result, current = "", list[str](), ""
    for block in re.split(r"\n\s*\n", text):
        block = block.strip()
        # Code is not prose that an answer could quote.
        if not block or block.startswith("```"):
            continue
        if block.startswith("#"):
            if current:
                result.append(f"{heading}\n{current}".strip())
            lines = block.splitlines()
            heading, current = lines[0].lstrip("# ").strip(), "\n".join(lines[1:])
            continue
        if current and len(current) + len(block) > longest:
            result.append(f"{heading}\n{current}".strip())
            current = ""
        current = f"{current}\n{block}".strip()
    if current:
        result.append(f"{heading}\n{current}".strip())
    return result


def _unit(score: np.ndarray) -> np.ndarray:
    """Return sigmoid((score - mean) / std): BM25 and cosines have different scales and cannot be added directly."""
    spread = float(score.std())
    return 1.0 / (1.0 + np.exp(-(score - score.mean()) / spread)) if spread > 1e-12 else np.full(len(score), 0.5)
