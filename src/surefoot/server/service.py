"""The verbs of the service, without a word of HTTP: decide, activate, reward. One event loop owns all of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from surefoot.data.experience import Decision as Made
from surefoot.data.experience import Outcome
from surefoot.data.journal import Entry
from surefoot.decide.promotion import Versions
from surefoot.errors import ConfigError, DecisionError
from surefoot.learn.files import RunLock
from surefoot.server import schema
from surefoot.server.learning import Apprentice, Learned, Pupil, Recipe
from surefoot.server.network import Network, draw, log, probabilities
from surefoot.server.problems import Refused
from surefoot.server.serving import (
    Asked,
    Drawn,
    Serving,
    Told,
    Waiting,
    ask,
    body_of,
    encoder_of,
    made_of,
    taken_of,
    value_of,
)
from surefoot.server.store import Durability, Store

KEPT = 20_000
"""Closed decisions that are kept in memory, for retries and rewards; older ones are looked up on the disk."""


class Service:
    """Policies, their decisions and their rewards. Call `start` in a running loop, `close` at the end."""

    def __init__(
        self,
        directory: Path,
        *,
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
        pupil: Pupil | None = None,
        durability: Durability = "disk",
    ) -> None:
        self.directory, self.clock = directory, clock
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as why:
            raise ConfigError(
                f"{directory} cannot be a folder of decisions: {why.strerror}; give another --dir"
            ) from why
        self._lock = RunLock(directory).__enter__()
        self.store = Store(directory / "decisions.sqlite", durability=durability)
        self.apprentice = pupil or Apprentice(directory / "policies")
        self.policies: dict[str, Serving] = {}
        self.decisions: dict[str, Waiting] = {}
        self.draining = False
        self.learned_from: Callable[[Serving], None] = lambda serving: None
        """Called when enough is finished for an update; the steward begins one."""
        self.bootstraps: dict[str, float] = {}
        """What a truncated decision's successor is worth, where the caller knows; else the critic is asked."""
        self._forgot = False
        """True once there are decisions that only the disk knows."""
        self._rng = np.random.default_rng(seed)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Take up what the store knows."""
        self.store.start(asyncio.get_running_loop())
        for entry in self.store.all("policy"):
            config = msgspec.convert(entry.body, schema.NewPolicy)
            self.policies[config.name] = await self._open(config)
        self._recall()
        self.spawn(self._expire_for_ever())

    async def close(self) -> None:
        """Stop learning, write what waits."""
        self.draining = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self.apprentice.close)
        self.store.close()
        self._lock.__exit__(None, None, None)

    async def create(self, new: schema.NewPolicy) -> schema.Policy:
        """A new policy, its first version untrained."""
        low, high = new.reward_range
        if not low < high or not low <= new.default_reward <= high:
            raise Refused(
                "invalid", "reward_range is [low, high] and default_reward lies in it", pointer="/reward_range"
            )
        if len(set(new.actions)) != len(new.actions):
            raise Refused("invalid", "two actions have the same name", pointer="/actions")
        if new.encoder != "none" and new.embedding_size < 8:
            raise Refused("invalid", "an encoder makes at least 8 numbers", pointer="/embedding_size")
        known = self.policies.get(new.name)
        if known is not None:
            if msgspec.json.encode(known.config) == msgspec.json.encode(new):
                return self.describe(known)
            raise Refused("conflict", f"there is a policy {new.name!r} of another kind already")
        serving = await self._open(new)
        await self.store.write(Entry(kind="policy", id=new.name, body=msgspec.to_builtins(new)))
        self.policies[new.name] = serving
        return self.describe(serving)

    def policy(self, name: str) -> Serving:
        """The policy of that name."""
        if name not in self.policies:
            raise Refused("unknown", f"there is no policy {name!r}; there are {', '.join(self.policies) or 'none yet'}")
        return self.policies[name]

    def describe(self, serving: Serving) -> schema.Policy:
        """How a policy is doing."""
        numbers = serving.versions.numbers
        return schema.Policy(
            **{f: getattr(serving.config, f) for f in serving.config.__struct_fields__},
            version=serving.version,
            newest=numbers[-1] if numbers else 0,
            canary=None if serving.canary is None else serving.canary[:2],
            decisions=serving.made,
            rewards=serving.rewarded,
            mean_reward=float(np.mean(serving.recent)) if serving.recent else None,
        )

    async def decide(self, name: str, wanted: Sequence[schema.NewDecision]) -> list[schema.Decision]:
        """Choose for each; the same id gives the same answer, and is sampled once."""
        serving = self.policy(name)
        many = len(wanted) > 1
        asked = [
            ask(new, serving.config, serving.encoder, f"/decisions/{place}" if many else "")
            for place, new in enumerate(wanted)
        ]
        waiting, fresh = self._admit(serving, asked)
        if fresh:
            try:
                await self._make(serving, [(a, waiting[a.id]) for a in fresh])
            except BaseException as why:
                for a in fresh:  # nothing was acknowledged: a retry decides anew
                    self.decisions.pop(a.id, None)
                    _fail(waiting[a.id].stored, why)
                raise
        answers: list[schema.Decision] = []
        for a in asked:
            if not (stored := waiting[a.id].stored).done():
                await asyncio.shield(stored)
            found = waiting[a.id].answer
            assert found is not None
            answers.append(found)
        return answers

    def _admit(self, serving: Serving, asked: Sequence[Asked]) -> tuple[dict[str, Waiting], list[Asked]]:
        """Each question's place, and those that are new. Refused where an id was used for another question."""
        waiting: dict[str, Waiting] = {}
        fresh: dict[str, Asked] = {}
        for a in asked:
            known = waiting.get(a.id) or self.find(a.id)
            if known is not None and (known.asked != a.hash or known.policy != serving.config.name):
                raise Refused("conflict", f"decision {a.id!r} was asked for with another body")
            if known is None:
                known = Waiting(
                    policy=serving.config.name, asked=a.hash, stored=asyncio.get_running_loop().create_future()
                )
                fresh[a.id] = a
            waiting[a.id] = known
        for id in fresh:
            self.decisions[id] = waiting[id]
        return waiting, list(fresh.values())

    async def _make(self, serving: Serving, slots: Sequence[tuple[Asked, Waiting]]) -> None:
        """Choose, write it down, and count it in."""
        whose = [self._whose(serving) for _ in slots]
        drawn = await self._drawn(serving, [(a, network) for (a, _), (_, network) in zip(slots, whose, strict=True)])
        entries: list[Entry] = []
        answers: list[tuple[schema.Decision, Made]] = []
        for (asked, waiting), found, (version, _) in zip(slots, drawn, whose, strict=True):
            answer, made = self._answer(serving, asked, found, version)
            waiting.deferred = asked.new.defer
            waiting.learns = asked.new.mode != "shadow" and not asked.new.deterministic
            answers.append((answer, made))
            body = body_of(asked, made, answer, learns=waiting.learns)
            entries.append(
                Entry(kind="decision", id=asked.id, tag=serving.config.name, body=body, raw=asked.row.tobytes())
            )
        await self.store.write(*entries)
        for (_, waiting), (answer, made) in zip(slots, answers, strict=True):
            waiting.answer, waiting.made = answer, made
            waiting.stored.set_result(None)
            self._count_in(serving, waiting)

    def _whose(self, serving: Serving) -> tuple[int, Network]:
        """Which version answers a decision."""
        if serving.canary is not None and self._rng.random() < serving.canary[1]:
            return serving.canary[0], serving.canary[2]
        return serving.version, serving.network

    async def _drawn(self, serving: Serving, asked: Sequence[tuple[Asked, Network]]) -> list[Drawn]:
        """Questions that are ready together go through a network together: weights are read once."""
        loop = asyncio.get_running_loop()
        if not serving.queue:
            loop.call_soon(_forward, serving, self._rng)
        done: list[asyncio.Future[Drawn]] = [loop.create_future() for _ in asked]
        serving.queue += [(a, network, d) for (a, network), d in zip(asked, done, strict=True)]
        return [await each for each in done]

    def _answer(self, serving: Serving, asked: Asked, found: Drawn, version: int) -> tuple[schema.Decision, Made]:
        config, new, chances, action = serving.config, asked.new, found.chances, found.action
        if new.mode == "apprentice":
            action = taken_of(new, asked.mask, len(config.actions), "")
        elif new.deterministic:
            action = int(chances.argmax())
        answer = schema.Decision(
            decision_id=asked.id,
            policy=config.name,
            action=action,
            name=config.actions[action],
            probability=float(chances[action]),
            policy_version=version,
            expires_at=self.clock() + config.wait_seconds,
            mode=new.mode,
            distribution=chances.tolist() if new.distribution else UNSET,
        )
        made = Made(
            id=asked.id,
            episode=asked.id if new.episode is UNSET else new.episode,
            obs={"obs": asked.row},
            action=action,
            log_prob=log(float(chances[action])),
            value=0.0,
            policy_version=version,
            action_mask=np.ones(len(config.actions), bool) if asked.mask is None else asked.mask,
        )
        return answer, made

    def chances(self, name: str, new: schema.NewDecision) -> list[float]:
        """Every action's probability, now; nothing is decided or kept."""
        serving = self.policy(name)
        asked = ask(new, serving.config, serving.encoder, "")
        return probabilities(serving.network.logits(asked.row[None])[0], asked.mask).tolist()

    def _count_in(self, serving: Serving, waiting: Waiting) -> None:
        serving.made += 1
        if not waiting.deferred:
            self._open_for_reward(serving, waiting)
        while len(self.decisions) > KEPT:
            oldest = next(iter(self.decisions))
            if self.decisions[oldest].final is None:
                break
            del self.decisions[oldest]
            self._forgot = True

    def _open_for_reward(self, serving: Serving, waiting: Waiting) -> None:
        assert waiting.answer is not None
        assert waiting.made is not None
        serving.due.append((waiting.answer.expires_at, waiting.answer.decision_id))
        if waiting.learns:
            serving.ledger.open(waiting.made)

    def find(self, id: str) -> Waiting | None:
        """The decision of that id, from the disk if memory has let go of it; None if it was never made."""
        known = self.decisions.get(id)
        if known is not None or not self._forgot:
            return known
        entry = self.store.entry("decision", id)
        if entry is None:
            return None
        _, answer = made_of(entry, 1)
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stored.set_result(None)
        return Waiting(policy=answer.policy, asked=entry.body["asked"], stored=stored, answer=answer, final=0.0)

    def decision(self, id: str) -> tuple[Serving, Waiting]:
        """The decision of that id, whichever policy made it."""
        waiting = self.find(id)
        if waiting is None or waiting.answer is None or waiting.policy not in self.policies:
            raise Refused("unknown", f"there is no decision {id!r}")
        return self.policies[waiting.policy], waiting

    async def activate(self, id: str) -> schema.Decision:
        """A deferred decision was carried out: from now on its time runs and it counts."""
        serving, waiting = self.decision(id)
        assert waiting.answer is not None
        if waiting.deferred:
            expires = self.clock() + serving.config.wait_seconds
            await self.store.write(Entry(kind="activated", id=id, tag=serving.config.name, body=expires))
            if waiting.deferred:  # nobody else was faster
                waiting.deferred, waiting.answer.expires_at = False, expires
                self._open_for_reward(serving, waiting)
        return waiting.answer

    async def reward(self, id: str, told: schema.NewReward) -> schema.Reward:
        """What came of a decision. Telling the same again changes nothing; telling otherwise is refused, or added."""
        serving, waiting = self.decision(id)
        assert waiting.answer is not None
        value = value_of(told, serving.config.reward_range)
        parts = {} if told.parts is UNSET else dict(told.parts)
        named = "" if told.reward_id is UNSET else told.reward_id
        new = Told(value, parts, told.terminated and not told.truncated, told.truncated, named)
        how = serving.config.aggregation
        if waiting.deferred:
            raise Refused("conflict", f"decision {id!r} was not activated yet")
        if self._was_told(waiting, new, adds=how == "sum"):
            await asyncio.shield(waiting.stored)
            return schema.Reward(decision_id=id, value=value, status="replayed")
        if how == "first" and waiting.rewards:
            raise Refused(
                "conflict", f"decision {id!r} has its reward {waiting.rewards[0].value:g}; the first one counts"
            )
        if waiting.final is not None or self.clock() > waiting.answer.expires_at:
            raise Refused(
                "expired", f"decision {id!r} was closed; rewards count within {serving.config.wait_seconds:g} s"
            )
        number = len(waiting.rewards)
        await self._store_reward(serving, waiting, new, number)
        counted = sum(r.value for r in waiting.rewards) if how == "sum" else value
        return schema.Reward(decision_id=id, value=counted, status="added" if number else "stored")

    def _was_told(self, waiting: Waiting, new: Told, *, adds: bool) -> bool:
        """Whether it is the same reward once more; where rewards add up, only an id can tell."""
        if new.id and (known := next((r for r in waiting.rewards if r.id == new.id), None)) is not None:
            if known != new:
                raise Refused("conflict", f"reward {new.id!r} was told before, and was another")
            return True
        return bool(waiting.rewards) and waiting.rewards[-1] == new and (not adds or waiting.final is not None)

    async def _store_reward(self, serving: Serving, waiting: Waiting, new: Told, number: int) -> None:
        assert waiting.answer is not None
        id = waiting.answer.decision_id
        waiting.rewards.append(new)
        before, waiting.stored = waiting.stored, asyncio.get_running_loop().create_future()
        try:
            await self.store.write(
                Entry(kind="reward", id=f"{id}#{number}", tag=serving.config.name, number=new.value, body=new._asdict())
            )
        except BaseException as why:
            waiting.rewards.remove(new)
            _fail(waiting.stored, why)
            waiting.stored = before
            raise
        waiting.stored.set_result(None)
        if serving.config.aggregation == "first" and waiting.final is None:
            self.finish(serving, waiting)

    def finish(self, serving: Serving, waiting: Waiting) -> None:
        """Close a decision with what it has, or with the default reward."""
        config, told = serving.config, waiting.rewards
        assert waiting.answer is not None
        terminated, truncated = (told[-1].terminated, told[-1].truncated) if told else (True, False)
        value = config.default_reward
        if told:
            value = sum(r.value for r in told) if config.aggregation == "sum" else told[-1].value
        waiting.final, waiting.made = float(np.clip(value, *config.reward_range)), None
        serving.recent.append(waiting.final)
        serving.rewarded += bool(told)
        if not waiting.learns:
            return
        id = waiting.answer.decision_id
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
        training = config.training
        if (
            training.automatic
            and serving.learning is None
            and len(serving.ledger) >= max(training.every, training.least)
        ):
            self.learned_from(serving)

    def expire(self) -> int:
        """Close what waited too long; how many there were."""
        now, count = self.clock(), 0
        for serving in self.policies.values():
            while serving.due and serving.due[0][0] < now:
                _, id = serving.due.popleft()
                waiting = self.decisions.get(id)
                if waiting is not None and waiting.final is None:
                    self.finish(serving, waiting)
                    count += 1
        return count

    async def _open(self, config: schema.NewPolicy) -> Serving:
        root = self.directory / "policies" / config.name
        versions = Versions(root)
        recipe = Recipe.of(config)
        if not versions.numbers:
            loop = asyncio.get_running_loop()
            told: Learned = await loop.run_in_executor(None, self.apprentice.ask, recipe, None)
            if told.error:
                raise Refused("invalid", told.error, pointer="/training/settings")
        parts: dict[str, Any] = versions.load().parts
        network = Network({name: np.asarray(x) for name, x in parts["weights"].items()}, len(config.actions))
        return Serving(
            config=config, versions=versions, network=network, version=versions.live or 0, encoder=encoder_of(config)
        )

    def _recall(self) -> None:
        """Decisions and rewards of before, as they were acknowledged."""
        learned = {id for e in self.store.all("version") for id in e.body["decisions"]}
        activated = {e.id: float(e.body) for e in self.store.all("activated")}
        rewards: dict[str, list[Told]] = {}
        for entry in self.store.latest("reward", 2 * KEPT):
            rewards.setdefault(entry.id.rpartition("#")[0], []).append(Told(**entry.body))
        counts = self.store.journal.tallies("decision")
        for name, serving in self.policies.items():
            serving.made = counts.get(name, (0, 0.0, 0))[0]
        self._forgot = sum(count for count, _, _ in counts.values()) > KEPT
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stored.set_result(None)
        for entry in self.store.latest("decision", KEPT):
            if (serving := self.policies.get(entry.tag)) is None:
                continue
            made, answer = made_of(entry, len(serving.config.actions))
            waiting = Waiting(
                policy=entry.tag,
                asked=entry.body["asked"],
                stored=stored,
                answer=answer,
                made=made,
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

    async def _expire_for_ever(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self.expire()

    def spawn(self, work: Any) -> None:
        """Run something beside the requests, until it is done or the service closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _forward(serving: Serving, rng: np.random.Generator) -> None:
    """Everything that waits goes through the network and is drawn; a canary's questions through its own."""
    queue, serving.queue = serving.queue, []
    for network in {id(network): network for _, network, _ in queue}.values():
        mine = [(asked, done) for asked, whose, done in queue if whose is network]
        logits = network.logits(np.stack([asked.row for asked, _ in mine]))
        chances, actions = draw(logits, [asked.mask for asked, _ in mine], rng.random(len(mine)))
        for row, action, (_, done) in zip(chances, actions, mine, strict=True):
            if not done.cancelled():
                done.set_result(Drawn(row, action))


def _fail(stored: asyncio.Future[None], why: BaseException) -> None:
    if not stored.done():
        stored.set_exception(why if isinstance(why, Exception) else Refused("unavailable", "it was given up"))
        stored.exception()  # it is no news if nobody else waits for it
