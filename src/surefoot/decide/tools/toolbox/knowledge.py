"""`search` and `answer`: finding the documents, and saying what they say."""

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
"""(question, pieces of context) → the answer, as text or a coroutine of it."""

_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")
_EMPTY = frozenset(
    words_of("what is are the a an of to in on for how do does did which who when where why and or it with")
)


class SearchTool:
    """The documents that fit a query, with where they are."""

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
            raise ToolError("there are no documents yet; fill the memory first (`memory.add_files(DIR)`)")
        lines = [f"{hit.score:.2f}  {hit.passage.id}: {_short(hit.passage.text)}" for hit in hits]
        return ToolResult(
            text="\n".join(lines),
            data=[{"id": hit.passage.id, "score": hit.score, "text": hit.passage.text} for hit in hits],
            sources=[hit.passage.id for hit in hits],
            quality=hits[0].score,
        )


class AnswerTool:
    """The sentences of the context that answer a question; with `llm`, what the user's own model makes of them."""

    name = "answer"
    description = "Answer a question in a sentence or two from what is known: what is, why does, explain, describe"
    schema = object_schema({"question": {"type": "string"}}, ["question"])

    def __init__(self, memory: TextMemory, encoder: Encoder, llm: Llm | None = None) -> None:
        self.memory, self.encoder, self.llm = memory, encoder, llm

    async def call(self, request: ToolRequest) -> ToolResult:
        question = str(request.arguments.get("question", request.text))
        hits = await asyncio.to_thread(self.memory.lookup, question, 4)
        context = list(request.context)
        known = {id for id, _ in context}
        context = [(hit.passage.id, hit.passage.text) for hit in hits if hit.passage.id not in known] + context
        if not context:
            raise ToolError("there is nothing to answer from; fill the memory, or give `answer` an llm")
        if self.llm is not None:
            said = self.llm(question, [text for _, text in context])
            said = await said if inspect.isawaitable(said) else said
            return ToolResult(text=str(said), sources=[id for id, _ in context[:4]])
        return self._extract(question, context)

    def _extract(self, question: str, context: list[tuple[str, str]]) -> ToolResult:
        sentences = [
            (id, line.strip(" -*|#"))
            for id, text in context
            for line in _SENTENCE.split(text)
            if 20 <= len(line.strip(" -*|#")) <= 400
        ]
        if not sentences:
            raise ToolError("what was found has no sentences to answer with; try `search`")
        asked = set(words_of(question)) - _EMPTY
        vectors = self.encoder.encode([question, *(line for _, line in sentences)])
        near = vectors[1:] @ vectors[0]
        overlap = np.array([len(asked & set(words_of(line))) / max(1, len(asked)) for _, line in sentences])
        score = 0.5 * near + 0.5 * overlap
        best = sorted(np.argsort(-score, kind="stable")[:2])
        return ToolResult(
            text=" ".join(sentences[i][1] for i in best),
            sources=list(dict.fromkeys(sentences[i][0] for i in best)),
            quality=float(np.clip(score.max(), 0.0, 1.0)),
        )


def _short(text: str, length: int = 110) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
