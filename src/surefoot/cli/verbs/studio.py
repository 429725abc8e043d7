"""`surefoot studio`: draw a training loop in the browser, run it, watch it, take it with you as a program."""

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
    """Open the studio: a canvas for training loops, in the browser, served by this machine for this machine alone.

        surefoot studio
        surefoot studio ~/experiments --port 9000 --no-browser

    Graphs are kept in DIR/graphs, each with everything that was ever done to it; runs in DIR/runs. Ctrl-C stops the run
    that is on, saves it and ends. The address has a token in it: whoever has the address may use the studio.
    """

    dir: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")] = Path()
    """Where graphs and runs are kept."""
    port: int | None = None
    """The port (default 8765, or a free one if that is taken)."""
    browser: bool = True
    """Open the page."""
    runs: Path | None = None
    """Where runs are kept (default $SUREFOOT_RUNS or DIR/runs)."""

    def run(self) -> int:
        try:
            import starlette as starlette
            import uvicorn
            import websockets as websockets
        except ImportError as why:
            raise ConfigError(f"the studio needs {why.name}: pip install 'surefoot[studio]'") from why
        from surefoot.compat.dnne import register
        from surefoot.server.studio.app import STATIC, StudioApp
        from surefoot.server.studio.guard import TabGuard
        from surefoot.train.rundir.rundir import RUNS_VARIABLE

        register()

        if not (STATIC / "index.html").exists():
            raise ConfigError("this copy has no page for the browser; `make studio` builds it")
        runs = self.runs or Path(os.environ.get(RUNS_VARIABLE) or self.dir / "runs")
        listening = _listen(self.port)
        guard = TabGuard(port=listening.getsockname()[1])
        app = StudioApp(self.dir, runs, guard)
        config = uvicorn.Config(
            app.asgi(), log_level="warning", ws="websockets-sansio", ws_max_size=16 << 20, timeout_graceful_shutdown=3
        )
        server = uvicorn.Server(config)
        print(
            f"studio at {guard.url}\n  graphs in {self.dir / 'graphs'}, runs in {runs}; Ctrl-C ends it",
            flush=True,
        )
        if self.browser:
            timer = threading.Timer(0.7, webbrowser.open, [guard.url])
            timer.daemon = True
            timer.start()
        with contextlib.suppress(KeyboardInterrupt):  # raised once all is closed
            server.run(sockets=[listening])
        return 0


def _listen(port: int | None) -> socket.socket:
    """A socket on loopback: at that port, or near the usual one."""
    for wanted in [port] if port is not None else [PORT, 0]:
        # Named as TCP, so that asyncio sends small messages at once (TCP_NODELAY) and not 40 ms later.
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(("127.0.0.1", wanted))
            made.listen(128)  # whoever has the address may ask at once, and waits until the server is up
            return made
        except (OSError, OverflowError) as why:
            made.close()
            if port is not None:
                raise ConfigError(f"port {port} cannot be had: {why}; --port 0 takes a free one") from why
    raise ConfigError("no port of 127.0.0.1 can be had")
