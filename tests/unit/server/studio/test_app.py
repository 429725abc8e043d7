"""The studio over HTTP, and the page that is shipped."""

import asyncio
import re
import runpy
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from surefoot.server.studio.app import STATIC, StudioApp
from surefoot.server.studio.guard import TabGuard

ROOT = Path(__file__).resolve().parents[4]


def test_the_page_is_there_before_torch_is(tmp_path: Path) -> None:
    # All that `surefoot studio` imports before it listens, and what the page asks for first.
    code = (
        "import asyncio, pathlib, sys, surefoot.server.studio.app as app\n"
        "from surefoot.compat.dnne import register\n"
        "register()\n"
        "studio = app.Studio(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[1]), print)\n"
        "asyncio.run(studio.ask(1, 'hello', {}))\n"
        "print('torch' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_the_page_that_is_shipped_is_made_of_the_sources_as_they_are() -> None:
    told = subprocess.run(
        [sys.executable, ROOT / "scripts" / "studio.py", "--check"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout


def test_the_page_and_all_it_names_go_into_the_wheel() -> None:
    needed = runpy.run_path(str(ROOT / "scripts" / "wheels.py"))["NEEDED"]  # `make wheels` looks for each of them
    named = re.findall(r'(?:src|href)="\./([^"]+)"', (STATIC / "index.html").read_text())
    assert len(named) >= 2
    for name in ["index.html", "THIRD_PARTY_NOTICES.txt", *named]:
        assert f"surefoot/server/studio/static/{name}" in needed
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]
    left_out = [file for file in needed for pattern in settings["wheel"]["exclude"] if fnmatch(file, pattern)]
    assert left_out == []


def test_pages_are_refused_without_the_token_and_a_report_of_nothing_is_not_found(tmp_path) -> None:
    guard = TabGuard(port=8766)
    app = StudioApp(tmp_path, tmp_path / "runs", guard).asgi()

    def answer(path: str, query: str = "", **headers: str) -> list[dict]:
        sent: list[dict] = []

        async def receive() -> dict:
            return {"type": "http.request", "body": b""}

        async def send(message: dict) -> None:
            sent.append(message)

        head = [(name.encode(), value.encode()) for name, value in {"host": "127.0.0.1:8766", **headers}.items()]
        scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": head}
        asyncio.run(app(scope, receive, send))
        return sent

    def get(path: str, query: str = "", **headers: str) -> tuple[int, bytes]:
        start, body = answer(path, query, **headers)
        return start["status"], body.get("body", b"")

    cookie = f"{guard.cookie}={guard.token}"
    assert get("/")[0] == get("/assets/studio.js")[0] == get("/report/x")[0] == 403
    assert get("/", host="example.org")[0] == 421
    assert get("/", f"token={guard.token}")[0] == 303
    # The page may open sockets to this server only, not to another program's port.
    (policy,) = [
        value.decode() for name, value in answer("/", cookie=cookie)[0]["headers"] if name == b"content-security-policy"
    ]
    (allowed,) = re.findall("connect-src ([^;]*);", policy)
    assert allowed.split() == ["'self'", "ws://127.0.0.1:8766", "ws://localhost:8766"]
    assert get("/assets/..", cookie=cookie)[0] == 404
    assert get("/report/nobody", cookie=cookie) == (404, b"unknown run 'nobody' in runs\n")
