"""Features of a query beside its vector: cues in its words, and how its context was retrieved."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from surefoot.errors import ConfigError

ENCODING = 1
"""Version of these features; saved with every policy."""

PATTERNS: dict[str, str] = {
    "QUESTION": r"\?|^\s*(what|who|whom|whose|which|where|when|why|how|is|are|was|were|do|does|did|can|could|should)\b",
    "CALCULATE": r"\b(calculate|compute|sum of|add|plus|minus|times|multipl\w+|divided? by|percent(age)?|squared?|root)\b|%",
    "NUMBER": r"\d",
    "EXPRESSION": r"\d\s*(\*\*|[-+*/^×÷])\s*\(?\s*\d",
    "SEARCH": r"\b(search|find|look up|look for|show me|documents?|pages?|sources?|references?|mentions?)\b",
    "DEFINE": r"\b(what (is|are|does)|define|definition|meaning of|explain|describe|tell me about)\b",
    "COUNT": r"\b(how (many|much)|count|number of|total|average|mean|highest|lowest|most|least|maximum|minimum)\b",
    "DATA": r"\b(table|rows?|columns?|records?|database|select|sql|entries)\b",
    "NOTE": r"\b(note|notes|write down|remember|remind|save|jot|record that|todo|to-do|log that)\b",
    "TIME": r"\b(today|tomorrow|yesterday|tonight|monday|tuesday|wednesday|thursday|friday|saturday|sunday|\d{1,2}:\d\d)\b",
    "COMPARE": r"\b(compare|versus|vs|difference between|better|worse|rather than)\b",
    "CAUSE": r"\b(because|why|cause[sd]?|reason|due to|leads? to|so that)\b",
    "CONDITION": r"\b(if|unless|when(ever)?|in case|provided)\b",
    "CONTRAST": r"\b(but|however|although|instead|except|without)\b",
    "GOAL": r"\b(want|need|would like|in order to|goal|aim|should)\b",
    "ALGORITHM": r"\b(algorithm|ppo|policy|reward|learning|gradient|network|training|model)\b",
    "CODE": r"`|\b(function|class|import|python|error|exception|traceback)\b",
    "NEGATION": r"\b(not|no|never|none|don't|doesn't|isn't|can't|won't)\b",
    "COMMAND": r"^\s*(please\s+)?(make|write|save|add|create|send|show|find|calculate|compute|list|give|tell|remember|note)\b",
    "GREETING": r"^\s*(hi|hello|hey|good (morning|evening|afternoon)|thanks|thank you)\b",
}
"""Every cue and the expression that finds it, in the order of the features."""

VOCABULARY: tuple[str, ...] = tuple(PATTERNS)
_COMPILED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in PATTERNS.items()}
_LONGEST = 4000


MODES = ("fast", "fused")
SIZE = len(VOCABULARY) + 3 + len(MODES)
_WEIGHT = 0.25
"""Length of these features next to the query's vector, which has length 1."""


def detect_cues(text: str) -> list[str]:
    """Return the cues of a text, in the vocabulary's order. Only its first 4,000 characters are looked at."""
    start = text[:_LONGEST]
    return [name for name, pattern in _COMPILED.items() if pattern.search(start)]


def encode_features(cues: Iterable[str], *, context: int, scales: int, activated: int, retrieval: str) -> np.ndarray:
    """Return [25] float32: cues as 0 or 1, then context/10, scales/3, activated/20 (at most 1), then the retrieval mode."""
    row = np.zeros(SIZE, np.float32)
    for cue in cues:
        if cue not in VOCABULARY:
            raise ConfigError(f"cue {cue!r} is not in the vocabulary: {', '.join(VOCABULARY)}")
        row[VOCABULARY.index(cue)] = 1.0
    begin = len(VOCABULARY)
    row[begin : begin + 3] = np.minimum([context / 10.0, scales / 3.0, activated / 20.0], 1.0)
    if retrieval in MODES:
        row[begin + 3 + MODES.index(retrieval)] = 1.0
    return row


def weighted(row: np.ndarray) -> np.ndarray:
    """Return encoded features scaled to join the query's vector."""
    return (row * (_WEIGHT / np.sqrt(max(1.0, float(row @ row))))).astype(np.float32)
