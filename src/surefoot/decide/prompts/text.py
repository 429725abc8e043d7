"""Split a prompt into tokens, words, sentences and list items, and find its leading verb."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from surefoot.data.shipped_yaml import read_shipped
from surefoot.errors import ConfigError

TOKEN = re.compile(r"\w+|[^\w\s]")
_END = re.compile(r"(?<=[.!?؟])\s+(?=[^\s])")
_LIST_LINE = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(.+)$")

VERBS: dict[str, list[str]] = read_shipped("surefoot.decide.prompts", "verbs.yaml")
"""Imperative verbs by the kind of request."""

_GROUP = {verb: group for group, verbs in VERBS.items() for verb in verbs}
_POLITE = re.compile(r"^(?:please|kindly|can you|could you|would you|i want you to|i need you to)[\s,]+", re.IGNORECASE)


def read_lines(path: Path, what: str) -> list[tuple[str, str]]:
    """Return ("path:number", line) of each line of a user's file that is not empty. `what` names its content in errors."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {what} from {path}: {error}") from error
    return [(f"{path}:{number}", line) for number, line in enumerate(lines, 1) if line.strip()]


def read_json_line(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not JSON: {error}") from error


def tokens(text: str) -> int:
    """Return the number of words and punctuation marks, which approximates a model's token count."""
    return len(TOKEN.findall(text))


def words(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", text)]


def sentences(text: str) -> list[str]:
    """Return the sentences; a list item counts as one sentence."""
    result: list[str] = []
    for line in text.splitlines():
        if line.strip():
            result += [line.strip()] if _LIST_LINE.match(line) else [s.strip() for s in _END.split(line.strip())]
    return [sentence for sentence in result if sentence]


def list_items(text: str) -> list[str]:
    """Return the texts of the list items, without bullets and numbers."""
    return [match[1].strip() for line in text.splitlines() if (match := _LIST_LINE.match(line))]


def leading_verb(text: str) -> tuple[str, str] | None:
    """Return (verb as written, its group) if the text starts with an imperative, with or without "please"."""
    match = re.match(r"[^\W\d_]+", without_politeness(text))
    if match is None or match[0].lower() not in _GROUP:
        return None
    return match[0], _GROUP[match[0].lower()]


def without_politeness(text: str) -> str:
    return _POLITE.sub("", text.lstrip())


def capital(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def ended(text: str) -> str:
    """Return the text with a full stop, unless it ends with punctuation."""
    text = text.rstrip()
    return text if not text or text[-1] in ".!?:…؟" else text + "."
