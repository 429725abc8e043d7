"""The decision service from Python: one method a thing that can be asked, errors by status, retries that decide once."""

from __future__ import annotations

import http.client
import threading
import time
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from email.message import Message
from typing import Any, TypeVar

import msgspec

from surefoot.client import calls
from surefoot.client.asynchronous import AsyncSurefoot
from surefoot.client.bodies import AGAIN, IDLE, NOTHING_DONE, backoff, error_of
from surefoot.client.calls import Call
from surefoot.client.errors import (
    Conflict,
    ConnectionFailed,
    DiskFull,
    Expired,
    Forbidden,
    Invalid,
    Malformed,
    NotFound,
    RateLimited,
    ServiceFailed,
    StatusError,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from surefoot.server.schema import (
    Act,
    Chances,
    CheckpointResponse,
    DecisionResponse,
    Explained,
    Health,
    JobResponse,
    OffPolicy,
    PolicyResponse,
    RewardResponse,
    RunResponse,
    Version,
)

__all__ = [
    "AsyncSurefoot",
    "Conflict",
    "ConnectionFailed",
    "DiskFull",
    "Expired",
    "Forbidden",
    "Invalid",
    "Malformed",
    "NotFound",
    "RateLimited",
    "ServiceFailed",
    "StatusError",
    "Surefoot",
    "TimedOut",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
]

T = TypeVar("T")


class Surefoot:
    """A service. Threads may share it: each has a connection of its own."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8765",
        *,
        token: str | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
        max_retry_after: float = 30.0,
    ) -> None:
        parts = urllib.parse.urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base_url is {base_url!r}; it is like http://127.0.0.1:8765")
        self.base_url, self.timeout = base_url.rstrip("/"), timeout
        self.max_retries, self.max_retry_after = max_retries, max_retry_after
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._mine = threading.local()

    def __enter__(self) -> Surefoot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of this thread's connection."""
        connection: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if connection is not None:
            connection.close()
            self._mine.connection = None

    def health(self) -> Health:
        """Whether it lives; asked without a token."""
        return self._do(calls.health())

    def ready(self) -> Health:
        """Whether it answers; Unavailable while it shuts down."""
        return self._do(calls.ready())

    def metrics(self) -> str:
        """Counters in Prometheus' format."""
        return self._do(calls.metrics())

    def policies(self) -> list[PolicyResponse]:
        """All policies."""
        return self._do(calls.policies())

    def policy(self, name: str) -> PolicyResponse:
        """How a policy is doing."""
        return self._do(calls.policy(name))

    def create_policy(self, name: str, actions: Sequence[str] = (), **settings: Any) -> PolicyResponse:
        """Make a policy; the same again is the same policy. Settings are the fields of `schema.NewPolicy`.

        One without actions has `choose="candidates"`: its decisions bring what there is to choose from.
        """
        return self._do(calls.create_policy(name, actions, settings))

    def decide(self, policy: str, **seen: Any) -> DecisionResponse:
        """Choose an action for `text` or an `embedding`, or one of `candidates`; fields are those of `schema.NewDecision`.

        The decision's id is made here unless you give one, so that a retry is the same decision. An embedding that is a
        numpy array or another buffer of floats is sent as base64, a list as JSON.
        """
        return self._do(calls.decide(policy, seen))

    def decide_many(self, policy: str, many: Iterable[Mapping[str, Any]]) -> list[DecisionResponse]:
        """Choose many actions, all or none."""
        return self._do(calls.decide_many(policy, many))

    def distribution(self, policy: str, **seen: Any) -> Chances:
        """What would be chosen how often; nothing is decided or kept. Fields as for `decide`."""
        return self._do(calls.distribution(policy, seen))

    def runs(self) -> list[RunResponse]:
        """The trained policies that `surefoot serve RUN` serves."""
        return self._do(calls.runs())

    def run(self, name: str) -> RunResponse:
        """What a trained policy sees and does."""
        return self._do(calls.run(name))

    def act(self, run: str, observation: Any, **how: Any) -> Act:
        """What a trained policy does: `deterministic`, `mask`, `episode` and `start` as in `schema.NewAct`.

        An observation is a list of numbers laid flat, an array, or a dict of them; arrays go as base64.
        """
        return self._do(calls.act(run, observation, how))

    def act_many(self, run: str, observations: Iterable[Any], **how: Any) -> list[Act]:
        """The same for many observations, all asked for alike."""
        return self._do(calls.act_many(run, observations, how))

    def reward(self, decision: str, value: float | None = None, **told: Any) -> RewardResponse:
        """What came of a decision: a value, or `parts`, `terminated`, `truncated`.

        Telling the same twice counts once, except where a policy's aggregation is "sum".
        """
        return self._do(calls.reward(decision, value, told))

    def activate(self, decision: str) -> DecisionResponse:
        """A deferred decision was carried out."""
        return self._do(calls.activate(decision))

    def explain(self, decision: str) -> Explained:
        """Why an action was chosen, and what came of decisions like it."""
        return self._do(calls.explain(decision))

    def versions(self, policy: str) -> list[Version]:
        """Newest first."""
        return self._do(calls.versions(policy))

    def promote(self, policy: str, version: int, *, share: float = 1.0, gate: bool = False) -> PolicyResponse:
        """Let a version answer; with a share below 1 as a canary, with `gate` only if it is not worse."""
        return self._do(calls.promote(policy, version, share, gate))

    def rollback(self, policy: str) -> PolicyResponse:
        """Back to the version that answered before."""
        return self._do(calls.rollback(policy))

    def evaluate(self, policy: str, version: int, *, last: int = 10_000) -> OffPolicy:
        """What another version would have earned, from the log."""
        return self._do(calls.evaluate(policy, version, last))

    def update(self, policy: str, *, least: int | None = None) -> JobResponse:
        """Learn now, as a job; `finished` waits for it."""
        return self._do(calls.update(policy, least))

    def job(self, id: str) -> JobResponse:
        """How far a job is."""
        return self._do(calls.job(id))

    def finished(self, job: JobResponse | str, *, every: float = 0.2) -> JobResponse:
        """The job once it is over; SurefootError where it failed."""
        id = job if isinstance(job, str) else job.job_id
        while not calls.ended(now := self.job(id)):
            time.sleep(every)
        return now

    def checkpoint(self, policy: str, *, version: int | None = None) -> CheckpointResponse:
        """Give a version a name that stays; the one that answers, if none is given."""
        return self._do(calls.checkpoint(policy, version))

    def activate_checkpoint(self, id: str) -> PolicyResponse:
        """Let the version of a checkpoint answer."""
        return self._do(calls.activate_checkpoint(id))

    def send(self, method: str, path: str, body: Any = None, *, repeatable: bool = True) -> bytes:
        """The answer as it came, tried again where that is safe."""
        raw = None if body is None else msgspec.json.encode(body)
        for tries in range(self.max_retries + 1):
            last, wait = tries == self.max_retries, None
            try:
                status, headers, answer = self._once(method, path, raw)
                if status < 300:
                    return answer
                error = error_of(status, headers, answer)
                safe = repeatable or status in NOTHING_DONE
                if last or not safe or status not in AGAIN:
                    raise error
                wait = error.retry_after
            except (ConnectionFailed, TimedOut):
                if last or not repeatable:
                    raise
            time.sleep(min(wait or 0.0, self.max_retry_after) or backoff(tries))
        raise AssertionError("the last try returns or raises")

    def _once(self, method: str, path: str, raw: bytes | None) -> tuple[int, Message, bytes]:
        connection = self._connection()
        headers = self._headers if raw is None else {**self._headers, "Content-Type": "application/json"}
        try:
            connection.request(method, self._prefix + path, raw, headers)
            response = connection.getresponse()
            answer = response.read()
            self._mine.used = time.monotonic()
        except TimeoutError as why:
            connection.close()
            raise TimedOut(f"no answer from {self.base_url} within {self.timeout:g} s") from why
        except (OSError, http.client.HTTPException) as why:
            connection.close()
            raise ConnectionFailed(f"cannot reach {self.base_url}: {why or type(why).__name__}") from why
        return response.status, response.headers, answer

    def _connection(self) -> http.client.HTTPConnection:
        """This thread's. One that was idle is not trusted: the service closes it after some seconds."""
        kept: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if kept is not None and time.monotonic() - getattr(self._mine, "used", 0.0) < IDLE:
            return kept
        self.close()
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        self._mine.connection = made = kind(self._host, self._port, timeout=self.timeout)
        return made

    def _do(self, call: Call[T]) -> T:
        return call.answer(self.send(call.method, call.path, call.body, repeatable=call.repeatable))
