"""The service as a process of its own: raw sockets that misbehave, kill -9 under load, and a clean end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

POLICY = {"name": "p", "actions": ["a", "b", "c"], "embedding_size": 8, "training": {"automatic": False}}
HEAD = b"POST /v1/policies/p/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
BODY = json.dumps({"embedding": [0.5] * 8}).encode()
QUICK = "import surefoot.server.http.protocol as h; h.HEAD_SECONDS, h.BODY_SECONDS = 0.5, 0.7; import surefoot.server.main as m; m.CONNECTIONS = 30"
MAIN = "from surefoot.cli.main import main; import sys; sys.exit(main())"


class Process:
    """`surefoot serve` and its port."""

    def __init__(self, folder: Path, *options: str, before: str = "", port: int = 0) -> None:
        code = f"{before}\nif __name__ == '__main__':\n    {MAIN}"
        self.child = subprocess.Popen(
            [sys.executable, "-c", code, "serve", "--data-dir", str(folder), "--port", str(port), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        match = re.search(r"Server started at http://127\.0\.0\.1:(\d+)", line)
        assert match is not None, line
        self.port = int(match[1])

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        try:
            raw = None if body is None else json.dumps(body)
            link.request(method, path, raw, {"Content-Type": "application/json"})
            answer = link.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            link.close()

    def raw(self, sent: bytes, *, wait: float = 5.0, slowly: float = 0.0) -> bytes:
        """What comes back for these bytes until the other side closes or nothing comes any more."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as link:
            got = b""
            try:
                for part in [sent[i : i + 1] for i in range(len(sent))] if slowly else [sent]:
                    link.sendall(part)
                    time.sleep(slowly)
                link.settimeout(wait)
                while chunk := link.recv(65536):
                    got += chunk
                    if re.search(rb"content-length: 0\r\n|\}$", got):
                        break
            except (ConnectionError, TimeoutError):
                pass
            return got

    def end(self) -> int:
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(timeout=90)

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory):
    process = Process(tmp_path_factory.mktemp("served"), before=QUICK)
    assert process.ask("POST", "/v1/policies", POLICY)[0] == 201
    yield process
    assert process.end() == 0


def length(body: bytes, lie: int = 0) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % (len(body) + lie) + body


ABUSES = {
    "nothing at all": (b"", 408),
    "not http": (b"hello there\r\n\r\n", 400),
    "a tls hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", 421),
    "two hosts, the last one foreign": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\n\r\n", 400),
    "a foreign host": (b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
    "half a head": (b"GET /healthz HTTP/1.1\r\nHost: 127", 408),
    "a head without end": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", 408),
    "a huge head": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431),
    "a thousand headers": (
        b"GET /healthz HTTP/1.1\r\n" + b"A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n" * 1000 + b"\r\n",
        431,
    ),
    "a huge path": (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 431),
    "half a body": (HEAD + length(BODY[:10], 40), 408),
    "no body": (HEAD + b"Content-Length: 60\r\n\r\n", 408),
    "a shorter length": (HEAD + length(BODY, -10), 400),
    "a negative length": (HEAD + b"Content-Length: -5\r\n\r\n" + BODY, 400),
    "a length that is no number": (HEAD + b"Content-Length: ten\r\n\r\n" + BODY, 400),
    "two lengths": (HEAD + b"Content-Length: 3\r\nContent-Length: 70\r\n\r\n" + BODY, 400),
    "a length and chunks": (HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "a huge length": (HEAD + b"Content-Length: 99999999999\r\n\r\n", 413),
    "chunks that lie": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n", 400),
    "half a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n40\r\n{", 408),
    "too many chunks": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 17,
        413,
    ),
    "no content type": (HEAD.replace(b"Content-Type: application/json\r\n", b"") + length(BODY), 415),
    "a form": (HEAD.replace(b"application/json", b"application/x-www-form-urlencoded") + length(BODY), 415),
    "a foreign page": (HEAD + b"Origin: https://evil.example\r\n" + length(BODY), 403),
    "a page of nowhere": (HEAD + b"Origin: null\r\n" + length(BODY), 403),
    "zeros": (HEAD + length(b"\0" * 60), 400),
    "a path with dots": (b"GET /v1/policies/../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404),
    "a path with %2f": (b"GET /v1/policies/..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404),
    "a method nobody knows": (b"BREW /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
    "a method that is not meant": (b"DELETE /v1/policies HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 405),
    "a future http": (b"GET /healthz HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n", 400),
    "a header without a name": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n: x\r\n\r\n", 400),
    "a header with a line break": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nA: b\rc\r\n\r\n", 400),
    "a body where none is wanted": (
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999\r\n\r\n" + b"x" * 99_999,
        413,
    ),
    "an http without a version": (b"GET /healthz\r\nHost: 127.0.0.1\r\n\r\n", 400),
    "an old http": (b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", 200),
    "a path that is a url": (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404),
    "bytes that are no letters in a path": (b"GET /\xff\xfe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
    "an upgrade": (
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        200,
    ),
}


@pytest.mark.parametrize("name", ABUSES)
def test_an_abuse_gets_its_answer(served: Process, name: str):
    sent, status = ABUSES[name]
    got = served.raw(sent)
    assert got.startswith(b"HTTP/1.1 %d" % status), got[:200]
    assert b"Traceback" not in got


def test_a_head_that_trickles_in_is_cut_off(served: Process):
    begin = time.monotonic()
    got = served.raw(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"a" * 60, slowly=0.05)
    assert time.monotonic() - begin < 5.0
    assert got == b"" or got.startswith(b"HTTP/1.1 408")


def test_beyond_so_many_connections_it_says_not_now(served: Process):
    with contextlib.ExitStack() as stack:
        links = [
            stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=5)) for _ in range(35)
        ]
        answers = b"".join(link.recv(100) for link in links[-3:])
    assert answers.count(b"HTTP/1.1 503") == 3
    until = time.monotonic() + 30
    while not served.raw(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", wait=1.0).startswith(b"HTTP/1.1 200"):
        assert time.monotonic() < until, "there is room again once they are gone"


def test_half_a_connection_is_answered(served: Process):
    with socket.create_connection(("127.0.0.1", served.port), timeout=5) as link:
        link.sendall(HEAD + length(BODY))
        link.shutdown(socket.SHUT_WR)
        assert link.recv(65536).startswith(b"HTTP/1.1 200")


def test_pipelined_requests_are_answered_in_order(served: Process):
    one = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    got = served.raw(one + one.replace(b"healthz", b"v1/none") + one.replace(b"127", b"x127"), wait=1.0)
    assert re.findall(rb"HTTP/1\.1 (\d+)", got)[:1] == [b"200"]


def test_it_still_answers(served: Process):
    assert served.ask("POST", "/v1/policies/p/decisions", {"embedding": [0.1] * 8})[0] == 200


def asked(port: int, path: str, body: Any) -> tuple[int, Any]:
    """An answer, or (0, None) where nobody answers yet."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        link.request(
            "POST" if body else "GET", path, json.dumps(body) if body else None, {"Content-Type": "application/json"}
        )
        answer = link.getresponse()
        return answer.status, json.loads(answer.read())
    except OSError:
        return 0, None
    finally:
        link.close()


def until(seen: Any, seconds: float = 90.0) -> Any:
    """What `seen` gives once it gives something."""
    end = time.monotonic() + seconds
    while not (found := seen()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.1)
    return found


def test_replicas_look_and_never_write_and_follow_the_writer(tmp_path: Path):
    process = Process(tmp_path / "d", "--replicas", "2", "--log-level", "error")
    assert process.child.stdout is not None
    port = int(process.child.stdout.readline().rpartition(":")[2])
    look, row = "/v1/policies/p/distribution", {"embedding": [0.5] * 8}
    try:
        assert process.ask("POST", "/v1/policies", POLICY)[0] == 201
        answered = until(lambda: (found := asked(port, look, row))[0] and found)  # the first of them is up
        assert answered[0] == 200  # whichever it is: what was acknowledged is known to all
        told = answered[1]
        assert told["distribution"] == pytest.approx(process.ask("POST", look, row)[1]["distribution"])
        assert asked(port, "/v1/policies/p/decisions", row)[0] == 404  # a decision needs the log
        many = {"decisions": [row] * 70}
        for made in process.ask("POST", "/v1/policies/p/decisions/batch", many)[1]["decisions"]:
            process.ask("POST", f"/v1/decisions/{made['decision_id']}/reward", {"value": 1.0})
        assert process.ask("POST", "/v1/policies/p/updates", {})[0] == 202
        until(lambda: asked(port, look, row)[1]["policy_version"] == 1)
        children = Path(f"/proc/{process.child.pid}/task/{process.child.pid}/children").read_text().split()
    finally:
        assert process.end() == 0
    assert len(children) >= 2
    until(lambda: not any(lives(pid) for pid in children))


def lives(pid: str) -> bool:
    with contextlib.suppress(OSError):
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())  # a zombie has none
    return False


def hammer(port: int, stop: threading.Event, acked: list[str], name: str) -> None:
    """Asks and rewards for ever; what fails is asked again under the same id."""
    rng, number = random.Random(name), 0
    link: http.client.HTTPConnection | None = None
    while not stop.is_set():
        id = f"{name}-{number}"
        try:
            link = link or http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            row = [rng.random()] * 8
            for path, body in (
                ("/v1/policies/p/decisions", {"decision_id": id, "embedding": row}),
                (f"/v1/decisions/{id}/reward", {"value": 1.0}),
            ):
                done = False
                while not done and not stop.is_set():
                    try:
                        link = link or http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                        link.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
                        answer = link.getresponse()
                        answer.read()
                        done = answer.status == 200
                        assert answer.status in (200, 503), answer.status
                        if done:
                            acked.append(id if "reward" not in path else f"{id}#0")
                    except (OSError, http.client.HTTPException):
                        link = None
                        time.sleep(0.02)
            number += 1
        except (OSError, http.client.HTTPException):
            link = None


def lasting_port() -> int:
    """A free port below those the system hands out: a client that retries on one of its own may connect to itself."""
    while True:
        port = random.randrange(20_000, 30_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def killed(folder: Path, kills: int, before: str = "") -> tuple[int, int, int]:
    """(acknowledged, of them lost, stored twice) after so many kills under load from eight clients that retry."""
    port = lasting_port()
    process = Process(folder, before=before, port=port)
    assert process.ask("POST", "/v1/policies", POLICY)[0] == 201
    stop, acked = threading.Event(), [list[str]() for _ in range(8)]
    threads = [threading.Thread(target=hammer, args=(port, stop, acked[k], f"c{k}")) for k in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        time.sleep(random.uniform(0.2, 0.5))
        process.kill()
        process = Process(folder, port=port, before=before)
    time.sleep(0.3)
    stop.set()
    for thread in threads:
        thread.join()
    assert process.end() == 0
    told = [id for each in acked for id in each]
    with sqlite3.connect(folder / "decisions.sqlite") as db:
        rows = [row[0] for row in db.execute("SELECT id FROM entries WHERE kind IN ('decision', 'reward')")]
    twice = len(rows) - len(set(rows)) + len(told) - len(set(told))
    return len(told), len(set(told) - set(rows)), twice


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path):
    told, lost, twice = killed(tmp_path / "d", int(os.environ.get("SUREFOOT_KILLS", "3")))
    assert told > 50
    assert (lost, twice) == (0, 0)


MUTANT = """
import surefoot.server.decisions.store as s

def too_early(self, rows, then):
    then(None)
    self._waiting.append((rows, lambda error: None))
    if len(self._waiting) == 1:
        self._loop.call_later(0.05, lambda: self._waiting and self._commit(aside=False))

s.Store.submit = too_early
"""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # a reward of what was lost: 404
def test_who_acknowledges_before_the_commit_is_caught(tmp_path: Path):
    lost = 0
    for attempt in range(4):
        lost += killed(tmp_path / str(attempt), 3, MUTANT)[1]
        if lost:
            break
    assert lost > 0


# A thousand candidates with long descriptions are refused for their length, whatever else is wrong with them.
REFUSED = ", ".join(f'"{status}"' for status in (400, 401, 403, 404, 405, 406, 409, 413, 415, 422))
SCHEMATHESIS = f'[parameters]\n"path.policy" = "p"\n[checks.negative_data_rejection]\nexpected-statuses = [{REFUSED}]\n'


def test_schemathesis_finds_nothing(tmp_path: Path):
    pytest.importorskip("schemathesis")
    token, tokens, config = "k" * 32, tmp_path / "tokens", tmp_path / "schemathesis.toml"
    tokens.write_text(token + "\n")
    config.write_text(SCHEMATHESIS)
    process = Process(tmp_path / "d", "--token-file", str(tokens))
    try:
        link = http.client.HTTPConnection("127.0.0.1", process.port, timeout=90)
        head = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        link.request("POST", "/v1/policies", json.dumps(POLICY), head)
        assert link.getresponse().status == 201
        told = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)),
                *("run", f"http://127.0.0.1:{process.port}/openapi.json", "-H", f"Authorization: Bearer {token}"),
                *("--checks", "not_a_server_error,status_code_conformance,content_type_conformance"),
                *("--checks", "response_schema_conformance,negative_data_rejection", "--seed", "1"),
                *("--max-examples", os.environ.get("SUREFOOT_EXAMPLES", "15"), "--no-color"),
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert told.returncode == 0, told.stdout[-4000:] + told.stderr[-2000:]
    finally:
        assert process.end() == 0


def test_the_loop_of_the_page_works_with_curl(served: Process):
    page = (Path(__file__).parents[2] / "docs/how-to/serve.md").read_text()
    lines = re.findall(r"^curl .*?(?=\n(?:curl|```))", page, re.MULTILINE | re.DOTALL)
    lines = [line for line in lines if "/v1/runs" not in line]  # those ask a service of another kind
    assert len(lines) == 14
    for line in lines:
        asked = shlex.split(line.replace("\\\n", " ").replace("localhost:8765", f"127.0.0.1:{served.port}"))
        told = subprocess.run([*asked, "--fail-with-body", "-m", "90"], capture_output=True, text=True)
        assert told.returncode == 0, f"{line}\n{told.stdout}{told.stderr}"
        json.loads(told.stdout)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--host", "0.0.0.0", "--port", "0"], "--token-file"),
        (["--port", "99999"], "it must be from 1 to 65535"),
        (["--port", "0", "--dir", __file__], "give another --data-dir"),
    ],
)
def test_a_service_that_cannot_be_says_why(tmp_path: Path, options: list[str], why: str):
    told = subprocess.run(
        [sys.executable, "-m", "surefoot", "serve", *options], capture_output=True, text=True, cwd=tmp_path
    )
    assert told.returncode == 2
    assert why in told.stderr
    assert "Traceback" not in told.stderr
