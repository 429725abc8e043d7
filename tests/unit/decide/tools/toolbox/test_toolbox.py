"""The five tools do what they say, on the shipped questions and against hostile ones."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import threading
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.tools.protocol import ToolRequest
from surefoot.decide.tools.toolbox.assistant import database, questions, tools
from surefoot.decide.tools.toolbox.calc import evaluate, find_expression, show
from surefoot.decide.tools.toolbox.notes import LocalNotes, NoteTool, NotionNotes, note_of
from surefoot.decide.tools.toolbox.sql import QueryTool
from surefoot.errors import ToolError


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    made, _ = tools(HashingEncoder(), tmp_path_factory.mktemp("demo"))
    return {each.name: each for each in made}


@pytest.mark.parametrize("name", ["calc", "search", "answer", "query", "notion_write"])
def test_each_tool_answers_its_shipped_questions_rightly(five, name: str):
    asked = questions()[name]
    assert len(asked) >= 10
    for question, expected in asked:
        text = asyncio.run(five[name].call(ToolRequest(text=question))).text
        first = text.splitlines()[0] if name == "search" else text
        assert re.search(expected, first), f"{question!r} got {text[:200]!r}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1/3 + 1/6", Fraction(1, 2)),
        ("2 ^ 3 ^ 2", Fraction(512)),
        ("-2 ** 2", Fraction(-4)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("(1 + 2) * -3", Fraction(-9)),
        ("7 % 3 + 5!", Fraction(121)),
        ("1e3 / 8", Fraction(125)),
    ],
)
def test_calc_is_exact(text: str, value: Fraction):
    assert evaluate(text) == value


@pytest.mark.parametrize(
    "hostile",
    [
        "9**9**9",
        "10**500",
        "1e999",
        "9" * 450,
        "1/0",
        "(" * 60 + "1" + ")" * 60,
        "2**0.3",
        "171!!",
        "5 % 0",
        "-" * 80 + "1",
    ],
)
def test_calc_refuses_what_would_occupy_the_machine(hostile: str):
    with pytest.raises(ToolError):
        evaluate(hostile)


def test_calc_runs_no_code_and_shows_numbers_as_people_write_them():
    for text in ("__import__('os').system('ls')", "what is love"):
        with pytest.raises(ToolError):
            evaluate(find_expression(text))
    assert show(Fraction(1, 8)) == "0.125"
    assert show(Fraction(-7, 4)) == "-1.75"
    assert show(Fraction(1, 3)).startswith("0.333333333333 (1/3)")


@pytest.mark.parametrize(
    "sql",
    [
        "WITH x AS (SELECT 1) DELETE FROM envs",
        "SELECT load_extension('x')",
        "SELECT * FROM pragma_table_info('envs')",
        "SELECT 1; DROP TABLE envs",
    ],
)
def test_query_only_reads(tmp_path: Path, sql: str):
    path = database(tmp_path / "d.sqlite")
    with pytest.raises(ToolError):
        QueryTool(path).run(sql)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM envs").fetchone() == (8,)


def test_query_has_no_attach_a_deadline_and_a_cap_on_rows(tmp_path: Path):
    path = database(tmp_path / "d.sqlite")
    with pytest.raises(ToolError, match="no table is named"):
        QueryTool(path).run("ATTACH 'other.db' AS o")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(ToolError, match=r"longer than 0\.1 s"):
        QueryTool(path, seconds=0.1).run(endless)
    found = QueryTool(path, rows=3).run("SELECT name FROM envs")
    assert (len(found.data["rows"]), found.warnings) == (3, ["the first 3 rows; there are more"])
    with pytest.raises(ToolError, match="no database"):
        QueryTool(tmp_path / "nowhere.sqlite")


def test_notes_stay_and_a_note_is_what_follows_the_command(tmp_path: Path):
    store = LocalNotes(tmp_path / "n.sqlite")
    asyncio.run(NoteTool(store).call(ToolRequest(text="Please write down that tea is out")))
    store.close()
    assert LocalNotes(tmp_path / "n.sqlite").latest()[0]["text"] == "tea is out"
    assert note_of("Write down") == "Write down"


@pytest.fixture
def notion():
    """A double of Notion's API: refuses a wrong token, is busy once, then makes pages."""

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

    there = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=there.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{there.server_port}", Handler.pages
    there.shutdown()


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
    with pytest.raises(ToolError, match="only sent over https"):
        NotionNotes("t", page="p", base_url="http://example.com")
    with pytest.raises(ToolError, match="exactly one"):
        NotionNotes("t")
