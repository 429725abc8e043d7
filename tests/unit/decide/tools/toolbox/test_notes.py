"""Tests of `surefoot.decide.tools.toolbox.notes`."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from surefoot.decide.tools.protocol import ToolRequest
from surefoot.decide.tools.toolbox.notes import LocalNotes, NoteTool, NotionNotes, note_of
from surefoot.errors import ToolError


def test_notes_stay_and_a_note_is_what_follows_the_command(tmp_path: Path):
    store = LocalNotes(tmp_path / "n.sqlite")
    asyncio.run(NoteTool(store).call(ToolRequest(text="Please write down that tea is out")))
    store.close()
    assert LocalNotes(tmp_path / "n.sqlite").latest()[0]["text"] == "tea is out"
    assert note_of("Write down") == "Write down"


@pytest.fixture
def notion():
    """A double of Notion's API: refuses a wrong token, is busy once, then creates pages."""

    class Handler(BaseHTTPRequestHandler):
        pages: ClassVar[list[dict]] = []
        busy = 1

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers["Authorization"] != "Bearer good" or not self.headers["Notion-Version"]:
                return self.answer(401, {"message": "API token is invalid."})
            if Handler.busy:
                Handler.busy -= 1
                return self.answer(429, {}, "0")
            Handler.pages.append({"path": self.path, **body})
            return self.answer(200, {"object": "page", "id": "p1", "url": "https://notion.so/p1"})

        def answer(self, code: int, body: dict, wait: str | None = None) -> None:
            self.send_response(code)
            if wait is not None:
                self.send_header("Retry-After", wait)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", Handler.pages
    server.shutdown()


def test_notes_go_to_notion_with_a_token_and_long_ones_in_several_blocks(notion):
    url, pages = notion
    where = NotionNotes("good", page="abc", base_url=url).write("title", "x" * 4500)
    assert where == "https://notion.so/p1"
    assert pages[0]["path"] == "/v1/pages"
    assert pages[0]["parent"] == {"page_id": "abc"}
    assert [len(b["paragraph"]["rich_text"][0]["text"]["content"]) for b in pages[0]["children"]] == [2000, 2000, 500]
    with pytest.raises(ToolError, match="401: API token is invalid"):
        NotionNotes("bad", page="abc", base_url=url).write("t", "x")


def test_a_token_is_only_sent_over_https_and_needs_one_place_to_write_to():
    with pytest.raises(ToolError, match="sent over https only"):
        NotionNotes("t", page="p", base_url="http://example.com")
    with pytest.raises(ToolError, match="exactly one"):
        NotionNotes("t")
