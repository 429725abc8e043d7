"""The demo assistant: five tools over shipped documents and a shipped database, and questions to ask it."""

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
    """Return by tool the questions it can answer, each with a pattern that the answer matches."""
    data = json.loads(_read("questions.json"))
    return {tool: [(question, expected) for question, expected in rows] for tool, rows in data.items()}


def database(path: Path) -> Path:
    """Create the shipped database at `path` if it does not exist; return the path."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path)
        db.executescript(_read("demo.sql"))
        db.close()
    return path


def corpus(memory: TextMemory) -> int:
    """Add the shipped pages to a memory; return the number of passages."""
    for piece in pieces(_read("corpus.md")):
        memory.add(piece, piece.splitlines()[0])
    return len(memory)


def tools(
    encoder: Encoder, directory: Path, *, docs: Path | None = None, db: Path | None = None
) -> tuple[list[Tool], TextMemory]:
    """Return the five tools and their memory, over the shipped data or over `docs` and `db`."""
    memory = TextMemory(encoder)
    if docs is None:
        corpus(memory)
    elif memory.add_files(docs) == 0:
        raise ToolError(f"{docs} contains no .md, .txt or .rst files")
    five: list[Tool] = [
        AnswerTool(memory, encoder),
        SearchTool(memory),
        CalcTool(),
        NoteTool(LocalNotes(directory / "notes.sqlite")),
        QueryTool(database(directory / "demo.sqlite") if db is None else db),
    ]
    return five, memory


def assistant(
    directory: Path,
    *,
    encoder: str = "auto",
    docs: Path | None = None,
    db: Path | None = None,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> ToolAgent:
    """Return an agent with the five tools.

    Args:
        directory: Holds the agent's runs, versions, notes and the demo database.
        encoder: Name of an encoder; `auto` uses the one that a saved policy was trained with.
        docs: Directory of documents to search; default: the shipped pages.
        db: SQLite file to query; default: the shipped database.
        say: Called with one sentence per stage of slow work.
        **options: Passed to `ToolAgent`.
    """
    versions = Versions(directory / "versions")
    if encoder == "auto" and versions.live is not None:
        # A saved policy works with its own encoder only.
        encoder = str(versions.load().parts["agent"]["encoder"]) or encoder
    text_encoder = make_encoder(encoder, say=say)
    shipped, memory = tools(text_encoder, directory, docs=docs, db=db)
    return ToolAgent(shipped, encoder=text_encoder, memory=memory, directory=directory, **options)


def _read(name: str) -> str:
    return (files("surefoot.decide.tools.toolbox") / name).read_text(encoding="utf-8")
