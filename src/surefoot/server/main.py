"""The server process: socket, log, replicas, and a graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.server.decisions.service import Service
from surefoot.server.decisions.store import Durability
from surefoot.server.http.access import AccessGuard, read_tokens
from surefoot.server.http.app import App
from surefoot.server.http.page import page_routes
from surefoot.server.http.protocol import Connections
from surefoot.server.http.route import Extension
from surefoot.server.read_only import Copies, read_only_app
from surefoot.server.replicas import Replicas
from surefoot.server.trained_runs import Runs

# Below the usual limit of 1,024 open files.
CONNECTIONS = 1000
# Kubernetes and systemd kill a process 30 and 90 s after SIGTERM; this leaves time to write.
DRAIN_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the service; described by `surefoot serve --help`."""

    directory: Path
    runs: Sequence[Path] = ()
    """Trained policies to serve, instead of a service that learns."""
    host: str = "127.0.0.1"
    port: int = 8765
    token_file: Path | None = None
    origins: Sequence[str] = ()
    rate: float = 0.0
    durability: Durability = "disk"
    digits: int | None = None
    ui: bool = False
    replicas: int = 0
    replica_port: int = 0
    """Port of the replicas; 0 selects a free one. Replicas of runs share `port`."""
    extension: Callable[[Service], Extension] | None = None
    """Creates additional endpoints of the service."""
    exit_with_parent: bool = False
    log_level: str = "info"


def serve(settings: Settings) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    _log_as_json(settings.log_level)
    if settings.exit_with_parent:

        def end_with_stdin() -> None:
            # The kernel closes the pipe when the parent ends, even if it is killed.
            while os.read(0, 4096):
                pass
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=end_with_stdin, daemon=True).start()
    # Runs have no state to write, so all processes can answer on one port (SO_REUSEPORT).
    shared = bool(settings.runs) and settings.replicas > 1
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(_bound(settings.host, settings.port, shared=shared))
        port = int(listening.getsockname()[1])
        app = _app(settings, _guard(settings, port))
        sentence = f"Server started at http://{_shown(settings.host)}:{port}"
        if settings.ui:
            sentence = f"{sentence}\nWeb page: http://{_shown(settings.host)}:{port}/"
        replicas = None
        if shared:
            replicas = Replicas(settings.replicas - 1, replica, settings, port)
        elif settings.replicas:
            # Bound, but not listening: it reserves the port for the replicas, which share it.
            reserved = stack.enter_context(_bound(settings.host, settings.replica_port, shared=True, listens=False))
            replica_port = int(reserved.getsockname()[1])
            replicas = Replicas(settings.replicas, replica, settings, replica_port)
            sentence = (
                f"{sentence}\n{settings.replicas} read-only replicas at http://{_shown(settings.host)}:{replica_port}"
            )
        with asyncio.Runner(loop_factory=_loop) as runner:
            return runner.run(_serve(app, listening, sentence, replicas))


def replica(settings: Settings, port: int) -> None:
    """Run one of the read-only processes."""
    _log_as_json(settings.log_level)
    copies = None if settings.runs else Copies(settings.directory, settings.digits)
    app = read_only_app(Runs(settings.runs), _guard(settings, port), copies, alone=False)
    with _bound(settings.host, port, shared=True) as listening, asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(_serve(app, listening))


def _guard(settings: Settings, port: int) -> AccessGuard:
    # Read in every process: tokens are never passed on a command line.
    tokens = {} if settings.token_file is None else read_tokens(settings.token_file)
    return AccessGuard(host=settings.host, port=port, tokens=tokens, origins=settings.origins, per_second=settings.rate)


def _app(settings: Settings, guard: AccessGuard) -> App:
    if settings.runs:
        return read_only_app(Runs(settings.runs), guard, alone=settings.replicas <= 1)
    service = Service(settings.directory, durability=settings.durability, digits=settings.digits)
    extension = None if settings.extension is None else settings.extension(service)
    pages = page_routes() if settings.ui else ()
    return App(service, guard, extension=extension, pages=pages)


async def _serve(app: App, listening: socket.socket, sentence: str = "", replicas: Replicas | None = None) -> int:
    """Serve until a signal; then finish open requests, write pending data, and return 0."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for sig in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sig, over.set)
    await app.start()
    connections = Connections(app, most=CONNECTIONS)
    server = await loop.create_server(connections, sock=listening, backlog=2048)
    connections.sweep()
    gc.collect()
    # Modules and policies live as long as the process: frozen, the collector never scans them. A larger threshold makes
    # collections rarer, because requests create few cycles and a collection delays all clients.
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    watching = None
    if replicas is not None:
        replicas.start()
        watching = loop.create_task(replicas.watch())
    if sentence:
        print(sentence, flush=True)
    await over.wait()
    # New requests are answered with 503 from here on, open ones are finished.
    app.service.draining = True
    server.close()
    if replicas is not None and watching is not None:
        watching.cancel()
        await loop.run_in_executor(None, replicas.close)
    await connections.drain(DRAIN_SECONDS)
    await app.service.close()
    return 0


def _loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's event loop if it is installed."""
    try:
        return importlib.import_module("uvloop").new_event_loop()
    except ModuleNotFoundError:
        return asyncio.new_event_loop()


def _bound(host: str, port: int, *, shared: bool = False, listens: bool = True) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise ConfigError(f"--port is {port}; it must be from 1 to 65535, or 0 for a free port")
    # Only IPv6 addresses contain a colon.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        if listens:
            return socket.create_server((host, port), family=family, reuse_port=shared)
        reserved = socket.socket(family)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((host, port))
        return reserved
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}; use --port 0 for a free port") from error


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Json(logging.Formatter):
    """One line of JSON per message, with a field for a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"t": time.time(), "level": record.levelname.lower(), "logger": record.name}
        line["message"] = record.getMessage()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _log_as_json(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json())
    logger = logging.getLogger("surefoot")
    # One JSON line per message; without this the root logger would print it again.
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(level.upper())
