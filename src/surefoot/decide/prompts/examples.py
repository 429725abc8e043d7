"""Worked examples before a prompt: rows with right answers that ask for the same kind of thing."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.prompts.structure import CUE, append, structure
from surefoot.decide.prompts.tasks import TaskRow
from surefoot.decide.prompts.text import tokens

EXAMPLES = "examples"
"""Name of the mutation."""
TITLE = "Examples:"
TASK_TITLE = "Now answer this one in the same way:"
# More examples cost more tokens than they gain: SmolLM2 gains 1.25 nats by one, 1.35 by two and 1.48 by four.
MOST_EXAMPLES = 3
# Cosine of the words of two prompts, from which one is an example for the other: prompts of one task are above it,
# prompts of different tasks rarely.
_LEAST = 0.4
_CUE = "Answer:"
# What a check compares with is the answer itself only for these.
_ANSWERS = ("", "exact", "contains", "number")


class Examples:
    """Rows with right answers, found by the words of their prompts.

    Args:
        rows: A task. Rows whose check compares with a pattern are left out.
    """

    def __init__(self, rows: Iterable[TaskRow] = ()) -> None:
        self.rows = [row for row in rows if row.check in _ANSWERS]
        self._encoder = HashingEncoder(512)
        self._vectors = self._encode([row.prompt for row in self.rows])

    def nearest(self, prompt: str) -> list[tuple[float, TaskRow]]:
        """Return (cosine, row) of the rows like a prompt, the nearest first; never a row with the prompt itself."""
        if not self.rows:
            return []
        cosines, form = self._vectors @ self._encode([prompt])[0], structure(prompt).form
        return [
            (float(cosines[i]), self.rows[i])
            for i in np.argsort(-cosines, kind="stable")
            if cosines[i] >= _LEAST
            and self.rows[i].prompt.strip() != prompt.strip()
            and structure(self.rows[i].prompt).form == form
        ]

    def before(self, text: str, original: str, room: int) -> str:
        """Return the text below as many examples as fit into `room` more tokens; the text itself if none does."""
        shown, body = list[str](), text if CUE.search(text.rstrip()) else append(text, _CUE)
        for _, row in self.nearest(original):
            example = f"{CUE.sub('', row.prompt.rstrip()).rstrip()}\n\n{_CUE} {row.answer.strip()}"
            longer = _joined([*shown, example], body)
            if tokens(longer) - tokens(text) <= room:
                shown.append(example)
            if len(shown) == MOST_EXAMPLES:
                break
        # The nearest one last: a model follows what it read last.
        return _joined(shown[::-1], body) if shown else text

    def _encode(self, prompts: list[str]) -> np.ndarray:
        # Two sums with other numbers are the same task.
        return self._encoder.encode([re.sub(r"\d+", "0", prompt) for prompt in prompts])


def _joined(examples: list[str], body: str) -> str:
    return "\n\n".join([TITLE, *examples, TASK_TITLE, body])


def split_examples(text: str) -> tuple[str, str]:
    """Return (the examples before a prompt, the prompt); the first is empty if there are none."""
    head, title, body = text.partition(f"\n\n{TASK_TITLE}\n\n")
    return (head + title, body) if title and head.startswith(TITLE) else ("", text)
