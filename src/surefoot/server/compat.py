"""The eight endpoints of an earlier prompt-mutation server, with its bodies and status codes, over the same service.

Its clients run unchanged. What is different is a reward's way in: it must belong to a decision that was made here.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from surefoot.decide.prompts.mutations import MUTATIONS
from surefoot.server import schema
from surefoot.server.decisions.policy_lifecycle import Steward
from surefoot.server.decisions.served_policy import Told, made_of
from surefoot.server.decisions.service import Service
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import Route

POLICY = "prompts"
TOLERANCE = 1e-5
"""How far a log-probability may be from the one that was answered: clients print and parse it."""
LAST_REWARDS, LAST_UPDATES = 100, 10
WEEK = 604_800.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Select(msgspec.Struct, kw_only=True):
    """The body of /select_action and /get_distribution."""

    embedding: list[schema.Finite]
    deterministic: bool = False


class Selected(msgspec.Struct, kw_only=True):
    """Its answer."""

    action: int
    mutation_type: str
    log_prob: float
    value: float
    decision_id: str


class Experience(msgspec.Struct, kw_only=True):
    """The body of /store_experience."""

    state: list[schema.Finite]
    action: schema.Count
    reward: schema.Finite
    next_state: list[schema.Finite]
    done: bool
    log_prob: schema.Finite
    value: schema.Finite
    decision_id: schema.Id | UnsetType = UNSET


class Stored(msgspec.Struct, kw_only=True):
    """Its answer."""

    stored: bool
    buffer_size: int


class Distribution(msgspec.Struct, kw_only=True):
    """The answer of /get_distribution."""

    probabilities: list[float]
    mutation_types: list[str]


class Nothing(msgspec.Struct, kw_only=True):
    """The body of /update."""


class Where(msgspec.Struct, kw_only=True):
    """The body of /save and /load."""

    path: str | UnsetType = UNSET


class Directive023:
    """The eight verbs. One policy, whose updates are asked for."""

    def __init__(self, service: Service, steward: Steward, *, input_dim: int = 1536, least: int = 128) -> None:
        self.service, self.steward = service, steward
        self.config = schema.NewPolicy(
            name=POLICY,
            actions=list(MUTATIONS),
            embedding_size=input_dim,
            reward_range=(-1e6, 1e6),
            wait_seconds=WEEK,
            training=schema.TrainingBody(automatic=False, least=least),
        )
        self._open: dict[tuple[str, int], deque[tuple[str, float]]] = {}
        """{(hash of the state, action): [(decision, log-probability)]}, oldest first."""
        self._episodes = 0
        self._rewards: deque[float] = deque(maxlen=LAST_REWARDS)
        self._largest = -np.inf

    async def prepare(self) -> None:
        """Make the policy, or take up where an earlier process left it."""
        if POLICY not in self.service.policies:
            await self.service.create(self.config)
        elif self.service.policy(POLICY).config.embedding_size != self.config.embedding_size:
            known = self.service.policy(POLICY).config.embedding_size
            raise Refused("conflict", f"the policy here sees {known} numbers; start with --input-dim {known}")
        for entry in self.service.store.latest("decision", 100_000, tag=POLICY):
            waiting = self.service.decisions.get(entry.id)
            if waiting is not None and waiting.final is None:
                made, _ = made_of(entry, self.config)
                self._wait_for(entry.id, made.obs["obs"], made.action, made.log_prob)
        for entry in self.service.store.latest("reward", 100_000, tag=POLICY):
            self._count(Told(**entry.body))

    def routes(self) -> list[Route]:
        """In the order of its document."""
        table: list[tuple[str, str, Any, type[Any] | None]] = [
            ("GET", "/health", self.health, None),
            ("GET", "/stats", self.stats, None),
            ("POST", "/select_action", self.select, Select),
            ("POST", "/store_experience", self.store, Experience),
            ("POST", "/update", self.update, Nothing),
            ("POST", "/get_distribution", self.distribution, Select),
            ("POST", "/save", self.save, Where),
            ("POST", "/load", self.load, Where),
        ]
        return [
            Route(
                method=method,
                path=path,
                handle=handle,
                body=body,
                answer=dict[str, Any],
                name=path[1:],
                scope="distribution" if handle == self.distribution else "decide",
            )
            for method, path, handle, body in table
        ]

    async def health(self) -> dict[str, str]:
        """It lives."""
        return {"status": "ok"}

    async def select(self, asked: Select) -> Selected:
        """An action for a state."""
        wish = schema.NewDecision(embedding=asked.embedding, deterministic=asked.deterministic)
        (made,) = await self.service.decide(POLICY, [wish])
        row = np.array(asked.embedding, np.float32)
        log_prob = float(np.log(made.probability))
        self._wait_for(made.decision_id, row, made.action, log_prob)
        value = float(self.service.policy(POLICY).network.values(row[None])[0])
        return Selected(
            action=made.action, mutation_type=made.name, log_prob=log_prob, value=value, decision_id=made.decision_id
        )

    async def store(self, told: Experience) -> Stored:
        """What came of an action that was selected here."""
        size = self.config.embedding_size
        for name, row in (("state", told.state), ("next_state", told.next_state)):
            if len(row) != size:
                raise Refused("invalid", f"{name} has {len(row)} numbers; this policy sees {size}", pointer=f"/{name}")
        id = self._match(told)
        reward = schema.NewReward(value=told.reward, terminated=told.done, truncated=not told.done)
        serving, waiting = self.service.decision(id)
        if not told.done:  # what lies ahead is worth what the critic says of the next state
            ahead = np.array(told.next_state, np.float32)[None]
            self.service.bootstraps[id] = float(serving.network.values(ahead)[0])
        await self.service.reward(id, reward)
        self._count(waiting.rewards[-1])
        return Stored(stored=True, buffer_size=len(serving.ledger))

    async def update(self, _: Nothing) -> dict[str, Any]:
        """Learn from what is stored, and wait for it."""
        serving = self.service.policy(POLICY)
        if len(serving.ledger) < serving.config.training.least:
            return {"message": "Not enough experiences"}
        job = await self.steward.finished(await self.steward.update(POLICY))
        if job.state != "done":
            raise Refused("failed", job.message)
        told = job.result
        names = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")
        return {
            **{name: told[name] for name in names},
            "learning_rate": told["lr"],
            "buffer_size": int(told["samples"]),
            "update_count": int(told["version"]),
        }

    async def distribution(self, asked: Select) -> Distribution:
        """What every action's probability is; nothing is decided or kept."""
        chances = self.service.chances(POLICY, schema.NewDecision(embedding=asked.embedding))
        return Distribution(probabilities=chances, mutation_types=list(MUTATIONS))

    async def stats(self) -> dict[str, Any]:
        """How learning went so far."""
        versions = self.steward.version_list(POLICY).versions
        learned = [v.metrics for v in versions if v.metrics][:LAST_UPDATES]
        if not learned and not self._rewards:
            return {"message": "No training data yet"}

        def mean(name: str) -> float:
            values = [x for m in learned if (x := m.get(name)) is not None]
            return float(np.mean(values)) if values else 0.0

        return {
            "total_updates": sum(bool(v.metrics) for v in versions),
            "total_episodes": self._episodes,
            "avg_reward": float(np.mean(self._rewards)) if self._rewards else 0.0,
            "max_reward": float(self._largest) if self._rewards else 0.0,
            "avg_policy_loss": mean("policy_loss"),
            "avg_value_loss": mean("value_loss"),
            "avg_entropy": mean("entropy"),
            "avg_kl": mean("approx_kl"),
        }

    async def save(self, where: Where) -> dict[str, Any]:
        """Keep the policy under a name; one is made where none is given."""
        name = f"ppo_checkpoint_{self.service.policy(POLICY).version}" if where.path is UNSET else _plain(where.path)
        await self.steward.checkpoint(POLICY, schema.NewCheckpoint(), name=name)
        return {"saved": True, "path": name}

    async def load(self, where: Where) -> dict[str, Any]:
        """Back to what was saved under a name."""
        if where.path is UNSET:
            raise Refused("invalid", "path is missing: the name that /save answered", pointer="/path")
        try:
            await self.steward.activate_checkpoint(_plain(where.path))
        except Refused as why:
            if why.kind == "unknown":
                raise Refused("unknown", "File not found") from why
            raise
        return {"loaded": True}

    def _wait_for(self, id: str, row: np.ndarray, action: int, log_prob: float) -> None:
        self._open.setdefault((_hash(row), action), deque()).append((id, log_prob))

    def _match(self, told: Experience) -> str:
        """The oldest open decision that this may belong to."""
        key = (_hash(np.array(told.state, np.float32)), told.action)
        waiting = self._open.get(key, deque())
        for id, log_prob in waiting:
            named = told.decision_id is UNSET or told.decision_id == id
            if named and abs(log_prob - told.log_prob) <= TOLERANCE:
                waiting.remove((id, log_prob))
                if not waiting:
                    del self._open[key]
                return id
        raise Refused("conflict", "no open decision has this state, action and log_prob; /select_action makes one")

    def _count(self, told: Told) -> None:
        self._rewards.append(told.value)
        self._largest = max(self._largest, told.value)
        self._episodes += told.terminated


def error_body(why: Refused, request: str) -> tuple[bytes, str]:
    """Errors as its clients read them."""
    detail = {"malformed": "Invalid JSON"}.get(why.kind, why.detail)
    if why.kind == "unknown" and why.detail.startswith("there is nothing at"):
        detail = "Not found"
    return msgspec.json.encode({"error": detail, "request_id": request}), "application/json"


def _hash(row: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(row, np.float32).tobytes()).hexdigest()


def _plain(path: str) -> str:
    if _NAME.fullmatch(path) is None:
        raise Refused(
            "invalid", f"{path[:80]!r} is not a plain name: letters, digits, dots, - and _, no folders", pointer="/path"
        )
    return path
