"""The process that serves: a socket, a log, deadlines, and an end that loses nothing."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.server.app import App
from surefoot.server.compat import Directive023
from surefoot.server.guard import Guard, read_tokens
from surefoot.server.http import Connections
from surefoot.server.page import page_routes
from surefoot.server.reading import reading_app
from surefoot.server.runs import Runs
from surefoot.server.service import Service
from surefoot.server.steward import Steward
from surefoot.server.store import Durability

CONNECTIONS = 1000
DRAIN_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to serve; each as `surefoot serve --help` says."""

    directory: Path
    runs: Sequence[Path] = ()
    """Trained policies to be served as they are, and nothing else."""
    host: str = "127.0.0.1"
    port: int = 8765
    token_file: Path | None = None
    origins: Sequence[str] = ()
    rate: float = 0.0
    durability: Durability = "disk"
    digits: int | None = None
    ui: bool = False
    compat: bool = False
    input_dim: int = 1536
    least: int = 128
    exit_with_parent: bool = False
    log_level: str = "info"


def serve(settings: Settings) -> int:
    """Answer until SIGINT or SIGTERM; the exit code."""
    _log_as_json(settings.log_level)
    if settings.exit_with_parent:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    tokens = {} if settings.token_file is None else read_tokens(settings.token_file)
    with _bound(settings.host, settings.port) as listening:
        port = int(listening.getsockname()[1])
        guard = Guard(host=settings.host, port=port, tokens=tokens, origins=settings.origins, per_second=settings.rate)
        app = _app(settings, guard)
        sentence = f"Server started at http://{_shown(settings.host)}:{port}"
        if settings.ui:
            sentence = f"{sentence}\nIts page: http://{_shown(settings.host)}:{port}/"
        with asyncio.Runner(loop_factory=_loop) as runner:
            return runner.run(_serve(app, listening, sentence))


def _app(settings: Settings, guard: Guard) -> App:
    if settings.runs:
        return reading_app(Runs(settings.runs), guard)
    service = Service(settings.directory, durability=settings.durability, digits=settings.digits)
    steward = Steward(service)
    compat = None
    if settings.compat:
        compat = Directive023(service, steward, input_dim=settings.input_dim, least=settings.least)
    pages = page_routes() if settings.ui else ()
    return App(service, guard, compat=compat, steward=steward, pages=pages)


async def _serve(app: App, listening: socket.socket, sentence: str) -> int:
    """Answer until a signal comes; then answer what is under way, write what waits, and end."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for sig in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sig, over.set)
    await app.start()
    connections = Connections(app, most=CONNECTIONS)
    server = await loop.create_server(connections, sock=listening, backlog=2048)
    connections.sweep()
    gc.collect()
    gc.freeze()  # what is there now stays: no collection need look at it
    gc.set_threshold(20_000, 20, 100)
    print(sentence, flush=True)
    await over.wait()
    app.service.draining = True
    server.close()
    await connections.drain(DRAIN_SECONDS)
    await app.service.close()
    return 0


def _loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed."""
    try:
        return importlib.import_module("uvloop").new_event_loop()
    except ModuleNotFoundError:
        return asyncio.new_event_loop()


def _end_with_stdin() -> None:
    """Whoever started this holds the other end of standard input; the kernel closes it however they end."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _bound(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise ConfigError(f"--port is {port}; ports go from 1 to 65535, and 0 takes a free one")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as why:
        raise ConfigError(f"cannot listen on {host}:{port}: {why.strerror}; --port 0 takes a free one") from why


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Json(logging.Formatter):
    """One line of JSON a message; a traceback is a field of it."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "t": time.time(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told)


def _log_as_json(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json())
    logger = logging.getLogger("surefoot")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(level.upper())
