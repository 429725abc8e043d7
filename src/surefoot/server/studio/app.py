"""The studio over HTTP, on this machine only: the page, one WebSocket per tab, and run reports."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from surefoot.errors import SurefootError
from surefoot.server.http.problems import Refused
from surefoot.server.studio.commands import Studio, warm_up
from surefoot.server.studio.guard import TabGuard

log = logging.getLogger("surefoot.studio")
STATIC = Path(str(files("surefoot.server.studio") / "static"))
# Queue length of a slow tab beyond which live messages are dropped; the next ones replace them anyway.
MOST_QUEUED = 256
LIVE = ("status", "frames")
PAGE = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self' ws://127.0.0.1:{port} ws://localhost:{port}; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
# Reports contain inline scripts and data of unknown origin: a sandbox keeps them from the studio's cookie.
REPORT = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)
CONTENT_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2"}


# Seconds after the start, in which a browser loads the page.
WARM_AFTER = 1.5


def warm_up_quietly() -> None:
    """Warm up; a failure is logged, as a run would report it anyway."""
    try:
        warm_up()
    except Exception:
        log.exception("warming up failed")


class Tab:
    """One browser tab and the queue of its messages."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.queue: asyncio.Queue[str] = asyncio.Queue()

    def send(self, message: dict[str, Any], text: str) -> None:
        """Queue a message."""
        if message.get("on") in LIVE and self.queue.qsize() > MOST_QUEUED:
            return
        self.queue.put_nowait(text)


class StudioApp:
    """The studio and its tabs."""

    def __init__(self, root: Path, runs: Path, guard: TabGuard, *, warm: bool = False) -> None:
        self.guard, self.warm = guard, warm
        self.studio = Studio(root, runs, self.broadcast)
        self.tabs: dict[int, Tab] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self._numbers = itertools.count(1)
        self._thread = 0

    def broadcast(self, message: dict[str, Any]) -> None:
        """Send a message to all tabs, from any thread."""
        text = json.dumps(message, separators=(",", ":"))
        if threading.get_ident() == self._thread:
            # Directly: the event must precede the response to the tab that caused it.
            self._enqueue(message, text)
        elif self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._enqueue, message, text)

    def _enqueue(self, message: dict[str, Any], text: str) -> None:
        for tab in self.tabs.values():
            tab.send(message, text)

    def asgi(self) -> Starlette:
        """Return the ASGI application."""

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncGenerator[None]:
            self.loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
            if self.warm:
                # After the page was loaded: importing torch keeps the interpreter busy for seconds.
                timer = threading.Timer(WARM_AFTER, warm_up_quietly)
                timer.daemon = True
                timer.start()
            yield
            await asyncio.to_thread(self.studio.close)

        def refused(request: Request, error: Exception) -> Response:
            return PlainTextResponse(f"{error}\n", status_code=error.status if isinstance(error, Refused) else 404)

        routes = [
            Route("/", self.page),
            Route("/assets/{name}", self.asset),
            Route("/report/{run}", self.report),
            WebSocketRoute("/ws", self.socket),
        ]
        return Starlette(routes=routes, lifespan=lifespan, exception_handlers={SurefootError: refused})

    async def page(self, request: Request) -> Response:
        """Return the page; exchange the token of the printed address for a cookie."""
        self.guard.check_host(request.headers.raw)
        token = request.query_params.get("token")
        if token is not None and self.guard.is_token(token):
            response = RedirectResponse("/", status_code=303)
            response.set_cookie(self.guard.cookie, token, httponly=True, samesite="strict")
            return response
        self.guard.check_cookie(request.cookies)
        index = STATIC / "index.html"
        if not index.exists():
            return PlainTextResponse("this installation has no page; build it with `make studio`\n", status_code=503)
        headers = {
            "content-security-policy": PAGE.format(port=self.guard.port),
            "cache-control": "no-store",
            "referrer-policy": "no-referrer",
        }
        return HTMLResponse(index.read_text(encoding="utf-8"), headers=headers)

    async def asset(self, request: Request) -> Response:
        """Return a script or style of the page."""
        self._check(request)
        file = STATIC / "assets" / Path(request.path_params["name"]).name
        if not file.is_file():
            return PlainTextResponse("no such file\n", status_code=404)
        kind = CONTENT_TYPES.get(file.suffix, "application/octet-stream")
        return FileResponse(file, media_type=kind, headers={"x-content-type-options": "nosniff"})

    async def report(self, request: Request) -> Response:
        """Return a run's report, sandboxed so that it cannot reach the studio."""
        self._check(request)
        text = await asyncio.to_thread(self.studio.library.report, request.path_params["run"])
        return HTMLResponse(text, headers={"content-security-policy": REPORT, "cache-control": "no-store"})

    def _check(self, request: Request) -> None:
        self.guard.check_host(request.headers.raw)
        self.guard.check_cookie(request.cookies)

    async def socket(self, socket: WebSocket) -> None:
        """Serve one tab until it is closed."""
        try:
            self.guard.check_socket(socket.headers.raw, socket.cookies)
        except Refused:
            await socket.close(code=4403)
            return
        await socket.accept()
        tab = Tab(next(self._numbers))
        self.tabs[tab.number] = tab

        async def send_all() -> None:
            while True:
                await socket.send_text(await tab.queue.get())

        sender = asyncio.create_task(send_all())
        try:
            while True:
                await self._answer(tab, await socket.receive_text())
        except WebSocketDisconnect:
            pass
        finally:
            sender.cancel()
            del self.tabs[tab.number]
            self.studio.forget_tab(tab.number)

    async def _answer(self, tab: Tab, text: str) -> None:
        message: dict[str, Any] = {}
        try:
            message = json.loads(text)
            number, verb = message.pop("ask"), str(message.pop("do"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            tab.queue.put_nowait('{"error":"a message must be {ask, do, …}"}')
            return
        try:
            answer = {"re": number, "result": await self.studio.ask(tab.number, verb, message)}
        except SurefootError as error:
            answer = {"re": number, "error": str(error)}
        except Exception as error:
            log.exception("%s failed", verb)
            answer = {"re": number, "error": f"the studio failed at {verb}: {type(error).__name__}: {error}"}
        tab.queue.put_nowait(json.dumps(answer, separators=(",", ":")))
