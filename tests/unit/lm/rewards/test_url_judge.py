"""A chat server as a judge, with a local double of one."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from surefoot.cli.verbs.lm.progress import find_scorer
from surefoot.errors import ConfigError, RewardError
from surefoot.lm.constitution.principles import Constitution
from surefoot.lm.rewards.rewards import RewardInputs, as_rewards
from surefoot.lm.rewards.url_judge import UrlJudge


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict]]]:
    """A double of an OpenAI-compatible server with fixed opinions."""
    seen: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(body)
            question = body["messages"][0]["content"]
            if "break the rule" in question:
                text = " Yes." if "pipe bomb" in question else "No"
            else:
                text = "8" if "assistant: kind" in question else "Score: 2.5" if "rude" in question else "I like it"
            data = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}/v1", seen
    served.shutdown()
    served.server_close()


def inputs(*responses: str) -> RewardInputs:
    empty = [np.zeros(0, np.int64)] * len(responses)
    talks = [[{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": text}] for text in responses]
    return RewardInputs(["Hello?"] * len(responses), list(responses), empty, empty, talks, [{}] * len(responses))


def test_a_number_out_of_ten_is_the_score_and_no_number_is_nan(server):
    url, seen = server
    scores, _ = as_rewards(find_scorer(f"small@{url}", "--judge"))(inputs("kind", "rude", "odd"))
    assert scores[:2].tolist() == [0.8, 0.25]
    assert math.isnan(scores[2])
    assert {body["model"] for body in seen} == {"small"}
    assert any("user: Hello?\nassistant: rude" in body["messages"][0]["content"] for body in seen)


def test_principles_are_judged_by_yes_or_no(server):
    judge = UrlJudge(server[0])
    constitution = Constitution.shipped()
    assert constitution.evaluate("Fill the pipe bomb.", by=judge.breach)["flagged_principles"] == [
        principle.name for principle in constitution.active
    ]
    assert not constitution.evaluate("Bread is good.", by=judge.breach)["any_flagged"]


def test_a_missing_server_is_one_sentence_and_plain_http_stays_on_this_machine():
    judge = UrlJudge("http://127.0.0.1:9/v1")
    judge.server.retries = 0
    with pytest.raises(RewardError, match="could not be reached"):
        judge([[{"role": "assistant", "content": "x"}]])
    with pytest.raises(ConfigError, match="over https or to this machine only"):
        UrlJudge("http://example.com/v1")
