"""What the demo ships: a corpus, a database and questions, and the assistant that is made of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from surefoot.decide.encoders.encoder import Encoder, make_encoder
from surefoot.decide.promotion import Versions
from surefoot.decide.tools.agent import ToolAgent
from surefoot.decide.tools.memory import TextMemory, pieces
from surefoot.decide.tools.protocol import Tool
from surefoot.decide.tools.toolbox.calc import CalcTool
from surefoot.decide.tools.toolbox.knowledge import AnswerTool, SearchTool
from surefoot.decide.tools.toolbox.notes import LocalNotes, NoteTool
from surefoot.decide.tools.toolbox.sql import QueryTool
from surefoot.errors import ToolError


def questions() -> dict[str, list[tuple[str, str]]]:
    """By tool: questions it can answer, and an expression its answer matches."""
    data = json.loads(_read("questions.json"))
    return {tool: [(question, expected) for question, expected in rows] for tool, rows in data.items()}


def database(path: Path) -> Path:
    """The shipped tables as a SQLite file."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path)
        db.executescript(_read("demo.sql"))
        db.close()
    return path


def corpus(memory: TextMemory) -> int:
    """The shipped pages into a memory; how many pieces."""
    text = _read("corpus.md")
    for piece in pieces(text):
        memory.add(piece, piece.splitlines()[0])
    return len(memory)


def tools(
    encoder: Encoder, directory: Path, *, docs: Path | None = None, db: Path | None = None
) -> tuple[list[Tool], TextMemory]:
    """The five tools over the shipped data, or over a user's own documents and database."""
    memory = TextMemory(encoder)
    if docs is None:
        corpus(memory)
    elif memory.add_files(docs) == 0:
        raise ToolError(f"there are no .md, .txt or .rst files below {docs}")
    store = LocalNotes(directory / "notes.sqlite")
    made: list[Tool] = [
        AnswerTool(memory, encoder),
        SearchTool(memory),
        CalcTool(),
        NoteTool(store),
        QueryTool(database(directory / "demo.sqlite") if db is None else db),
    ]
    return made, memory


def assistant(
    directory: Path,
    *,
    encoder: str = "auto",
    docs: Path | None = None,
    db: Path | None = None,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> ToolAgent:
    """An agent with the five tools, kept in a directory."""
    versions = Versions(directory / "versions")
    if encoder == "auto" and versions.live is not None:
        # The policy that is already there would be of no use to another encoder.
        encoder = str(versions.load().parts["agent"]["encoder"]) or encoder
    encodes = make_encoder(encoder, say=say)
    shipped, memory = tools(encodes, directory, docs=docs, db=db)
    return ToolAgent(shipped, encoder=encodes, memory=memory, directory=directory, **options)


def _read(name: str) -> str:
    return (files("surefoot.decide.tools.toolbox") / name).read_text(encoding="utf-8")
