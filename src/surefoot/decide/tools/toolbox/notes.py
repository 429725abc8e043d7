"""`notion_write`: write notes to a local SQLite file, or to Notion with a token."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.error
import uuid
from pathlib import Path
from typing import Any, Protocol

from surefoot._http import post_json
from surefoot.data.journal import Entry, Journal
from surefoot.decide.tools.protocol import ToolRequest, ToolResult, object_schema
from surefoot.errors import ToolError

NOTION_VERSION = "2022-06-28"
# Notion's limit of characters per text block.
_LONGEST = 2000
_START = re.compile(
    r"^\s*(please\s+)?(can you\s+)?(write down|write|note|remember|save|jot down|record|add|remind me)\b"
    r"\s*(a |an |this |the )?(note|memo|todo|to-do)?\s*(that|about|of|saying|to|:)?\s*",
    re.IGNORECASE,
)


class NoteStore(Protocol):
    """A place that notes are written to."""

    def write(self, title: str, text: str) -> str:
        """Write a note and return where it is."""
        ...


class LocalNotes:
    """Notes in a SQLite file; a note is on disk when `write` returns."""

    def __init__(self, path: str | Path) -> None:
        self._journal = Journal(path)

    def write(self, title: str, text: str) -> str:
        id = uuid.uuid4().hex[:12]
        self._journal.put(Entry(kind="note", id=id, body={"title": title, "text": text}))
        return f"note {id}"

    def latest(self, count: int = 10) -> list[dict[str, str]]:
        """Return the last notes, oldest first."""
        return [{"id": entry.id, **entry.body} for entry in self._journal.latest("note", count)]

    def __len__(self) -> int:
        return self._journal.count("note")

    def close(self) -> None:
        self._journal.close()


class NotionNotes:
    """Notes as Notion pages, through its public API.

    Args:
        token: Integration token; sent to `base_url` only.
        page: Id of the page that notes are created under; pass either this or `database`.
        database: Id of the database that notes are added to.
        base_url: Address of the API.
        seconds: Timeout per attempt.
        retries: Further attempts after a temporary error.
    """

    def __init__(
        self,
        token: str,
        *,
        page: str | None = None,
        database: str | None = None,
        base_url: str = "https://api.notion.com",
        seconds: float = 10.0,
        retries: int = 2,
    ) -> None:
        if (page is None) == (database is None):
            raise ToolError("pass exactly one of page and database, the place in Notion that notes go to")
        if not base_url.startswith(("https://", "http://127.0.0.1", "http://localhost")):
            raise ToolError(f"base_url is {base_url!r}; the token is sent over https only")
        self._token, self.base_url, self.seconds, self.retries = token, base_url.rstrip("/"), seconds, retries
        self._parent = {"page_id": page} if page is not None else {"database_id": database}
        self._title = "title" if page is not None else "Name"

    def write(self, title: str, text: str) -> str:
        parts = [text[i : i + _LONGEST] for i in range(0, len(text), _LONGEST)]
        body = {
            "parent": self._parent,
            "properties": {self._title: {"title": [_rich(title)]}},
            "children": [
                {"object": "block", "type": "paragraph", "paragraph": {"rich_text": [_rich(part)]}} for part in parts
            ],
        }
        headers = {"Authorization": f"Bearer {self._token}", "Notion-Version": NOTION_VERSION}
        # Conflicts, rate limits and server errors are temporary. A longer wait than 5 s would exceed a tool's time limit.
        limits: dict[str, Any] = {"again": (409, 429, 500, 502, 503), "largest": 1_000_000, "longest_wait": 5.0}
        url = f"{self.base_url}/v1/pages"
        try:
            page = post_json(url, body, headers, seconds=self.seconds, retries=self.retries, **limits)
        except urllib.error.HTTPError as error:
            try:
                message = str(json.loads(error.read(10_000)).get("message", ""))
            except (ValueError, OSError):
                message = error.reason
            raise ToolError(f"Notion returned {error.code}: {message}") from error
        except (urllib.error.URLError, TimeoutError) as error:
            raise ToolError(f"Notion could not be reached at {self.base_url}: {error}") from error
        return str(page.get("url") or page.get("id"))


class NoteTool:
    """Write a note; a command in front ("write down that …") is removed."""

    name = "notion_write"
    description = "Write a note: remember, save, note down, write down something for later"
    schema = object_schema({"text": {"type": "string"}, "title": {"type": "string"}}, ["text"])

    def __init__(self, store: NoteStore) -> None:
        self.store = store

    async def call(self, request: ToolRequest) -> ToolResult:
        text = str(request.arguments.get("text") or note_of(request.text))
        title = str(request.arguments.get("title") or text[:60])
        where = await asyncio.to_thread(self.store.write, title, text)
        return ToolResult(
            text=f"noted: {text} ({where})", data={"title": title, "text": text, "where": where}, quality=1.0
        )


def note_of(text: str) -> str:
    """Return the text to be noted, without "please write down that"."""
    return _START.sub("", text).strip().strip("\"'“”") or text.strip()


def _rich(text: str) -> dict[str, Any]:
    return {"type": "text", "text": {"content": text[:_LONGEST]}}
