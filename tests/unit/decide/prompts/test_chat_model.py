"""Tests of `surefoot.decide.prompts.chat_model`."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from surefoot.decide.prompts.chat_model import ChatModel
from surefoot.errors import ConfigError, RewardError


@pytest.fixture
def server():
    """A server that answers as the OpenAI API does, with the prompt in upper case."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, body))
            text = body["messages"][0]["content"].upper()
            reply = {"choices": [{"message": {"role": "assistant", "content": text}}]} if text != "BREAK" else {}
            data = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    served = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}/v1", seen
    served.shutdown()
    served.server_close()


def test_prompts_are_posted_one_by_one(server):
    url, seen = server
    assert ChatModel(url, "small").reply(["hello", "you"]) == ["HELLO", "YOU"]
    path, body = seen[0]
    assert path == "/v1/chat/completions"
    assert (body["model"], body["temperature"]) == ("small", 0)


def test_an_answer_of_another_form_and_a_missing_server_are_one_sentence(server):
    url, _ = server
    with pytest.raises(RewardError, match="did not answer as an OpenAI-compatible server"):
        ChatModel(url).reply(["break"])
    with pytest.raises(RewardError, match="could not be reached"):
        ChatModel("http://127.0.0.1:9/v1", retries=0).reply(["a"])


@pytest.mark.parametrize("url", ["http://example.com/v1", "http://localhost.example.com", "ftp://127.0.0.1", "x"])
def test_plain_http_goes_to_this_machine_only(url: str):
    with pytest.raises(ConfigError, match="over https or to this machine only"):
        ChatModel(url)


def test_there_are_no_likelihoods():
    with pytest.raises(ConfigError, match="returns no log-likelihoods"):
        ChatModel("https://example.com/v1").log_likelihood(["a"], ["b"])
