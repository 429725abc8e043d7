"""The same service from async code: every call can be cancelled, connections are kept and shared, retries decide once."""

from __future__ import annotations

import asyncio
import ssl
import time
import urllib.parse
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from email.message import Message
from typing import Any, TypeVar

import msgspec

from surefoot.client import calls
from surefoot.client.bodies import AGAIN, IDLE, NOTHING_DONE, backoff, error_of
from surefoot.client.calls import Call
from surefoot.client.errors import ConnectionFailed, TimedOut
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

T = TypeVar("T")
Link = tuple[asyncio.StreamReader, asyncio.StreamWriter, float]


class AsyncSurefoot:
    """A service. Tasks of one loop may share it; each request has a connection to itself while it lasts."""

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
        self._host, self._tls = parts.hostname, ssl.create_default_context() if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._tls else 80)
        self._prefix = parts.path.rstrip("/")
        named = f"Authorization: Bearer {token}\r\n" if token else ""
        self._head = f"Host: {parts.netloc.rpartition('@')[2]}\r\nAccept: application/json\r\n{named}"
        self._idle: deque[Link] = deque()

    async def __aenter__(self) -> AsyncSurefoot:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections that are kept."""
        while self._idle:
            self._idle.pop()[1].close()

    async def health(self) -> Health:
        """Whether it lives; asked without a token."""
        return await self._do(calls.health())

    async def ready(self) -> Health:
        """Whether it answers; Unavailable while it shuts down."""
        return await self._do(calls.ready())

    async def metrics(self) -> str:
        """Counters in Prometheus' format."""
        return await self._do(calls.metrics())

    async def policies(self) -> list[PolicyResponse]:
        """All policies."""
        return await self._do(calls.policies())

    async def policy(self, name: str) -> PolicyResponse:
        """How a policy is doing."""
        return await self._do(calls.policy(name))

    async def create_policy(self, name: str, actions: Sequence[str] = (), **settings: Any) -> PolicyResponse:
        """Make a policy; the same again is the same policy. Settings are the fields of `schema.NewPolicy`."""
        return await self._do(calls.create_policy(name, actions, settings))

    async def decide(self, policy: str, **seen: Any) -> DecisionResponse:
        """Choose an action for `text` or an `embedding`, or one of `candidates`; as in `Surefoot.decide`."""
        return await self._do(calls.decide(policy, seen))

    async def decide_many(self, policy: str, many: Iterable[Mapping[str, Any]]) -> list[DecisionResponse]:
        """Choose many actions, all or none."""
        return await self._do(calls.decide_many(policy, many))

    async def distribution(self, policy: str, **seen: Any) -> Chances:
        """What would be chosen how often; nothing is decided or kept."""
        return await self._do(calls.distribution(policy, seen))

    async def reward(self, decision: str, value: float | None = None, **told: Any) -> RewardResponse:
        """What came of a decision: a value, or `parts`, `terminated`, `truncated`."""
        return await self._do(calls.reward(decision, value, told))

    async def activate(self, decision: str) -> DecisionResponse:
        """A deferred decision was carried out."""
        return await self._do(calls.activate(decision))

    async def explain(self, decision: str) -> Explained:
        """Why an action was chosen, and what came of decisions like it."""
        return await self._do(calls.explain(decision))

    async def versions(self, policy: str) -> list[Version]:
        """Newest first."""
        return await self._do(calls.versions(policy))

    async def promote(self, policy: str, version: int, *, share: float = 1.0, gate: bool = False) -> PolicyResponse:
        """Let a version answer; with a share below 1 as a canary, with `gate` only if it is not worse."""
        return await self._do(calls.promote(policy, version, share, gate))

    async def rollback(self, policy: str) -> PolicyResponse:
        """Back to the version that answered before."""
        return await self._do(calls.rollback(policy))

    async def evaluate(self, policy: str, version: int, *, last: int = 10_000) -> OffPolicy:
        """What another version would have earned, from the log."""
        return await self._do(calls.evaluate(policy, version, last))

    async def update(self, policy: str, *, least: int | None = None) -> JobResponse:
        """Learn now, as a job; `finished` waits for it."""
        return await self._do(calls.update(policy, least))

    async def job(self, id: str) -> JobResponse:
        """How far a job is."""
        return await self._do(calls.job(id))

    async def finished(self, job: JobResponse | str, *, every: float = 0.2) -> JobResponse:
        """The job once it is over; SurefootError where it failed."""
        id = job if isinstance(job, str) else job.job_id
        while not calls.ended(now := await self.job(id)):
            await asyncio.sleep(every)
        return now

    async def checkpoint(self, policy: str, *, version: int | None = None) -> CheckpointResponse:
        """Give a version a name that stays; the one that answers, if none is given."""
        return await self._do(calls.checkpoint(policy, version))

    async def activate_checkpoint(self, id: str) -> PolicyResponse:
        """Let the version of a checkpoint answer."""
        return await self._do(calls.activate_checkpoint(id))

    async def runs(self) -> list[RunResponse]:
        """The trained policies that `surefoot serve RUN` serves."""
        return await self._do(calls.runs())

    async def run(self, name: str) -> RunResponse:
        """What a trained policy sees and does."""
        return await self._do(calls.run(name))

    async def act(self, run: str, observation: Any, **how: Any) -> Act:
        """What a trained policy does; as in `Surefoot.act`."""
        return await self._do(calls.act(run, observation, how))

    async def act_many(self, run: str, observations: Iterable[Any], **how: Any) -> list[Act]:
        """The same for many observations, all asked for alike."""
        return await self._do(calls.act_many(run, observations, how))

    async def send(self, method: str, path: str, body: Any = None, *, repeatable: bool = True) -> bytes:
        """The answer as it came, tried again where that is safe."""
        raw = None if body is None else msgspec.json.encode(body)
        for tries in range(self.max_retries + 1):
            last, wait = tries == self.max_retries, None
            try:
                async with asyncio.timeout(self.timeout):
                    status, headers, answer = await self._once(method, path, raw)
                if status < 300:
                    return answer
                error = error_of(status, headers, answer)
                safe = repeatable or status in NOTHING_DONE
                if last or not safe or status not in AGAIN:
                    raise error
                wait = error.retry_after
            except TimeoutError as why:
                if last or not repeatable:
                    raise TimedOut(f"no answer from {self.base_url} within {self.timeout:g} s") from why
            except (OSError, EOFError, ValueError) as why:
                if last or not repeatable:
                    raise ConnectionFailed(f"cannot reach {self.base_url}: {why or type(why).__name__}") from why
            await asyncio.sleep(min(wait or 0.0, self.max_retry_after) or backoff(tries))
        raise AssertionError("the last try returns or raises")

    async def _once(self, method: str, path: str, raw: bytes | None) -> tuple[int, Message, bytes]:
        reader, writer = await self._link()
        try:
            length = "" if raw is None and method == "GET" else f"Content-Length: {len(raw or b'')}\r\n"
            kind = "" if raw is None else "Content-Type: application/json\r\n"
            head = f"{method} {self._prefix}{path} HTTP/1.1\r\n{self._head}{kind}{length}\r\n"
            writer.write(head.encode("latin-1") + (raw or b""))
            await writer.drain()
            status, headers = await _read_head(reader)
            answer = await reader.readexactly(int(headers.get("content-length") or 0))
        except BaseException:  # also when the caller gives up: what comes later belongs to nobody
            writer.close()
            raise
        if (headers.get("connection") or "").lower() == "close":
            writer.close()
        else:
            self._idle.append((reader, writer, time.monotonic()))
        return status, headers, answer

    async def _link(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection nobody uses. One that was idle is not trusted: the service closes it after some seconds."""
        while self._idle:
            reader, writer, used = self._idle.pop()
            if time.monotonic() - used < IDLE and not writer.is_closing() and not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self._host, self._port, ssl=self._tls)

    async def _do(self, call: Call[T]) -> T:
        return call.answer(await self.send(call.method, call.path, call.body, repeatable=call.repeatable))


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, Message]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = Message()
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip()] = value.strip()
    return int(lines[0].split()[1]), headers
