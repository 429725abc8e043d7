"""A service whose responses a test makes up."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

DECISION = {
    "decision_id": "d1",
    "policy": "p",
    "action": 1,
    "name": "bye",
    "probability": 0.5,
    "policy_version": 0,
    "expires_at": 1.0,
    "mode": "live",
}
Answer = Callable[[int, dict[str, Any]], tuple[int, dict[str, str], Any] | None]


class Fake:
    """A service whose answers a test makes up; None drops the connection."""

    def __init__(self, answer: Answer) -> None:
        fake, self.bodies, self.heads = self, [], []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                fake.bodies.append(body)
                fake.heads.append(self.headers)
                told = answer(len(fake.bodies), body)
                if told is None:
                    self.close_connection = True
                    return
                status, headers, content = told
                raw = json.dumps(content).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(raw))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def fakes() -> Iterator[Callable[[Answer], Fake]]:
    made: list[Fake] = []

    def make(answer: Answer) -> Fake:
        made.append(Fake(answer))
        return made[-1]

    yield make
    for fake in made:
        fake.server.shutdown()
        fake.server.server_close()


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.client.bodies.FIRST_WAIT", 0.01)
