"""Features of a query besides its vector: cues in its words, and how its context was retrieved."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from surefoot.data.shipped_yaml import read_shipped
from surefoot.errors import ConfigError

ENCODING = 1
"""Version of the features, saved with every policy."""

_PATTERNS = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in read_shipped("surefoot.decide.tools", "cues.yaml").items()
}
VOCABULARY: tuple[str, ...] = tuple(_PATTERNS)
"""Names of the cues, in the order of the features."""
# Characters searched for cues: a long pasted text after the question must not slow the choice down.
_LONGEST = 4000
MODES = ("fast", "fused")
SIZE = len(VOCABULARY) + 3 + len(MODES)
# Length of the feature vector next to the query's vector of length 1; more would let cues outweigh the meaning.
_WEIGHT = 0.25


def detect_cues(text: str) -> list[str]:
    """Return the cues of a text, in the vocabulary's order. Only the first 4,000 characters are searched."""
    return [name for name, pattern in _PATTERNS.items() if pattern.search(text[:_LONGEST])]


def encode_features(cues: Iterable[str], *, context: int, scales: int, activated: int, retrieval: str) -> np.ndarray:
    """Return [25] float32: cues as 0 or 1, then context/10, scales/3, activated/20 (at most 1), then the retrieval mode."""
    row = np.zeros(SIZE, np.float32)
    for cue in cues:
        if cue not in VOCABULARY:
            raise ConfigError(f"unknown cue {cue!r}; the vocabulary is {', '.join(VOCABULARY)}")
        row[VOCABULARY.index(cue)] = 1.0
    begin = len(VOCABULARY)
    row[begin : begin + 3] = np.minimum([context / 10.0, scales / 3.0, activated / 20.0], 1.0)
    if retrieval in MODES:
        row[begin + 3 + MODES.index(retrieval)] = 1.0
    return row


def weighted(row: np.ndarray) -> np.ndarray:
    """Return encoded features scaled to join the query's vector."""
    return (row * (_WEIGHT / np.sqrt(max(1.0, float(row @ row))))).astype(np.float32)
