"""The Python client against small services that answer, drop and refuse as they are told."""

import asyncio
import base64
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from surefoot.client import (
    AsyncSurefoot,
    Conflict,
    ConnectionFailed,
    Invalid,
    StatusError,
    Surefoot,
    TimedOut,
    Unavailable,
)
from surefoot.errors import SurefootError

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


def test_a_retry_is_the_same_decision(fakes: Any) -> None:
    fake = fakes(lambda n, body: None if n < 3 else (200, {}, DECISION))
    assert Surefoot(fake.url).decide("p", text="hello").name == "bye"
    assert len(fake.bodies) == 3
    assert len({body["decision_id"] for body in fake.bodies}) == 1


def test_an_id_that_is_given_is_kept(fakes: Any) -> None:
    fake = fakes(lambda n, body: (200, {}, DECISION))
    Surefoot(fake.url).decide("p", text="hello", decision_id="mine")
    assert fake.bodies[0] == {"text": "hello", "decision_id": "mine"}


def test_arrays_go_as_base64_and_lists_as_numbers(fakes: Any) -> None:
    fake = fakes(lambda n, body: (200, {}, DECISION))
    client = Surefoot(fake.url)
    for row in (np.array([1.5, -2.0], np.float32), np.array([1.5, -2.0])):
        client.decide("p", embedding=row)
        assert np.frombuffer(base64.b64decode(fake.bodies[-1]["embedding_b64"]), "<f4").tolist() == [1.5, -2.0]
    client.decide("p", embedding=[1.5, -2.0])
    assert fake.bodies[-1]["embedding"] == [1.5, -2.0]


def test_what_must_not_be_done_twice_is_not_tried_twice(fakes: Any) -> None:
    fake = fakes(lambda n, body: None)
    with pytest.raises(ConnectionFailed, match="cannot reach"):
        Surefoot(fake.url).rollback("p")
    assert len(fake.bodies) == 1


def test_an_error_is_of_its_status_and_has_the_problems_fields(fakes: Any) -> None:
    problem = {
        "type": "about:surefoot/invalid",
        "title": "T",
        "detail": "2 numbers",
        "pointer": "/x",
        "request_id": "r",
    }
    fake = fakes(lambda n, body: (422, {}, problem))
    with pytest.raises(Invalid, match=r"422: 2 numbers \(at /x\)") as caught:
        Surefoot(fake.url).decide("p", text="hello")
    assert (caught.value.type, caught.value.pointer, caught.value.request_id) == (problem["type"], "/x", "r")
    assert isinstance(caught.value, StatusError)
    assert isinstance(caught.value, SurefootError)
    assert len(fake.bodies) == 1


def test_a_long_retry_after_is_capped(fakes: Any) -> None:
    fake = fakes(lambda n, body: (503, {"Retry-After": "259200"}, {"detail": "not now"}))
    begin = time.monotonic()
    with pytest.raises(Unavailable) as caught:
        Surefoot(fake.url, max_retry_after=0.02).health()
    assert caught.value.retry_after == 259200
    assert len(fake.bodies) == 3
    assert time.monotonic() - begin < 30.0


def test_a_retry_after_may_be_a_date(fakes: Any) -> None:
    fake = fakes(lambda n, body: (503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, {}))
    with pytest.raises(Unavailable) as caught:
        Surefoot(fake.url, max_retries=0).health()
    assert caught.value.retry_after == 0.0


def test_conflicts_are_not_tried_again(fakes: Any) -> None:
    fake = fakes(lambda n, body: (409, {}, {"detail": "told before"}))
    with pytest.raises(Conflict, match="told before"):
        Surefoot(fake.url).reward("d1", 1.0)
    assert len(fake.bodies) == 1


def test_a_service_that_never_answers_is_given_up(fakes: Any) -> None:
    fake = fakes(lambda n, body: time.sleep(0.3))
    with pytest.raises(TimedOut, match="within 0.05 s"):
        Surefoot(fake.url, timeout=0.05, max_retries=1).health()


def test_fields_of_a_newer_service_are_passed_over(fakes: Any) -> None:
    explained = {
        "decision": {**DECISION, "mood": "fine"},
        "distribution": [0.5, 0.5],
        "prior": 0.5,
        "learned": 0.0,
        "exploration": 0.5,
        "nearest": [{"decision_id": "d0", "action": 0, "reward": 1.0, "likeness": 1.0, "colour": "red"}],
        "weather": "rain",
    }
    fake = fakes(lambda n, body: (200, {}, explained))
    assert Surefoot(fake.url).explain("d1").nearest[0].reward == 1.0


def test_an_answer_of_another_kind_is_an_error(fakes: Any) -> None:
    fake = fakes(lambda n, body: (200, {}, {"hello": 1}))
    with pytest.raises(SurefootError, match="not a Decision"):
        Surefoot(fake.url).decide("p", text="hello")


def test_a_token_is_sent_and_names_are_quoted(fakes: Any) -> None:
    fake = fakes(lambda n, body: (200, {}, []))
    Surefoot(fake.url, token="secret").policies()
    assert fake.heads[0]["Authorization"] == "Bearer secret"
    with pytest.raises(ValueError, match="base_url is 'localhost'"):
        Surefoot("localhost")


def test_a_connection_that_was_idle_is_made_anew(fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fakes(lambda n, body: (200, {}, {"status": "ok"}))
    client = Surefoot(fake.url)
    client.health()
    first = client._mine.connection
    client.health()
    assert client._mine.connection is first
    monkeypatch.setattr("surefoot.client.IDLE", 0.0)
    client.health()
    assert client._mine.connection is not first


def test_the_async_client_has_the_same_methods() -> None:
    def methods(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert methods(AsyncSurefoot) == methods(Surefoot)


def test_an_async_retry_is_the_same_decision_and_connections_are_kept(fakes: Any) -> None:
    fake = fakes(lambda n, body: None if n < 3 else (200, {}, DECISION))

    async def story() -> int:
        async with AsyncSurefoot(fake.url) as client:
            assert (await client.decide("p", text="hello")).name == "bye"
            await asyncio.gather(*(client.decide("p", text="more") for _ in range(4)))
            kept = len(client._idle)
            await client.decide("p", text="once more")
            assert len(client._idle) == kept
            return kept

    assert 1 <= asyncio.run(story()) <= 4
    assert len({body["decision_id"] for body in fake.bodies[:3]}) == 1


def test_async_errors_are_those_of_the_other_client(fakes: Any) -> None:
    conflict = fakes(lambda n, body: (409, {}, {"detail": "told before"}))
    slow = fakes(lambda n, body: time.sleep(0.3))
    gone = fakes(lambda n, body: None)

    async def story() -> None:
        with pytest.raises(Conflict, match="told before"):
            await AsyncSurefoot(conflict.url).reward("d1", 1.0)
        with pytest.raises(TimedOut, match="within 0.05 s"):
            await AsyncSurefoot(slow.url, timeout=0.05, max_retries=0).health()
        with pytest.raises(ConnectionFailed, match="cannot reach"):
            await AsyncSurefoot(gone.url).rollback("p")

    asyncio.run(story())
    assert len(gone.bodies) == 1


def test_an_async_call_can_be_given_up(fakes: Any) -> None:
    slow = fakes(lambda n, body: time.sleep(0.3) or (200, {}, DECISION))

    async def story() -> int:
        client = AsyncSurefoot(slow.url)
        task = asyncio.create_task(client.decide("p", text="hello"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(client._idle)

    assert asyncio.run(story()) == 0


def test_it_loads_neither_torch_nor_numpy() -> None:
    code = "import sys, surefoot.client; print([m for m in ('torch', 'numpy', 'uvicorn') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
