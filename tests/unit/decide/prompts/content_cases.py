"""An independent definition of a prompt's content, for the tests: what must still be there after a mutation."""

from __future__ import annotations

import re
from collections import Counter

_VERBATIM = (r"https?://\S+", r"```.*?```", r"`[^`\n]+`", r"\"[^\"\n]+\"", r"“[^”\n]+”")


def content(text: str) -> Counter[str]:
    """Return how often each word, number, quoted string, code span and URL occurs; words without regard to case."""
    found = Counter(part for pattern in _VERBATIM for part in re.findall(pattern, text, re.DOTALL))
    found.update(re.findall(r"\d+(?:[.,]\d+)*", text))
    found.update(word.lower() for word in re.findall(r"[^\W\d_]+", text))
    found.update("?" for _ in range(text.count("?")))
    return found


def lost(before: str, after: str) -> Counter[str]:
    """Return the content of `before` that is not in `after`."""
    return content(before) - content(after)
