"""The operations of the service, independent of HTTP: decide, activate, reward. All run in one event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from surefoot.data.journal import Entry, Row, row_of
from surefoot.errors import ConfigError
from surefoot.learn.checkpoint.atomic_files import RunLock
from surefoot.server import schema
from surefoot.server.decisions.batching import DecisionBatcher
from surefoot.server.decisions.learning import close_decision, learn_forever, learn_later, learn_now
from surefoot.server.decisions.outcomes import RewardRecord, TrackedDecision, ends, value_of
from surefoot.server.decisions.recovery import recall
from surefoot.server.decisions.requests import DecisionRequest, ask
from surefoot.server.decisions.served_policy import ServedPolicy
from surefoot.server.decisions.store import Durability, Store, settle
from surefoot.server.http.problems import Refused

# Closed decisions in memory, for retries and late rewards; older ones are read from disk. About 0.8 kB each.
IN_MEMORY = 20_000


class Service:
    """Policies, their decisions and their rewards. Call `start` in a running loop, `close` at the end."""

    def __init__(
        self,
        directory: Path,
        *,
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
        durability: Durability = "disk",
        digits: int | None = None,
    ) -> None:
        self.directory, self.clock, self.digits, self.in_memory = directory, clock, digits, IN_MEMORY
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as why:
            raise ConfigError(
                f"{directory} cannot be a folder of decisions: {why.strerror}; give another --data-dir"
            ) from why
        # Before the store is opened: a data directory has one writer.
        self._lock = RunLock(directory).__enter__()
        self.store = Store(directory / "decisions.sqlite", durability=durability)
        self.policies: dict[str, ServedPolicy] = {}
        """{name: policy}"""
        self.keys: dict[str, ServedPolicy] = {}
        """{key: policy}; a policy that is renamed keeps its key."""
        self.leaving: set[str] = set()
        """Keys of policies that are being deleted."""
        self.decisions: dict[str, TrackedDecision] = {}
        self.job_done: Callable[[schema.JobResponse], object] = lambda job: None
        """Called when the update of a job is over."""
        self.workers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="surefoot-worker")
        """Threads for large policies, files and evaluations."""
        self.learning_seconds = 0.0
        """Time of learning in this turn of the loop."""
        self.draining = False
        self.forgot = False
        """True once some decisions are on disk only."""
        self._turns = DecisionBatcher(self, np.random.default_rng(seed))
        self._tasks: set[asyncio.Task[Any]] = set()
        self._learning: dict[str, asyncio.Task[Any]] = {}

    async def start(self) -> None:
        """Load policies and recent decisions from the store."""
        self.store.start(asyncio.get_running_loop())
        await recall(self)

        async def expire_for_ever() -> None:
            while True:
                await asyncio.sleep(1.0)
                self.expire()

        self.spawn(expire_for_ever())

    async def close(self) -> None:
        """Stop learning and write all pending entries."""
        self.draining = True
        for task in list(self._tasks):
            task.cancel()
        # Threads that write a version finish it: nothing may be written after the lock is released.
        await asyncio.get_running_loop().run_in_executor(None, self.workers.shutdown)
        self.store.close()
        # Last: the next process must not open the store before it is closed here.
        self._lock.__exit__(None, None, None)

    def serve(self, serving: ServedPolicy) -> None:
        """Let a policy decide and learn from now on."""
        self.policies[serving.config.name] = self.keys[serving.key] = serving
        self._learning[serving.key] = self.spawn(learn_forever(self, serving))

    def unserve(self, serving: ServedPolicy) -> None:
        """Stop a policy; its decisions are no longer known."""
        del self.policies[serving.config.name], self.keys[serving.key]
        self._learning.pop(serving.key).cancel()
        self.decisions = {id: each for id, each in self.decisions.items() if each.policy != serving.key}

    async def erase(self, key: str) -> None:
        """Delete everything that is stored of a policy, a little at a time; a restart continues where it was."""
        self.leaving.add(key)
        await self.store.write(Entry(kind="deleted", id=key, body={}))
        while self.store.journal.delete_tagged(key, 500):
            await asyncio.sleep(0)
        journal = self.store.journal
        for kind in ("policy", "deleted"):
            if (entry := journal.get(kind, key)) is not None:
                journal.delete(kind, [entry.seq])
        self.leaving.discard(key)

    def policy(self, name: str) -> ServedPolicy:
        if name not in self.policies:
            raise Refused("unknown", f"there is no policy {name!r}; there are {', '.join(self.policies) or 'none yet'}")
        return self.policies[name]

    async def decide(self, name: str, wanted: Sequence[schema.NewDecision]) -> list[schema.DecisionResponse]:
        """Decide for each request; the same id always gets the same answer."""
        done: asyncio.Future[list[schema.DecisionResponse]] = asyncio.get_running_loop().create_future()
        self.begin(name, wanted, lambda result: settle(done, result))
        return await done

    def begin(
        self,
        name: str,
        wanted: Sequence[schema.NewDecision],
        then: Callable[[list[schema.DecisionResponse] | Exception], None],
    ) -> None:
        """Decide for each request and call `then` once all are on disk. Raise `Refused` for invalid requests."""
        serving = self.policy(name)
        many = len(wanted) > 1
        asked = [ask(serving, new, f"/decisions/{place}" if many else "") for place, new in enumerate(wanted)]
        waiting, fresh = self._admit(serving, asked)
        pending = {id: each for id, each in waiting.items() if each.waiters is not None}
        left, failed = len(pending), list[Exception]()

        def one(error: Exception | None) -> None:
            nonlocal left
            left -= 1
            if error is not None:
                failed.append(error)
            if left <= 0:
                then(failed[0] if failed else [waiting[a.id].answered for a in asked])

        if not pending:
            one(None)
            return
        for each in pending.values():
            assert each.waiters is not None
            each.waiters.append(one)
        if fresh:
            self._turns.take([(serving, a, waiting[a.id]) for a in fresh])

    def _admit(
        self, serving: ServedPolicy, asked: Sequence[DecisionRequest]
    ) -> tuple[dict[str, TrackedDecision], list[DecisionRequest]]:
        """Return the decision of each request, and the new requests. Refuse an id that was used with another body."""
        waiting: dict[str, TrackedDecision] = {}
        fresh: dict[str, DecisionRequest] = {}
        for a in asked:
            known = waiting.get(a.id) or self.find(a.id)
            if known is None:
                known = TrackedDecision(policy=serving.key, asked=a.asked, waiters=[])
                fresh[a.id] = a
            elif known.policy != serving.key or known.asked != a.asked:
                raise Refused("conflict", f"decision {a.id!r} exists with another body")
            waiting[a.id] = known
        # Only after all were checked: a batch is accepted as a whole or refused as a whole.
        for id in fresh:
            self.decisions[id] = waiting[id]
        return waiting, list(fresh.values())

    def count_in(self, serving: ServedPolicy, waiting: TrackedDecision) -> None:
        """Count a decision that is on disk."""
        serving.decision_count += 1
        answer = waiting.answered
        serving.shares[answer.name or ""] += 1
        if answer.abstained:
            # Nothing was done that an outcome could be reported for.
            waiting.record, waiting.final = None, 0.0
        elif not waiting.deferred:
            self.open_for_reward(serving, waiting)
        while len(self.decisions) > self.in_memory:
            oldest = next(iter(self.decisions))
            # It still waits for its reward, which needs the decision in memory.
            if self.decisions[oldest].final is None:
                break
            del self.decisions[oldest]
            self.forgot = True

    def open_for_reward(self, serving: ServedPolicy, waiting: TrackedDecision) -> None:
        """Let the waiting time of a decision begin."""
        serving.due.append((waiting.answered.expires_at, waiting.answered.decision_id))
        serving.waiting += 1

    def find(self, id: str) -> TrackedDecision | None:
        """Return the decision with this id, from memory or disk; None if it is unknown."""
        known = self.decisions.get(id)
        if known is not None or not self.forgot:
            return known
        entry = self.store.journal.get("decision", id)
        if entry is None or entry.tag not in self.keys:
            return None
        answer = msgspec.convert(entry.body["answer"], schema.DecisionResponse)
        # Only closed decisions are dropped from memory. `final` marks it as closed; the rewards are in the store.
        return TrackedDecision(policy=entry.tag, asked=entry.body["asked"], answer=answer, final=0.0)

    def decision(self, id: str) -> tuple[ServedPolicy, TrackedDecision]:
        """Return the decision with this id and its policy."""
        waiting = self.find(id)
        if waiting is None or waiting.answer is None or waiting.policy not in self.keys:
            raise Refused("unknown", f"there is no decision {id!r}")
        return self.keys[waiting.policy], waiting

    async def activate(self, id: str) -> schema.DecisionResponse:
        """Activate a deferred decision: its waiting time starts and it will be learned from."""
        serving, waiting = self.decision(id)
        if waiting.deferred and waiting.final is None:
            expires = self.clock() + serving.config.wait_seconds
            await self.store.write(Entry(kind="activated", id=id, tag=serving.key, body=expires))
            if waiting.deferred:  # no concurrent request was faster
                waiting.deferred, waiting.answered.expires_at = False, expires
                self.open_for_reward(serving, waiting)
        return waiting.answered

    async def reward(self, id: str, new_reward: schema.NewReward, *, client: str = "") -> schema.RewardResponse:
        """Store the reward of a decision. A repeated request changes nothing; another value is refused, or added."""
        serving, waiting = self.decision(id)
        value = value_of(new_reward, serving.config.reward_range)
        parts = {} if new_reward.parts is UNSET else dict(new_reward.parts)
        named = "" if new_reward.reward_id is UNSET else new_reward.reward_id
        truncated = new_reward.truncated
        new = RewardRecord(value, parts, new_reward.terminated and not truncated, truncated, named, client)
        how = serving.config.aggregation
        if waiting.answered.abstained:
            raise Refused("conflict", f"decision {id!r} chose none of the choices; there is no outcome to report")
        if waiting.deferred:
            raise Refused("conflict", f"decision {id!r} was not activated yet")
        if self._is_repeat(waiting, new, adds=how == "sum"):
            if waiting.storing is not None:
                # Shielded: a client that disconnects must not cancel the future that others wait for.
                await asyncio.shield(waiting.storing)
            return schema.RewardResponse(decision_id=id, value=value, status="replayed")
        if how == "first" and waiting.rewards:
            raise Refused(
                "conflict", f"decision {id!r} has its reward {waiting.rewards[0].value:g}; the first one counts"
            )
        # The clock too: `expire` runs once per second, and a late reward may arrive before it.
        if waiting.final is not None or self.clock() > waiting.answered.expires_at:
            raise Refused(
                "expired", f"decision {id!r} was closed; rewards count within {serving.config.wait_seconds:g} s"
            )
        number = len(waiting.rewards)
        if how == "first":
            new = new._replace(order=self._position(serving, waiting, [new]))
        await self._store_reward(serving, waiting, new, number)
        counted = sum(r.value for r in waiting.rewards) if how == "sum" else value
        return schema.RewardResponse(decision_id=id, value=counted, status="added" if number else "stored")

    def _is_repeat(self, waiting: TrackedDecision, new: RewardRecord, *, adds: bool) -> bool:
        """Return whether the reward is a repetition; where rewards are summed, only its id can show that."""
        if new.id and (known := next((r for r in waiting.rewards if r.id == new.id), None)) is not None:
            if not known.same(new):
                raise Refused("conflict", f"reward {new.id!r} exists with another value")
            return True
        return bool(waiting.rewards) and waiting.rewards[-1].same(new) and (not adds or waiting.final is not None)

    def _position(self, serving: ServedPolicy, waiting: TrackedDecision, rewards: Sequence[RewardRecord]) -> int:
        """Return the position of the outcome that closing a decision makes; 0: nothing is learned from it now."""
        if not waiting.learns or serving.frozen or not ends(waiting, rewards):
            return 0
        client = rewards[-1].client if rewards else ""
        if client and not serving.clients.take(client, serving.config.training.client_share):
            serving.left_out += 1
            return 0
        serving.order += 1
        return serving.order

    async def _store_reward(
        self, serving: ServedPolicy, waiting: TrackedDecision, new: RewardRecord, number: int
    ) -> None:
        id = waiting.answered.decision_id
        # Before the write: a retry that arrives meanwhile is then a repetition and waits for the same commit.
        waiting.rewards.append(new)
        waiting.storing = storing = asyncio.get_running_loop().create_future()
        row = row_of(Entry(kind="reward", id=f"{id}#{number}", tag=serving.key, number=new.value, body=new._asdict()))

        def then(error: Exception | None) -> None:
            if error is not None:
                # Not acknowledged: a retry must be able to store it.
                waiting.rewards.remove(new)
                waiting.storing = None
            elif serving.config.aggregation == "first" and waiting.final is None:
                # In the callback: outcomes are learned from in the order in which they are on disk.
                self.finish(serving, waiting, new.order)
            settle(storing, error)

        try:
            self.store.submit([row], then)
        except Refused as why:
            then(why)
        try:
            # Shielded: the reward of a client that disconnects is stored all the same.
            await asyncio.shield(storing)
        finally:
            if storing.done():
                storing.exception()  # retrieved: asyncio must not warn if no retry waits for it

    def finish(self, serving: ServedPolicy, waiting: TrackedDecision, order: int) -> None:
        """Close a decision with its rewards, or with the default reward; learn from it if it has a position."""
        serving.waiting -= 1
        serving.rewarded += bool(waiting.rewards)
        steps = close_decision(serving, waiting)
        serving.recent.append(waiting.final or 0.0)
        if order:
            learn_later(serving, order, steps)
            learn_now(self, serving)

    def begin_turn(self) -> None:
        """Allow learning in the next turn of the loop."""
        self.learning_seconds = 0.0

    def expire(self) -> int:
        """Close decisions whose waiting time is over; return how many."""
        now, count = self.clock(), 0
        for serving in self.policies.values():
            closing = list[tuple[TrackedDecision, int]]()
            # Decisions of a policy wait equally long, so the first one that is not due ends the loop.
            while serving.due and serving.due[0][0] < now:
                _, id = serving.due.popleft()
                waiting = self.decisions.get(id)
                if waiting is not None and waiting.final is None:
                    closing.append((waiting, self._position(serving, waiting, waiting.rewards)))
            if closing:
                count += len(closing)
                self._close(serving, closing)
        return count

    def _close(self, serving: ServedPolicy, closing: Sequence[tuple[TrackedDecision, int]]) -> None:
        """Write that decisions are closed, then learn from them: after a crash the order must be the same."""

        def then(error: Exception | None) -> None:
            for waiting, order in closing:
                if error is not None:  # tried again in a second
                    serving.due.appendleft((waiting.answered.expires_at, waiting.answered.decision_id))
                elif waiting.final is None:
                    self.finish(serving, waiting, order)

        rows: list[Row] = [
            row_of(Entry(kind="closed", id=w.answered.decision_id, tag=serving.key, body={"order": order}))
            for w, order in closing
        ]
        try:
            self.store.submit(rows, then)
        except Refused as why:
            then(why)

    def spawn(self, work: Any) -> asyncio.Task[Any]:
        """Run a coroutine in the background until it is done or the service closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
