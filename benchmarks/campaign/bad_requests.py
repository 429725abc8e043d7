"""B2: what no client should send: bodies off the schema, names that are paths, connections that lie."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign.frame import Block, Found, from_tests, is_here, seed

KEY_ERROR = "an unknown id raises a KeyError"
PATHS = "a name is looked up as a path"
LENGTHS = "wrong Content-Length values are trusted"
SECRET = "the-secret-of-the-campaign"
CODE = {
    KEY_ERROR: """
import surefoot.server.decisions.service as s
s.Service.policy = lambda self, name: self.policies[name]
""",
    PATHS: """
import surefoot.server.decisions.service as s
from urllib.parse import unquote
from surefoot.server.http.problems import Refused
def by_path(self, name):
    if name in self.policies:
        return self.policies[name]
    path = self.directory / "policies" / unquote(name)
    raise Refused("unknown", path.read_text() if path.is_file() else "nothing there")
s.Service.policy = by_path
""",
    LENGTHS: """
import surefoot.server.http.protocol as h
def believing(self, body):
    self._size += len(body)
    if self._verdict is None:
        self._chunks.append(body)
h.Connection.on_body = believing
""",
}
PLACES = (
    *("GET /v1/policies/{}", "GET /v1/policies/{}/versions", "GET /v1/decisions/{}", "GET /v1/jobs/{}"),
    *("POST /v1/checkpoints/{}/activate", "POST /v1/policies/{}/decisions", "POST /v1/decisions/{}/reward"),
    *("POST /v1/policies/{}/rollback", "GET /{}"),
)


def traversals(secret: Path, count: int) -> Iterator[str]:
    """Names that try to be paths, in ever other spellings."""
    up = (
        "../",
        "..%2f",
        "%2e%2e/",
        "%2e%2e%2f",
        "..\\",
        "..%5c",
        "%252e%252e%252f",
        "..;/",
        "....//",
        "．．/",
        "%c0%ae%c0%ae/",
    )
    ends = (str(secret).lstrip("/"), "secret.txt", "etc/passwd", "decisions.sqlite", "tokens", "")
    whole = [
        *("%00", "a%00.txt", "file:%2f%2f%2fetc%2fpasswd", "%23/../", "link", "link%2fsecret.txt", "~", "~root", "."),
        *(
            "%2e",
            "..",
            "%0a",
            "%0d%0aX:%20y",
            "%ff%fe",
            "%f0%9f%92%a9",
            "a" * 300,
            "con",
            "nul",
            "$HOME",
            "`id`",
            "%7c%20id",
        ),
        str(secret).replace("/", "%2f"),
    ]
    depths = [part * depth + end.replace("/", "%2f") for depth in range(1, 9) for part in up for end in ends]
    spaced = depths[:: max(1, len(depths) // max(1, count - len(whole)))]
    yield from [*whole, *spaced][:count]


def check(count: int, defect: str = "") -> Found:
    """`count` examples an operation; 200 traversals and every raw connection come besides, or a tenth of them."""
    serve = from_tests("e2e/test_serve.py")
    found = Found()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        if defect in ("", KEY_ERROR):
            _schema(found, serve, root, count, CODE.get(defect, ""))
        if defect in ("", PATHS):
            _names(found, serve, root, 200 if count >= 50 else 40, CODE.get(defect, ""))
        if defect in ("", LENGTHS):
            _raw(found, serve, root, CODE.get(defect, ""), few=count < 50)
    found.bad_inputs = found.tried
    return found


def _schema(found: Found, serve: Any, root: Path, count: int, before: str) -> None:
    """Schemathesis, with a policy that is there; what it asked is counted by the service itself."""
    if not is_here("schemathesis"):
        found.fault("schemathesis is not installed; `make setup` brings it")
        return
    token, tokens, config = "k" * 32, root / "tokens", root / "schemathesis.toml"
    tokens.write_text(token + "\n")
    # The defect is only seen where a policy is not there.
    config.write_text("" if before else serve.SCHEMATHESIS)
    process = serve.Process(root / "schema", "--token-file", str(tokens), before=before)
    head = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    try:
        _asked(process, "POST", "/v1/policies", json.dumps(serve.POLICY), head)
        told = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)),
                *("run", f"http://127.0.0.1:{process.port}/openapi.json", "-H", f"Authorization: Bearer {token}"),
                *("--checks", "not_a_server_error,status_code_conformance,content_type_conformance"),
                *("--checks", "response_schema_conformance,negative_data_rejection", "--seed", str(seed(1))),
                *("--max-examples", str(count), "--no-color"),
            ],
            capture_output=True,
            text=True,
            cwd=root,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        _, text = _asked(process, "GET", "/metrics", None, head)
    finally:
        process.end()
    statuses: dict[int, int] = {}
    for status, number in re.findall(r'surefoot_requests_total\{.*status="(\d+)"\} (\d+)', text):
        statuses[int(status)] = statuses.get(int(status), 0) + int(number)
    found.tried += sum(statuses.values())
    found.server_errors += sum(n for status, n in statuses.items() if status >= 500 and status not in (503, 507))
    found.notes["requests by schema"] = sum(statuses.values())
    if told.returncode:
        shown = [line.strip() for line in told.stdout.splitlines() if line.strip()]
        found.fault(f"schemathesis: {' '.join(shown[-6:])[:300]}")


def _asked(process: Any, method: str, path: str, body: Any, head: dict[str, str]) -> tuple[int, str]:
    link = http.client.HTTPConnection("127.0.0.1", process.port, timeout=90)
    try:
        link.request(method, path, body, head)
        answer = link.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    finally:
        link.close()


def _names(found: Found, serve: Any, root: Path, count: int, before: str) -> None:
    folder, secret = root / "names", root / "secret.txt"
    secret.write_text(SECRET)
    process = serve.Process(folder, before=before)
    (folder / "policies").mkdir(exist_ok=True)
    (folder / "policies/link").symlink_to(secret)
    try:
        for number, name in enumerate(traversals(secret, count)):
            method, _, path = PLACES[number % len(PLACES)].partition(" ")
            # Where a name is read first, every spelling is tried; the other places take turns.
            for how, where in {("GET", "/v1/policies/{}"), (method, path)}:
                _name(found, process, how, where.format(name))
        if process.ask("GET", "/healthz")[0] != 200:
            found.fault("it does not answer any more")
    finally:
        process.end()
    found.notes["traversals"] = count


def _name(found: Found, process: Any, method: str, path: str) -> None:
    body = b'{"value": 1.0, "embedding": [1, 2, 3, 4, 5, 6, 7, 8]}' if method == "POST" else b""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
    got = process.raw(head.encode("utf-8", "replace") + b"Content-Length: %d\r\n\r\n" % len(body) + body, wait=10)
    found.tried += 1
    status = int(got[9:12]) if got.startswith(b"HTTP/1.1 ") else 0
    found.server_errors += status >= 500
    if SECRET.encode() in got or b"root:" in got or b"SQLite format" in got:
        found.silent += 1
        found.fault(f"{method} {path} showed a file")
    elif not 400 <= status < 500:
        found.fault(f"{method} {path} was answered by {status}")


def _raw(found: Found, serve: Any, root: Path, before: str, *, few: bool) -> None:
    process = serve.Process(root / "raw", before=serve.QUICK + "\n" + before)
    tried = 0
    try:
        process.ask("POST", "/v1/policies", serve.POLICY)
        for name, (sent, status) in list(serve.ABUSES.items())[:: 3 if few and not before else 1]:
            got = process.raw(sent)
            tried += 1
            found.server_errors += got.startswith(b"HTTP/1.1 5")
            if not got.startswith(b"HTTP/1.1 %d" % status) or b"Traceback" in got:
                found.fault(f"{name}: {got[:60]!r} and not {status}")
        if process.ask("POST", "/v1/policies/p/decisions", {"embedding": [0.1] * 8})[0] != 200:
            found.fault("it does not answer any more")
    finally:
        process.end()
    found.tried += tried
    found.notes["raw connections"] = tried


BLOCK = Block(
    name="B2",
    title="bad requests: outside the schema, names that are paths, wrong lengths, stalled connections",
    over="service",
    unit="requests",
    smoke=3,
    count=150,
    long=10_000,
    check=check,
    mutants={KEY_ERROR: 5, PATHS: 40, LENGTHS: 50},
)
