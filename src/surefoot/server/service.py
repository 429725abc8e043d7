"""The verbs of the service, without a word of HTTP: decide, reward, learn, promote. One event loop owns all of it."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from surefoot.data.experience import Decision as Made
from surefoot.data.experience import Outcome
from surefoot.data.journal import Entry
from surefoot.data.ledger import Ledger
from surefoot.decide import offpolicy
from surefoot.decide.promotion import Versions
from surefoot.errors import CheckpointError, DecisionError
from surefoot.server import schema
from surefoot.server.learning import Apprentice, Learned, Pupil, Recipe
from surefoot.server.network import Network, choose, log, probabilities
from surefoot.server.problems import Refused
from surefoot.server.store import Store

RECENT = 1000
"""Rewards that a mean is told of."""
KEPT = 100_000
"""Decisions of a policy that are kept in memory for retries, rewards and evaluations."""


@dataclass(slots=True, kw_only=True)
class Waiting:
    """A decision and what has come of it so far."""

    made: Made
    answer: schema.Decision
    chances: np.ndarray
    asked: str
    """A hash of what was asked, so that another question under the same id is told from a retry."""
    deferred: bool = False
    rewards: list[tuple[float, dict[str, float], bool, bool]] = field(default_factory=list[Any])
    final: float | None = None
    """The reward it was closed with."""


@dataclass(slots=True, kw_only=True)
class Serving:
    """One policy in memory."""

    config: schema.NewPolicy
    versions: Versions
    network: Network
    version: int
    canary: tuple[int, float, Network] | None = None
    ledger: Ledger = field(default_factory=Ledger)
    decisions: dict[str, Waiting] = field(default_factory=dict[str, Waiting])
    recent: deque[float] = field(default_factory=lambda: deque[float](maxlen=RECENT))
    made: int = 0
    rewarded: int = 0
    learning: str | None = None
    """The job that runs."""
    unlearned: list[str] = field(default_factory=list[str])

    @property
    def recipe(self) -> Recipe:
        """For the learning process."""
        c = self.config
        return Recipe(
            name=c.name, actions=len(c.actions), size=c.embedding_size, seed=c.seed, settings=dict(c.training.settings)
        )


class Service:
    """Policies, their decisions and their rewards. Call `start` in a running loop, `close` at the end."""

    def __init__(
        self,
        directory: Path,
        *,
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
        pupil: Pupil | None = None,
    ) -> None:
        self.directory, self.clock = directory, clock
        directory.mkdir(parents=True, exist_ok=True)
        self.store = Store(directory / "decisions.sqlite")
        self.apprentice = pupil or Apprentice(directory / "policies")
        self.policies: dict[str, Serving] = {}
        self.jobs: dict[str, schema.Job] = {}
        self.draining = False
        self._rng = np.random.default_rng(seed)
        self._learn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Take up what the store knows."""
        self.store.start(asyncio.get_running_loop())
        for entry in self.store.all("policy"):
            config = msgspec.convert(entry.body, schema.NewPolicy)
            self.policies[config.name] = await self._open(config)
        self._recall()
        self._spawn(self._expire_for_ever())

    async def close(self) -> None:
        """Stop learning, write what waits."""
        self.draining = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self.apprentice.close)
        self.store.close()

    async def create(self, new: schema.NewPolicy) -> schema.Policy:
        """A new policy, its first version untrained."""
        low, high = new.reward_range
        if not low < high or not low <= new.default_reward <= high:
            raise Refused(
                "invalid", "reward_range is [low, high] and default_reward lies in it", pointer="/reward_range"
            )
        if len(set(new.actions)) != len(new.actions):
            raise Refused("invalid", "two actions have the same name", pointer="/actions")
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

    async def decide(self, name: str, asked: Sequence[schema.NewDecision]) -> list[schema.Decision]:
        """Choose for each; the same id gives the same answer, and is sampled once."""
        serving = self.policy(name)
        entries: list[Entry] = []
        answers: list[schema.Decision] = []
        fresh: list[Waiting] = []
        for place, new in enumerate(asked):
            waiting, is_new = self._decide(serving, new, f"/decisions/{place}" if len(asked) > 1 else "")
            answers.append(waiting.answer)
            if is_new:
                fresh.append(waiting)
                entries.append(Entry(kind="decision", id=waiting.made.id, tag=name, body=_body(waiting, new)))
        if entries:
            try:
                await self.store.write(*entries)
            except BaseException:
                for waiting in fresh:  # nothing was acknowledged: a retry decides anew
                    serving.decisions.pop(waiting.made.id, None)
                raise
            for waiting in fresh:
                self._count_in(serving, waiting)
        return answers

    def _decide(self, serving: Serving, new: schema.NewDecision, pointer: str) -> tuple[Waiting, bool]:
        asked = hashlib.sha256(msgspec.json.encode(new)).hexdigest()
        id = str(uuid.uuid4()) if new.decision_id is UNSET else new.decision_id
        if (known := self._find(serving, id)) is not None:
            if known.asked != asked:
                raise Refused("conflict", f"decision {id!r} was asked for with another body", pointer=pointer)
            return known, False
        row = embedding_of(new, serving.config.embedding_size, pointer)
        mask = mask_of(new, len(serving.config.actions), pointer)
        version, network = serving.version, serving.network
        if serving.canary is not None and self._rng.random() < serving.canary[1]:
            version, _, network = serving.canary
        logits, values = network.forward(row[None])
        chances = probabilities(logits[0], mask)
        action = int(chances.argmax()) if new.deterministic else choose(chances, float(self._rng.random()))
        if new.mode == "apprentice":
            action = _taken(new, mask, len(serving.config.actions), pointer)
        made = Made(
            id=id,
            episode=id if new.episode is UNSET else new.episode,
            obs={"obs": row},
            action=action,
            log_prob=log(float(chances[action])),
            value=float(values[0]),
            policy_version=version,
            action_mask=np.ones(len(serving.config.actions), bool) if mask is None else mask,
        )
        answer = schema.Decision(
            decision_id=id,
            policy=serving.config.name,
            action=action,
            name=serving.config.actions[action],
            probability=float(chances[action]),
            policy_version=version,
            expires_at=self.clock() + serving.config.wait_seconds,
            mode=new.mode,
            distribution=chances.tolist() if new.distribution else UNSET,
        )
        waiting = Waiting(made=made, answer=answer, chances=chances, asked=asked, deferred=new.defer)
        serving.decisions[id] = waiting
        return waiting, True

    def _count_in(self, serving: Serving, waiting: Waiting) -> None:
        serving.made += 1
        if waiting.answer.mode != "shadow" and not waiting.deferred:
            serving.ledger.open(waiting.made)
        while len(serving.decisions) > KEPT:
            serving.decisions.pop(next(iter(serving.decisions)))

    def _find(self, serving: Serving, id: str) -> Waiting | None:
        return serving.decisions.get(id)

    def decision(self, id: str) -> tuple[Serving, Waiting]:
        """The decision of that id, whichever policy made it."""
        for serving in self.policies.values():
            if (waiting := serving.decisions.get(id)) is not None:
                return serving, waiting
        raise Refused("unknown", f"there is no decision {id!r}: it was never made here, or it is long over")

    async def activate(self, id: str) -> schema.Decision:
        """A deferred decision was carried out: from now on its time runs and it counts."""
        serving, waiting = self.decision(id)
        if waiting.deferred:
            waiting.deferred = False
            waiting.answer.expires_at = self.clock() + serving.config.wait_seconds
            await self.store.write(
                Entry(kind="activated", id=id, tag=serving.config.name, body=waiting.answer.expires_at)
            )
            serving.ledger.open(waiting.made)
        return waiting.answer

    async def reward(self, id: str, told: schema.NewReward) -> schema.Reward:
        """What came of a decision. Telling the same again changes nothing; telling otherwise is refused, or added."""
        serving, waiting = self.decision(id)
        value = value_of(told, serving.config.reward_range)
        parts = {} if told.parts is UNSET else dict(told.parts)
        new = (value, parts, told.terminated and not told.truncated, told.truncated)
        how = serving.config.aggregation
        if waiting.deferred:
            raise Refused("conflict", f"decision {id!r} was not activated yet")
        if waiting.rewards and waiting.rewards[-1] == new and (how != "sum" or waiting.final is not None):
            return schema.Reward(decision_id=id, value=waiting.rewards[-1][0], status="replayed")
        if waiting.final is not None and how == "first":
            raise Refused("conflict", f"decision {id!r} has its reward {waiting.final:g} already; the first one counts")
        if waiting.final is not None or self.clock() > waiting.answer.expires_at:
            raise Refused(
                "expired", f"decision {id!r} was closed; rewards count within {serving.config.wait_seconds:g} s"
            )
        number = len(waiting.rewards)
        body = {"value": value, "parts": parts, "terminated": new[2], "truncated": new[3]}
        waiting.rewards.append(new)
        try:
            await self.store.write(
                Entry(kind="reward", id=f"{id}#{number}", tag=serving.config.name, number=value, body=body)
            )
        except BaseException:
            waiting.rewards.remove(new)
            raise
        if how == "first":
            self._finish(serving, waiting)
        counted = sum(r[0] for r in waiting.rewards) if how == "sum" else value
        return schema.Reward(decision_id=id, value=counted, status="added" if number else "stored")

    def _finish(self, serving: Serving, waiting: Waiting) -> None:
        """Close a decision with what it has, or with the default reward."""
        config, told = serving.config, waiting.rewards
        terminated, truncated = (told[-1][2], told[-1][3]) if told else (True, False)
        value = config.default_reward
        if told:
            value = sum(r[0] for r in told) if config.aggregation == "sum" else told[-1][0]
        waiting.final = float(np.clip(value, *config.reward_range))
        serving.recent.append(waiting.final)
        serving.rewarded += bool(told)
        if waiting.answer.mode == "shadow":
            return
        outcome = Outcome(
            decision=waiting.made.id,
            reward=waiting.final,
            terminated=terminated,
            truncated=truncated,
            bootstrap=waiting.made.value,
        )
        try:
            serving.ledger.close(outcome)
        except DecisionError:  # dropped by the ledger because too many were open
            return
        serving.unlearned.append(waiting.made.id)
        training = config.training
        if (
            training.automatic
            and serving.learning is None
            and len(serving.ledger) >= max(training.every, training.least)
        ):
            self._begin_update(serving)

    def expire(self) -> int:
        """Close what waited too long; how many there were."""
        now, count = self.clock(), 0
        for serving in self.policies.values():
            for waiting in list(serving.decisions.values()):
                if waiting.final is None and not waiting.deferred and waiting.answer.expires_at < now:
                    self._finish(serving, waiting)
                    count += 1
        return count

    async def update(self, name: str, least: int | None = None) -> schema.Job:
        """Learn from what is finished, as a job."""
        serving = self.policy(name)
        if serving.learning is not None:
            raise Refused("conflict", f"an update of {name!r} runs already: job {serving.learning}")
        wanted = serving.config.training.least if least is None else least
        if len(serving.ledger) < wanted:
            raise Refused("conflict", f"{len(serving.ledger)} finished decisions; an update takes at least {wanted}")
        return self._begin_update(serving)

    def _begin_update(self, serving: Serving) -> schema.Job:
        job = schema.Job(
            job_id=f"job-{uuid.uuid4().hex[:12]}", policy=serving.config.name, kind="update", state="waiting"
        )
        self.jobs[job.job_id] = job
        serving.learning = job.job_id
        self._spawn(self._update(serving, job))
        return job

    async def _update(self, serving: Serving, job: schema.Job) -> None:
        async with self._learn:
            job.state = "running"
            rollout, learned_from = serving.ledger.drain(), serving.unlearned
            serving.unlearned = []
            loop = asyncio.get_running_loop()
            told: Learned = await loop.run_in_executor(None, self.apprentice.ask, serving.recipe, rollout)
            if told.error:
                job.state, job.message = "failed", told.error
            else:
                body = {"version": told.version, "metrics": told.metrics, "decisions": learned_from}
                entry = Entry(
                    kind="version", id=f"{serving.config.name}/{told.version}", tag=serving.config.name, body=body
                )
                await self.store.write(entry)
                job.result = {"version": told.version, "samples": len(learned_from), **told.metrics}
                self._go_live(serving, told.version, "learned")
                job.state = "done"
        serving.learning = None

    def job(self, id: str) -> schema.Job:
        """The job of that id."""
        if id not in self.jobs:
            raise Refused("unknown", f"there is no job {id!r}")
        return self.jobs[id]

    def version_list(self, name: str) -> schema.VersionList:
        """All versions, newest first."""
        serving = self.policy(name)
        known = {e.body["version"]: e for e in self.store.all("version") if e.tag == name}
        found = [
            schema.Version(
                version=number,
                created_at=known[number].t if number in known else 0.0,
                samples=len(known[number].body["decisions"]) if number in known else 0,
                live=number == serving.version,
                metrics=known[number].body["metrics"] if number in known else {},
            )
            for number in reversed(serving.versions.numbers)
        ]
        return schema.VersionList(versions=found)

    async def promote(self, name: str, wish: schema.Promotion) -> schema.Policy:
        """Let a version answer, all decisions or a share of them."""
        serving = self.policy(name)
        network = self._network(serving, wish.version)
        if wish.gate:
            found = self.evaluate(name, schema.NewEvaluation(version=wish.version))
            if not found.enough or found.dr.low < found.logged.value - 0.01 * np.ptp(serving.config.reward_range):
                why = "too little was logged" if not found.enough else "it may be worse"
                raise Refused(
                    "conflict", f"version {wish.version} was not promoted: {why}; dr {found.dr.low:.4f} at least"
                )
        if wish.share < 1.0:
            serving.canary = (wish.version, wish.share, network)
        else:
            self._go_live(serving, wish.version, "promoted")
        return self.describe(serving)

    async def rollback(self, name: str) -> schema.Policy:
        """Back to the version that answered before."""
        serving = self.policy(name)
        try:
            number = serving.versions.rollback()
        except DecisionError as why:
            raise Refused("conflict", str(why)) from why
        serving.network, serving.version, serving.canary = self._network(serving, number), number, None
        return self.describe(serving)

    def evaluate(self, name: str, wish: schema.NewEvaluation) -> schema.OffPolicy:
        """What another version would have earned on the logged decisions."""
        serving = self.policy(name)
        network = self._network(serving, wish.version)
        log_of = [w for w in serving.decisions.values() if w.final is not None and w.answer.mode == "live"][
            -wish.last :
        ]
        if len(log_of) < 10:
            raise Refused("conflict", f"{len(log_of)} finished decisions are logged; an evaluation takes at least 10")
        rows = np.stack([w.made.obs["obs"] for w in log_of])
        logits, _ = network.forward(rows)
        masks = [w.made.action_mask for w in log_of]
        target = np.stack([probabilities(x, mask) for x, mask in zip(logits, masks, strict=True)])
        taken = np.array([w.made.action for w in log_of])
        reward = np.array([w.final for w in log_of], np.float64)
        predicted, expected = _direct(rows, taken, reward, target)
        logged = np.exp([w.made.log_prob for w in log_of])
        found = offpolicy.evaluate(reward, logged, target[np.arange(len(taken)), taken], predicted, expected)

        def plain(e: offpolicy.Estimate) -> schema.Estimate:
            return schema.Estimate(value=e.value, low=e.low, high=e.high)

        return schema.OffPolicy(
            version=wish.version,
            logged=plain(found.logged),
            ips=plain(found.ips),
            snips=plain(found.snips),
            dr=plain(found.dr),
            effective_sample_size=found.effective_sample_size,
            decisions=found.decisions,
            enough=found.enough,
        )

    def _go_live(self, serving: Serving, number: int, why: str) -> None:
        network = self._network(serving, number)
        if serving.versions.live != number:
            serving.versions.promote(number, why)
        serving.network, serving.version, serving.canary = network, number, None

    def _network(self, serving: Serving, number: int) -> Network:
        try:
            parts: dict[str, Any] = serving.versions.load(number).parts
        except CheckpointError as why:
            kind = "unknown" if number not in serving.versions.numbers else "conflict"
            raise Refused(kind, f"version {number} of {serving.config.name!r}: {why}") from why
        return Network({name: np.asarray(x) for name, x in parts["weights"].items()}, len(serving.config.actions))

    async def _open(self, config: schema.NewPolicy) -> Serving:
        root = self.directory / "policies" / config.name
        versions = Versions(root)
        recipe = Recipe(
            name=config.name,
            actions=len(config.actions),
            size=config.embedding_size,
            seed=config.seed,
            settings=dict(config.training.settings),
        )
        if not versions.numbers:
            loop = asyncio.get_running_loop()
            told: Learned = await loop.run_in_executor(None, self.apprentice.ask, recipe, None)
            if told.error:
                raise Refused("invalid", told.error, pointer="/training/settings")
        parts: dict[str, Any] = versions.load().parts
        network = Network({name: np.asarray(x) for name, x in parts["weights"].items()}, len(config.actions))
        return Serving(config=config, versions=versions, network=network, version=versions.live or 0)

    def _recall(self) -> None:
        """Decisions and rewards of before, as they were acknowledged."""
        learned = {id for e in self.store.all("version") for id in e.body["decisions"]}
        activated = {e.id: float(e.body) for e in self.store.all("activated")}
        rewards: dict[str, list[Any]] = {}
        for entry in self.store.all("reward"):
            b = entry.body
            told = (b["value"], b["parts"], b["terminated"], b["truncated"])
            rewards.setdefault(entry.id.rpartition("#")[0], []).append(told)
        for entry in self.store.all("decision"):
            serving = self.policies.get(entry.tag)
            if serving is None:
                continue
            waiting = _from_body(entry.body, serving.config)
            if entry.id in activated:
                waiting.deferred, waiting.answer.expires_at = False, activated[entry.id]
            serving.decisions[entry.id] = waiting
            waiting.rewards = rewards.get(entry.id, [])
            done = entry.id in learned
            serving.made += 1
            if not done and waiting.answer.mode != "shadow" and not waiting.deferred:
                serving.ledger.open(waiting.made)
            if done or (waiting.rewards and serving.config.aggregation == "first"):
                if done:
                    value = waiting.rewards[-1][0] if waiting.rewards else serving.config.default_reward
                    waiting.final = value
                    serving.recent.append(value)
                    serving.rewarded += bool(waiting.rewards)
                else:
                    self._finish(serving, waiting)

    async def _expire_for_ever(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self.expire()

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def embedding_of(new: schema.NewDecision, size: int, pointer: str) -> np.ndarray:
    """[size] float32, however it was sent."""
    if (new.embedding is UNSET) == (new.embedding_b64 is UNSET):
        raise Refused("invalid", "give embedding or embedding_b64, one of them", pointer=pointer or "/")
    if new.embedding is not UNSET:
        row, where = np.array(new.embedding, np.float32), f"{pointer}/embedding"
    else:
        where = f"{pointer}/embedding_b64"
        try:
            raw = base64.b64decode(new.embedding_b64, validate=True)  # pyright: ignore[reportArgumentType]
            row = np.frombuffer(raw, "<f4").astype(np.float32)
        except (binascii.Error, ValueError) as why:
            raise Refused("invalid", f"it is not base64 of float32: {why}", pointer=where) from why
    if row.shape != (size,):
        raise Refused("invalid", f"{len(row)} numbers; this policy sees {size}", pointer=where)
    if not np.isfinite(row).all():
        raise Refused("invalid", "NaN or infinity", pointer=f"{where}/{int(np.flatnonzero(~np.isfinite(row))[0])}")
    return row


def mask_of(new: schema.NewDecision, actions: int, pointer: str) -> np.ndarray | None:
    """[actions] bool, or None where everything is allowed."""
    if new.mask is UNSET:
        return None
    if len(new.mask) != actions or not any(new.mask):
        raise Refused(
            "invalid", f"the mask has {actions} entries, at least one of them true", pointer=f"{pointer}/mask"
        )
    return np.array(new.mask, bool)


def _taken(new: schema.NewDecision, mask: np.ndarray | None, actions: int, pointer: str) -> int:
    if new.action is UNSET or new.action >= actions or (mask is not None and not mask[new.action]):
        raise Refused("invalid", "an apprentice is told an action that is allowed", pointer=f"{pointer}/action")
    return int(new.action)


def value_of(told: schema.NewReward, bounds: tuple[float, float]) -> float:
    """One number, within what the policy declared."""
    if told.value is UNSET and told.parts is UNSET:
        raise Refused("invalid", "give value, or parts", pointer="/value")
    value = sum(told.parts.values()) if told.value is UNSET and told.parts is not UNSET else told.value
    number = float(value)  # pyright: ignore[reportArgumentType]
    if not bounds[0] <= number <= bounds[1]:
        raise Refused("invalid", f"{number:g} lies outside of {bounds[0]:g} … {bounds[1]:g}", pointer="/value")
    return number


def _direct(
    rows: np.ndarray, taken: np.ndarray, reward: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A ridge of rewards on embeddings by action, each half fitted on the other: (of the action taken, of the policy)."""
    predicted, expected = np.zeros(len(taken)), np.zeros(len(taken))
    fold = np.arange(len(taken)) % 2
    for half in (0, 1):
        fit, use = fold != half, fold == half
        worth = np.full((int(use.sum()), target.shape[1]), float(reward[fit].mean()))
        for action in range(target.shape[1]):
            own = fit & (taken == action)
            if own.sum() >= 5:
                x = rows[own] - rows[own].mean(0)
                gram = x @ x.T + 1.0 * np.eye(len(x))
                dual = np.linalg.solve(gram, reward[own] - reward[own].mean())
                worth[:, action] = reward[own].mean() + (rows[use] - rows[own].mean(0)) @ (x.T @ dual)
        predicted[use] = worth[np.arange(len(worth)), taken[use]]
        expected[use] = (target[use] * worth).sum(axis=1)
    return predicted, expected


def _body(waiting: Waiting, new: schema.NewDecision) -> dict[str, Any]:
    made = waiting.made
    return {
        "obs": base64.b64encode(made.obs["obs"].tobytes()).decode(),
        "mask": None if made.action_mask is None else made.action_mask.tolist(),
        "action": made.action,
        "log_prob": made.log_prob,
        "value": made.value,
        "episode": made.episode,
        "chances": [round(float(x), 9) for x in waiting.chances],
        "answer": msgspec.to_builtins(waiting.answer),
        "asked": waiting.asked,
        "deferred": waiting.deferred,
        "subject": "" if new.subject is UNSET else new.subject,
    }


def _from_body(body: dict[str, Any], config: schema.NewPolicy) -> Waiting:
    row = np.frombuffer(base64.b64decode(body["obs"]), np.float32)
    answer = msgspec.convert(body["answer"], schema.Decision)
    made = Made(
        id=answer.decision_id,
        episode=body["episode"],
        obs={"obs": row},
        action=int(body["action"]),
        log_prob=float(body["log_prob"]),
        value=float(body["value"]),
        policy_version=answer.policy_version,
        action_mask=None if body["mask"] is None else np.array(body["mask"], bool),
    )
    chances = np.array(body["chances"])
    return Waiting(made=made, answer=answer, chances=chances, asked=body["asked"], deferred=body["deferred"])
