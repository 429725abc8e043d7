"""The operations of the service, independent of HTTP: decide, activate, reward. All run in one event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from surefoot.data.experience import Outcome
from surefoot.data.journal import Entry
from surefoot.decide.promotion import Versions
from surefoot.errors import ConfigError, DecisionError
from surefoot.learn.checkpoint.atomic_files import RunLock
from surefoot.server import schema
from surefoot.server.decisions.batching import DecisionBatcher
from surefoot.server.decisions.learning_process import LearningProcess, PolicyLearner
from surefoot.server.decisions.served_policy import (
    DecisionRequest,
    RewardRecord,
    ServedPolicy,
    TrackedDecision,
    ask,
    final_reward,
    read_decision,
    value_of,
)
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
        pupil: PolicyLearner | None = None,
        durability: Durability = "disk",
        digits: int | None = None,
    ) -> None:
        self.directory, self.clock, self.digits = directory, clock, digits
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as why:
            raise ConfigError(
                f"{directory} cannot be a folder of decisions: {why.strerror}; give another --data-dir"
            ) from why
        # Before the store is opened: a data directory has one writer.
        self._lock = RunLock(directory).__enter__()
        self.store = Store(directory / "decisions.sqlite", durability=durability)
        self.apprentice = pupil or LearningProcess(directory / "policies")
        self.policies: dict[str, ServedPolicy] = {}
        self.decisions: dict[str, TrackedDecision] = {}
        self.draining = False
        self.learned_from: Callable[[ServedPolicy], object] = lambda serving: None
        """Called when enough decisions are finished for an update."""
        self.bootstraps: dict[str, float] = {}
        """Value of a truncated decision's successor, if the caller knows it; otherwise the critic estimates it."""
        self._forgot = False
        """True once some decisions are on disk only."""
        self._rng = np.random.default_rng(seed)
        self._turns = DecisionBatcher(self, self._rng)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Load policies and recent decisions from the store."""
        self.store.start(asyncio.get_running_loop())
        for entry in self.store.reader.scan("policy"):
            config = msgspec.convert(entry.body, schema.NewPolicy)
            self.policies[config.name] = await self._open(config)
        self._recall()

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
        # In a thread: it waits up to 5 s for the child, and other responses are sent meanwhile.
        await asyncio.get_running_loop().run_in_executor(None, self.apprentice.close)
        self.store.close()
        # Last: the next process must not open the store before it is closed here.
        self._lock.__exit__(None, None, None)

    async def create(self, new: schema.NewPolicy) -> schema.PolicyResponse:
        """Create a policy; its first version is untrained."""
        low, high = new.reward_range
        if not low < high or not low <= new.default_reward <= high:
            raise Refused(
                "invalid", "reward_range is [low, high] and default_reward lies in it", pointer="/reward_range"
            )
        if new.choose == "actions" and len(new.actions) < 2:
            raise Refused("invalid", 'name two actions at least, or let it choose "candidates"', pointer="/actions")
        if new.choose == "candidates" and new.actions:
            raise Refused("invalid", "decisions bring the candidates: name no actions", pointer="/actions")
        if len(set(new.actions)) != len(new.actions):
            raise Refused("invalid", "two actions have the same name", pointer="/actions")
        if new.encoder != "none" and new.embedding_size < 8:
            raise Refused("invalid", "an encoder makes at least 8 numbers", pointer="/embedding_size")
        known = self.policies.get(new.name)
        if known is not None:
            if msgspec.json.encode(known.config) == msgspec.json.encode(new):
                return self.describe(known)
            raise Refused("conflict", f"there is a policy {new.name!r} of another kind already")
        # Before it is stored: settings that the learner refuses would make every later start fail.
        serving = await self._open(new)
        await self.store.write(Entry(kind="policy", id=new.name, body=msgspec.to_builtins(new)))
        self.policies[new.name] = serving
        return self.describe(serving)

    def policy(self, name: str) -> ServedPolicy:
        """Return the policy with this name."""
        if name not in self.policies:
            raise Refused("unknown", f"there is no policy {name!r}; there are {', '.join(self.policies) or 'none yet'}")
        return self.policies[name]

    def describe(self, serving: ServedPolicy) -> schema.PolicyResponse:
        """Return a policy's settings and statistics."""
        numbers = serving.versions.numbers
        return schema.PolicyResponse(
            **{f: getattr(serving.config, f) for f in serving.config.__struct_fields__},
            version=serving.version,
            newest=numbers[-1] if numbers else 0,
            canary=None if serving.canary is None else serving.canary[:2],
            decisions=serving.decision_count,
            rewards=serving.rewarded,
            mean_reward=float(np.mean(serving.recent)) if serving.recent else None,
        )

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
        asked = [
            ask(new, serving.config, serving.encoder, f"/decisions/{place}" if many else "")
            for place, new in enumerate(wanted)
        ]
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
                known = TrackedDecision(policy=serving.config.name, asked=a.manner, raw=a.raw, waiters=[])
                fresh[a.id] = a
            elif known.policy != serving.config.name or known.asked != a.manner or self._raw(a.id, known) != a.raw:
                raise Refused("conflict", f"decision {a.id!r} exists with another body")
            waiting[a.id] = known
        # Only after all were checked: a batch is accepted as a whole or refused as a whole.
        for id in fresh:
            self.decisions[id] = waiting[id]
        return waiting, list(fresh.values())

    def _raw(self, id: str, known: TrackedDecision) -> bytes:
        """Return the observation of a known decision."""
        if known.raw:
            return known.raw
        entry = self.store.journal.get("decision", id)
        return b"" if entry is None else entry.raw or b""

    def count_in(self, serving: ServedPolicy, waiting: TrackedDecision) -> None:
        """Count a decision that is on disk."""
        serving.decision_count += 1
        if not waiting.deferred:
            self._open_for_reward(serving, waiting)
        while len(self.decisions) > IN_MEMORY:
            oldest = next(iter(self.decisions))
            # It still waits for its reward, which needs the decision in memory.
            if self.decisions[oldest].final is None:
                break
            del self.decisions[oldest]
            self._forgot = True

    def _open_for_reward(self, serving: ServedPolicy, waiting: TrackedDecision) -> None:
        assert waiting.decision is not None
        serving.due.append((waiting.answered.expires_at, waiting.answered.decision_id))
        if waiting.learns:
            serving.ledger.open(waiting.decision)

    def find(self, id: str) -> TrackedDecision | None:
        """Return the decision with this id, from memory or disk; None if it is unknown."""
        known = self.decisions.get(id)
        if known is not None or not self._forgot:
            return known
        entry = self.store.journal.get("decision", id)
        if entry is None:
            return None
        answer = msgspec.convert(entry.body["answer"], schema.DecisionResponse)
        # Only closed decisions are dropped from memory. `final` marks it as closed; the rewards are in the store.
        return TrackedDecision(
            policy=answer.policy, asked=entry.body["asked"], raw=entry.raw or b"", answer=answer, final=0.0
        )

    def decision(self, id: str) -> tuple[ServedPolicy, TrackedDecision]:
        """Return the decision with this id and its policy."""
        waiting = self.find(id)
        if waiting is None or waiting.answer is None or waiting.policy not in self.policies:
            raise Refused("unknown", f"there is no decision {id!r}")
        return self.policies[waiting.policy], waiting

    async def activate(self, id: str) -> schema.DecisionResponse:
        """Activate a deferred decision: its waiting time starts and it will be learned from."""
        serving, waiting = self.decision(id)
        if waiting.deferred:
            expires = self.clock() + serving.config.wait_seconds
            await self.store.write(Entry(kind="activated", id=id, tag=serving.config.name, body=expires))
            if waiting.deferred:  # no concurrent request was faster
                waiting.deferred, waiting.answered.expires_at = False, expires
                self._open_for_reward(serving, waiting)
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
        if waiting.deferred:
            raise Refused("conflict", f"decision {id!r} was not activated yet")
        if self._is_repeat(waiting, new, adds=how == "sum"):
            if waiting.telling is not None:
                # Shielded: a client that disconnects must not cancel the future that others wait for.
                await asyncio.shield(waiting.telling)
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

    async def _store_reward(
        self, serving: ServedPolicy, waiting: TrackedDecision, new: RewardRecord, number: int
    ) -> None:
        id = waiting.answered.decision_id
        # Before the write: a retry that arrives meanwhile is then a repetition and waits for the same commit.
        waiting.rewards.append(new)
        waiting.telling = telling = asyncio.get_running_loop().create_future()
        try:
            await self.store.write(
                Entry(kind="reward", id=f"{id}#{number}", tag=serving.config.name, number=new.value, body=new._asdict())
            )
        except BaseException as why:
            # A cancelled request too: its reward was not acknowledged, so a retry must be able to store it.
            waiting.rewards.remove(new)
            settle(telling, why if isinstance(why, Exception) else Refused("unavailable", "it was given up"))
            telling.exception()  # retrieved: asyncio must not warn if no retry waits for it
            waiting.telling = None
            raise
        telling.set_result(None)
        if serving.config.aggregation == "first" and waiting.final is None:
            self.finish(serving, waiting)

    def finish(self, serving: ServedPolicy, waiting: TrackedDecision) -> None:
        """Close a decision with its rewards, or with the default reward."""
        config, rewards = serving.config, waiting.rewards
        terminated, truncated = (rewards[-1].terminated, rewards[-1].truncated) if rewards else (True, False)
        waiting.final, waiting.decision = final_reward(rewards, config), None
        serving.recent.append(waiting.final)
        serving.rewarded += bool(rewards)
        if not waiting.learns:
            return
        id = waiting.answered.decision_id
        outcome = Outcome(
            decision=id,
            reward=waiting.final,
            terminated=terminated,
            truncated=truncated,
            bootstrap=self.bootstraps.pop(id, np.nan),
        )
        try:
            serving.ledger.close(outcome)
        except DecisionError:  # dropped by the ledger because too many were open
            return
        serving.unlearned.append(id)
        if rewards:
            serving.reward_clients[id] = rewards[-1].client
        training = config.training
        if (
            training.automatic
            and serving.learning is None
            and len(serving.ledger) >= max(training.every, training.least)
        ):
            self.learned_from(serving)

    def expire(self) -> int:
        """Close decisions whose waiting time is over; return how many."""
        now, count = self.clock(), 0
        for serving in self.policies.values():
            # Decisions of a policy wait equally long, so the first one that is not due ends the loop.
            while serving.due and serving.due[0][0] < now:
                _, id = serving.due.popleft()
                waiting = self.decisions.get(id)
                if waiting is not None and waiting.final is None:
                    self.finish(serving, waiting)
                    count += 1
        return count

    async def _open(self, config: schema.NewPolicy) -> ServedPolicy:
        versions = Versions(self.directory / "policies" / config.name)
        if not versions.numbers:
            result = await asyncio.get_running_loop().run_in_executor(None, self.apprentice.ask, config, None)
            if result.error:
                raise Refused("invalid", result.error, pointer="/training/settings")
        return ServedPolicy.load(config, versions)

    def _recall(self) -> None:
        """Load acknowledged decisions and rewards from disk."""
        # A version's entry lists the decisions it has learned from: nothing is learned from twice after a restart.
        learned = {id for e in self.store.reader.scan("version") for id in e.body["decisions"]}
        activated = {e.id: float(e.body) for e in self.store.reader.scan("activated")}
        rewards: dict[str, list[RewardRecord]] = {}
        for entry in self.store.reader.latest("reward", 2 * IN_MEMORY):
            rewards.setdefault(entry.id.rpartition("#")[0], []).append(RewardRecord(**entry.body))
        counts = self.store.reader.tallies("decision")
        for name, serving in self.policies.items():
            serving.decision_count = counts.get(name, (0, 0.0, 0))[0]
        self._forgot = sum(count for count, _, _ in counts.values()) > IN_MEMORY
        for entry in self.store.reader.latest("decision", IN_MEMORY):
            if (serving := self.policies.get(entry.tag)) is None:
                continue
            decision, answer = read_decision(entry, serving.config)
            waiting = TrackedDecision(
                policy=entry.tag,
                asked=entry.body["asked"],
                raw=b"",
                answer=answer,
                decision=decision,
                deferred=entry.body["deferred"],
                learns=entry.body["learns"] and entry.id not in learned,
                rewards=rewards.get(entry.id, []),
            )
            if entry.id in activated:
                waiting.deferred, answer.expires_at = False, activated[entry.id]
            self.decisions[entry.id] = waiting
            if waiting.deferred:
                continue
            self._open_for_reward(serving, waiting)
            if entry.id in learned or (waiting.rewards and serving.config.aggregation == "first"):
                self.finish(serving, waiting)

    def spawn(self, work: Any) -> None:
        """Run a coroutine in the background until it is done or the service closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
