"""Motifs: what a query is about at first sight. One vocabulary, for the detector and for the policy."""

from __future__ import annotations

import re

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
"""Every motif and the expression that finds it, in the order of their places in an observation."""

VOCABULARY: tuple[str, ...] = tuple(PATTERNS)
_COMPILED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in PATTERNS.items()}
_LONGEST = 4000


def detect(text: str) -> list[str]:
    """The motifs of a text, in the vocabulary's order. Only its first 4,000 characters are looked at."""
    start = text[:_LONGEST]
    return [name for name, pattern in _COMPILED.items() if pattern.search(start)]
