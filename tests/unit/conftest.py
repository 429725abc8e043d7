"""Shared by the tests of units in several rooms."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a receiver on this machine, and the bodies it got."""
    got: list[dict[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if self.path == "/away":
                self.send_response(302)
                self.send_header("Location", "/there")
            else:
                self.send_response(204)
            self.end_headers()

        def do_GET(self) -> None:  # what a followed redirect becomes
            got.append({"followed": self.path})
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    thread.join()
    server.server_close()
