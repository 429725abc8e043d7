"""`notion_write`: notes into a SQLite file of one's own, or into Notion where there is a token for it."""

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
_LONGEST = 2000
"""Characters in one block of text, by Notion's own rule."""
_START = re.compile(
    r"^\s*(please\s+)?(can you\s+)?(write down|write|note|remember|save|jot down|record|add|remind me)\b"
    r"\s*(a |an |this |the )?(note|memo|todo|to-do)?\s*(that|about|of|saying|to|:)?\s*",
    re.IGNORECASE,
)


class NoteStore(Protocol):
    """Somewhere notes go."""

    def write(self, title: str, text: str) -> str:
        """Keep a note; where it is."""
        ...


class LocalNotes:
    """Notes in a journal: on the disk when `write` returns."""

    def __init__(self, path: str | Path) -> None:
        self._journal = Journal(path)

    def write(self, title: str, text: str) -> str:
        id = uuid.uuid4().hex[:12]
        self._journal.put(Entry(kind="note", id=id, body={"title": title, "text": text}))
        return f"note {id}"

    def latest(self, count: int = 10) -> list[dict[str, str]]:
        """The last notes, oldest first."""
        return [{"id": entry.id, **entry.body} for entry in self._journal.latest("note", count)]

    def __len__(self) -> int:
        return self._journal.count("note")

    def close(self) -> None:
        self._journal.close()


class NotionNotes:
    """Pages below a page or in a database of Notion, by its public API. The token is sent to `base_url` only."""

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
            raise ToolError("notes need a Notion page or a database to go below; give exactly one of them")
        if not base_url.startswith(("https://", "http://127.0.0.1", "http://localhost")):
            raise ToolError(f"base_url is {base_url!r}; a token is only sent over https")
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
        url, again = f"{self.base_url}/v1/pages", (409, 429, 500, 502, 503)
        try:
            page = post_json(
                url,
                body,
                headers,
                seconds=self.seconds,
                retries=self.retries,
                again=again,
                largest=1_000_000,
                longest_wait=5.0,
            )
        except urllib.error.HTTPError as error:
            try:
                message = str(json.loads(error.read(10_000)).get("message", ""))
            except (ValueError, OSError):
                message = error.reason
            raise ToolError(f"Notion answered {error.code}: {message}") from error
        except (urllib.error.URLError, TimeoutError) as error:
            raise ToolError(f"Notion could not be reached at {self.base_url}: {error}") from error
        return str(page.get("url") or page.get("id"))


class NoteTool:
    """Writes a note; what comes before "that" or a colon is dropped."""

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
    """What is to be noted, without "please write down that"."""
    kept = _START.sub("", text).strip().strip("\"'“”")
    return kept or text.strip()


def _rich(text: str) -> dict[str, Any]:
    return {"type": "text", "text": {"content": text[:_LONGEST]}}
