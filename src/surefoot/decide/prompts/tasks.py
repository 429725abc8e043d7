"""Tasks: prompts with the right answer or a check, scored by what a language model does with the prompt."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from surefoot.decide.prompts.text import read_json_line, read_lines
from surefoot.errors import ConfigError


class AnswersPrompts(Protocol):
    """A language model that a task is measured with."""

    name: str
    likelihoods: bool
    """True if `log_likelihood` works; a model behind a chat API only returns its replies."""

    def log_likelihood(self, prompts: Sequence[str], answers: Sequence[str]) -> np.ndarray:
        """Return the log-probability of each answer to its prompt, per token of the answer, [N]."""
        ...

    def reply(self, prompts: Sequence[str]) -> list[str]:
        """Return the model's most probable reply to each prompt."""
        ...


_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", re.IGNORECASE)


def _words(text: str) -> str:
    return " ".join(text.split()).strip(" .!\"'`*").lower()


def _last_number(text: str) -> float | None:
    numbers = _NUMBER.findall(text)
    return float(numbers[-1].replace(",", "")) if numbers else None


def _number(reply: str, answer: str) -> bool:
    """Compare the last number of the reply: models write the result last."""
    value, wanted = _last_number(reply), _last_number(answer)
    return value is not None and wanted is not None and math.isclose(value, wanted, rel_tol=1e-6, abs_tol=1e-9)


def _json(reply: str, answer: str) -> bool:
    """Return True if the reply is JSON, in a code fence or not; with an answer, JSON that contains its fields."""
    fenced = re.search(r"```(?:json)?\s*(.*?)```", reply, re.DOTALL)
    try:
        value: Any = json.loads(fenced[1] if fenced else reply)
        wanted: Any = json.loads(answer) if answer.strip() else None
    except (ValueError, RecursionError):
        return False
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(key in value and value[key] == x for key, x in wanted.items())
    return wanted is None or value == wanted


CHECKS: dict[str, Callable[[str, str], bool]] = {
    "exact": lambda reply, answer: _words(reply) == _words(answer),
    "contains": lambda reply, answer: (
        re.search(rf"(?<!\w){re.escape(_words(answer))}(?!\w)", _words(reply)) is not None
    ),
    "regex": lambda reply, answer: re.search(answer, reply) is not None,
    "json": _json,
    "number": _number,
}
"""Checks of a reply, by name: (reply, answer) → True if the reply is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A prompt and what a good reply to it is."""

    prompt: str
    answer: str
    check: str = ""
    """Name in `CHECKS`; empty: the log-likelihood of the answer."""


def read_task(path: Path) -> list[TaskRow]:
    """Return the rows of a .jsonl file, an object with `prompt` and `answer` or `check` per line.

    Raise `ConfigError` with the line's number.
    """
    rows = [_row(line, where) for where, line in read_lines(path, "a task")]
    if not rows:
        raise ConfigError(f'{path} has no rows; it needs JSON objects with "prompt" and "answer", one per line')
    return rows


def _row(line: str, where: str) -> TaskRow:
    row = read_json_line(line, where)
    prompt = row.get("prompt") if isinstance(row, dict) else None
    if not isinstance(prompt, str) or not prompt.strip():
        raise ConfigError(f'{where} has no text in "prompt"; the row is {line[:60]!r}')
    answer, check = row.get("answer", ""), row.get("check", "")
    if check not in ("", *CHECKS):
        raise ConfigError(f"{where} has the check {str(check)[:40]!r}; known checks: {', '.join(CHECKS)}")
    # Numbers and objects are what a person writes for number and json.
    answer = answer if isinstance(answer, str) else json.dumps(answer)
    if not answer.strip() and check != "json":
        raise ConfigError(f'{where} has no "answer"; give the right answer, or what the check compares with')
    if check == "regex":
        try:
            re.compile(answer)
        except re.error as error:
            raise ConfigError(f"{where} has a regular expression that does not compile: {error}") from error
    if check == "number" and _last_number(answer) is None:
        raise ConfigError(f"{where} has the answer {answer[:40]!r}; the check number needs a number")
    return TaskRow(prompt=prompt, answer=answer, check=check)


class TaskScorer:
    """Scores a version of a prompt by what a model does with it; each version is evaluated once.

    The score of a row is the log-likelihood of its answer per token (at most 0), or 1 or 0 for a check. Rows with the same
    prompt are averaged.

    Args:
        rows: The task.
        model: Answers the prompts.
    """

    def __init__(self, rows: Sequence[TaskRow], model: AnswersPrompts) -> None:
        self.rows, self.model = list(rows), model
        self._of: dict[str, list[TaskRow]] = {}
        for row in self.rows:
            self._of.setdefault(row.prompt, []).append(row)
        self._known: dict[tuple[str, TaskRow], float] = {}
        self.evaluations = 0
        """Number of times that the model was given a prompt."""

    @property
    def prompts(self) -> list[str]:
        """The prompts of the task, each once."""
        return list(self._of)

    def score(self, prompts: Sequence[str], originals: Sequence[str]) -> np.ndarray:
        """Return [N]: the score of each text as a version of its original, which must be a prompt of the task."""
        pairs = [(text, row) for text, first in zip(prompts, originals, strict=True) for row in self._rows(first)]
        new = list(dict.fromkeys(pair for pair in pairs if pair not in self._known))
        by_reply = [pair for pair in new if pair[1].check or not self.model.likelihoods]
        by_likelihood = [pair for pair in new if not (pair[1].check or not self.model.likelihoods)]
        if by_likelihood:
            values = self.model.log_likelihood(
                [text for text, _ in by_likelihood], [r.answer for _, r in by_likelihood]
            )
            self._known |= zip(by_likelihood, (float(x) for x in values), strict=True)
        if by_reply:
            # A reply does not depend on the answer: one per text, also if several rows share it.
            texts = list(dict.fromkeys(text for text, _ in by_reply))
            replies = dict(zip(texts, self.model.reply(texts), strict=True))
            for text, row in by_reply:
                self._known[text, row] = float(CHECKS[row.check or "contains"](replies[text], row.answer))
        self.evaluations += len(new)
        return np.array(
            [
                float(np.mean([self._known[text, row] for row in self._rows(first)]))
                for text, first in zip(prompts, originals, strict=True)
            ]
        )

    def _rows(self, original: str) -> list[TaskRow]:
        rows = self._of.get(original)
        if rows is None:
            raise ConfigError(f"the task has no row for the prompt {original[:60]!r}")
        return rows
