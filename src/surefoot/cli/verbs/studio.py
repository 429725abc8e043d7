"""`surefoot studio`: the graph editor in the browser."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from surefoot.errors import ConfigError

PORT = 8765


@dataclass(frozen=True, kw_only=True)
class StudioArgs:
    """Open the graph editor in the browser: draw a training loop, run it, watch it, export it as a program.

        surefoot studio
        surefoot studio ~/experiments --port 9000 --no-browser

    The server listens on this machine only. Graphs are stored in DIR/graphs with their full history, runs in DIR/runs (or
    --runs, or $SUREFOOT_RUNS). The printed address contains a token; anyone with the address can use the studio. The token
    stays the same (DIR/graphs/.token), so open tabs reconnect after a restart. Ctrl-C stops and saves the current run and
    exits.
    """

    dir: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")] = Path()
    """Directory of graphs and runs."""
    port: int | None = None
    """Port (default: 8765, or a free one if that is in use)."""
    browser: Annotated[bool, tyro.conf.arg(help_behavior_hint="")] = True
    """Print the address without opening a browser."""

    def run(self) -> int:
        try:
            import starlette as starlette
            import uvicorn
            import websockets as websockets
        except ImportError as why:
            raise ConfigError(f"the studio needs {why.name}: pip install 'surefoot[studio]'") from why
        from surefoot.compat.dnne import register
        from surefoot.server.studio.app import STATIC, StudioApp
        from surefoot.server.studio.guard import TabGuard, stored_token
        from surefoot.train.rundir.rundir import RUNS_VARIABLE

        register()
        if not (STATIC / "index.html").exists():
            raise ConfigError("the browser page is missing in this installation; `make studio` builds it")
        runs = Path(os.environ.get(RUNS_VARIABLE) or self.dir / "runs")
        listening = _listen(self.port)
        guard = TabGuard(port=listening.getsockname()[1], token=stored_token(self.dir))
        app = StudioApp(self.dir, runs, guard, warm=True)
        config = uvicorn.Config(
            app.asgi(),
            log_level="warning",
            ws="websockets-sansio",
            ws_max_size=16 << 20,
            # On this machine compressing costs the run more than it saves.
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=3,
        )
        server = uvicorn.Server(config)
        print(
            f"studio at {guard.url}\n  graphs in {self.dir / 'graphs'}, runs in {runs}; Ctrl-C stops it",
            flush=True,
        )
        if self.browser:
            # The delay lets the server start before the browser asks for the page.
            timer = threading.Timer(0.7, webbrowser.open, [guard.url])
            timer.daemon = True
            timer.start()
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again after a graceful shutdown
            server.run(sockets=[listening])
        return 0


def _listen(port: int | None) -> socket.socket:
    """Return a listening socket on loopback: at `port`, or at the default port or a free one."""
    for candidate in [port] if port is not None else [PORT, 0]:
        # asyncio sets TCP_NODELAY only on sockets with proto=IPPROTO_TCP; without it small messages wait 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", candidate))
            listener.listen(128)  # connections are queued until the server is up
            return listener
        except (OSError, OverflowError) as why:
            listener.close()
            if port is not None:
                raise ConfigError(f"cannot listen on port {port}: {why}; --port 0 takes a free one") from why
    raise ConfigError("cannot listen on any port of 127.0.0.1")
