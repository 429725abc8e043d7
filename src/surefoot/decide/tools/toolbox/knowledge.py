"""`search` and `answer`: find passages in documents, and answer questions from them."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.decide.encoders.encoder import Encoder
from surefoot.decide.tools.memory import TextMemory, words_of
from surefoot.decide.tools.protocol import ToolRequest, ToolResult, object_schema
from surefoot.errors import ToolError

Llm = Callable[[str, list[str]], Any]
"""(question, passages) → the answer, or an awaitable of it."""

_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")
_EMPTY = frozenset(
    words_of("what is are the a an of to in on for how do does did which who when where why and or it with")
)


class SearchTool:
    """Return the passages that match a query, with their sources."""

    name = "search"
    description = "Search the documents: find, look up or show pages and passages that mention something"
    schema = object_schema(
        {"text": {"type": "string"}, "k": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5}}, ["text"]
    )

    def __init__(self, memory: TextMemory) -> None:
        self.memory = memory

    async def call(self, request: ToolRequest) -> ToolResult:
        k = min(max(int(request.arguments.get("k", 5)), 1), 20)
        text = str(request.arguments.get("text", request.text))
        hits = await asyncio.to_thread(self.memory.lookup, text, k)
        if not hits:
            raise ToolError("the memory has no documents; add some with `memory.add_files(DIR)`")
        lines = [f"{hit.score:.2f}  {hit.passage.id}: {shorten(hit.passage.text, 110)}" for hit in hits]
        return ToolResult(
            text="\n".join(lines),
            data=[{"id": hit.passage.id, "score": hit.score, "text": hit.passage.text} for hit in hits],
            sources=[hit.passage.id for hit in hits],
            quality=hits[0].score,
        )


class AnswerTool:
    """Answer a question with the best sentences of the context, or with your language model.

    Args:
        memory: Where passages are looked up.
        encoder: Compares sentences with the question.
        llm: Called with the question and the passages; None: the two best sentences are the answer.
    """

    name = "answer"
    description = "Answer a question in a sentence or two from what is known: what is, why does, explain, describe"
    schema = object_schema({"question": {"type": "string"}}, ["question"])

    def __init__(self, memory: TextMemory, encoder: Encoder, llm: Llm | None = None) -> None:
        self.memory, self.encoder, self.llm = memory, encoder, llm

    async def call(self, request: ToolRequest) -> ToolResult:
        question = str(request.arguments.get("question", request.text))
        hits = await asyncio.to_thread(self.memory.lookup, question, 4)
        known = {id for id, _ in request.context}
        context = [(hit.passage.id, hit.passage.text) for hit in hits if hit.passage.id not in known]
        context += request.context
        if not context:
            raise ToolError("the memory has no documents to answer from; add some with `memory.add_files(DIR)`")
        if self.llm is not None:
            answer = self.llm(question, [text for _, text in context])
            answer = await answer if inspect.isawaitable(answer) else answer
            return ToolResult(text=str(answer), sources=[id for id, _ in context[:4]])
        return self._extract(question, context)

    def _extract(self, question: str, context: list[tuple[str, str]]) -> ToolResult:
        """Return the two best sentences, by cosine and shared words, in their original order."""
        # Shorter lines are headings, longer ones tables or code.
        sentences = [
            (id, line.strip(" -*|#"))
            for id, text in context
            for line in _SENTENCE.split(text)
            if 20 <= len(line.strip(" -*|#")) <= 400
        ]
        if not sentences:
            raise ToolError("the passages have no sentences to answer with; use `search`")
        words = set(words_of(question)) - _EMPTY
        vectors = self.encoder.encode([question, *(line for _, line in sentences)])
        near = vectors[1:] @ vectors[0]
        overlap = np.array([len(words & set(words_of(line))) / max(1, len(words)) for _, line in sentences])
        score = 0.5 * near + 0.5 * overlap
        best = sorted(np.argsort(-score, kind="stable")[:2])
        return ToolResult(
            text=" ".join(sentences[i][1] for i in best),
            sources=list(dict.fromkeys(sentences[i][0] for i in best)),
            quality=float(np.clip(score.max(), 0.0, 1.0)),
        )


def shorten(text: str, length: int) -> str:
    """Return the text as one line of at most `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
