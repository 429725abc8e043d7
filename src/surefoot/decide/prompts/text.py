"""What a prompt is made of: tokens, sentences, list lines, the verb it begins with."""

from __future__ import annotations

import re

from surefoot.data.shipped_yaml import read_shipped

TOKEN = re.compile(r"\w+|[^\w\s]")
_END = re.compile(r"(?<=[.!?؟])\s+(?=[^\s])")
_LIST_LINE = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(.+)$")

VERBS: dict[str, list[str]] = read_shipped("surefoot.decide.prompts", "verbs.yaml")
"""Imperatives by what they ask for."""

_GROUP = {verb: group for group, verbs in VERBS.items() for verb in verbs}
_POLITE = re.compile(r"^(?:please|kindly|can you|could you|would you|i want you to|i need you to)[\s,]+", re.IGNORECASE)


def tokens(text: str) -> int:
    """How long a text is: words and marks, which is close to what a model counts."""
    return len(TOKEN.findall(text))


def words(text: str) -> list[str]:
    """Words in lower case."""
    return [word.lower() for word in re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", text)]


def sentences(text: str) -> list[str]:
    """Sentences of a text; a list line is one of its own."""
    found: list[str] = []
    for line in text.splitlines():
        if line.strip():
            found += [line.strip()] if _LIST_LINE.match(line) else [s.strip() for s in _END.split(line.strip())]
    return [sentence for sentence in found if sentence]


def list_items(text: str) -> list[str]:
    """What stands behind bullets and numbers."""
    return [match[1].strip() for line in text.splitlines() if (match := _LIST_LINE.match(line))]


def leading_verb(text: str) -> tuple[str, str] | None:
    """(verb as written, its group) if the text begins with an imperative, politely or not."""
    plain = _POLITE.sub("", text.lstrip())
    match = re.match(r"[^\W\d_]+", plain)
    if match is None or match[0].lower() not in _GROUP:
        return None
    return match[0], _GROUP[match[0].lower()]


def without_politeness(text: str) -> str:
    """The text from its imperative on."""
    return _POLITE.sub("", text.lstrip())


def capital(text: str) -> str:
    """With a capital in front."""
    return text[:1].upper() + text[1:]


def ended(text: str) -> str:
    """With a mark at its end."""
    text = text.rstrip()
    return text if not text or text[-1] in ".!?:…؟" else text + "."
