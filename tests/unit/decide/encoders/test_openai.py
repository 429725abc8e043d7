"""Tests of `surefoot.decide.encoders.openai`."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from surefoot.decide.encoders.openai import OpenAIEncoder
from surefoot.errors import EncoderError


@pytest.fixture
def server(monkeypatch):
    """A double of an embeddings server: fails once, then gives 4 numbers a text."""

    class Handler(BaseHTTPRequestHandler):
        seen: ClassVar[list[dict]] = []
        failures = 1

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if Handler.failures:
                Handler.failures -= 1
                self.send_response(429)
                self.send_header("Retry-After", "0")
                self.end_headers()
                return
            Handler.seen.append({"path": self.path, "key": self.headers["Authorization"], **body})
            rows = [{"index": i, "embedding": [len(t), 1.0, 0.0, 0.0]} for i, t in enumerate(body["input"])]
            answer = json.dumps({"data": rows[::-1]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args):
            pass

    there = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=there.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    yield f"http://127.0.0.1:{there.server_port}/v1", Handler
    there.shutdown()


def test_the_openai_encoder_batches_retries_and_caches_on_disk(server, tmp_path: Path):
    url, handler = server
    made = OpenAIEncoder("m", dim=4, base_url=url, batch=2, cache=tmp_path / "c.sqlite")
    rows = made.encode(["a", "bb", "ccc"])
    assert [len(each["input"]) for each in handler.seen] == [2, 1]
    assert handler.seen[0]["key"] == "Bearer secret"
    assert rows[1] == pytest.approx(np.array([2, 1, 0, 0]) / np.sqrt(5))
    before = made.requests
    assert np.array_equal(made.encode(["ccc", "a"]), rows[[2, 0]])
    assert made.requests == before, "both were known"


def test_a_wrong_dimension_a_missing_key_and_plain_http_are_refused(server, monkeypatch):
    url, _ = server
    with pytest.raises(EncoderError, match="4 numbers, but dim is 8"):
        OpenAIEncoder("m", dim=8, base_url=url).encode(["a"])
    with pytest.raises(EncoderError, match="the key is sent over https"):
        OpenAIEncoder(base_url="http://example.com/v1")
    with pytest.raises(EncoderError, match="https or to this machine"):
        OpenAIEncoder(base_url="http://localhost.example.com/v1")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EncoderError, match="OPENAI_API_KEY"):
        OpenAIEncoder(base_url=url)
