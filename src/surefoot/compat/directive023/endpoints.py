"""The eight endpoints of Directive-023's server, with its bodies and status codes, over the decision service.

Its clients run unchanged, with one difference: a reward must belong to a decision of this service.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from surefoot.decide.prompts.mutations import WIRE_MUTATIONS
from surefoot.server import schema
from surefoot.server.decisions.policy_lifecycle import PolicyLifecycle
from surefoot.server.decisions.served_policy import RewardRecord, chances_of, read_decision
from surefoot.server.decisions.service import Service
from surefoot.server.http.messages import problem
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import Route, route, routes_of

POLICY = "prompts"
# Allowed difference between the log-probability of a request and of the response: clients print and parse it.
TOLERANCE = 1e-5
# Rewards and updates that /stats averages over, as in Directive-023.
LAST_REWARDS, LAST_UPDATES = 100, 10
# Seconds that a decision waits for its reward: the maximum of a policy. Directive-023 has no limit.
WEEK = 604_800.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class SelectBody(msgspec.Struct, kw_only=True):
    """Request of /select_action and /get_distribution."""

    embedding: list[schema.Finite]
    deterministic: bool = False


class SelectedResponse(msgspec.Struct, kw_only=True):
    """Response of /select_action."""

    action: int
    mutation_type: str
    log_prob: float
    value: float
    decision_id: str


class ExperienceBody(msgspec.Struct, kw_only=True):
    """Request of /store_experience."""

    state: list[schema.Finite]
    action: schema.Count
    reward: schema.Finite
    next_state: list[schema.Finite]
    done: bool
    log_prob: schema.Finite
    value: schema.Finite
    decision_id: schema.Id | UnsetType = UNSET


class StoredResponse(msgspec.Struct, kw_only=True):
    """Response of /store_experience."""

    stored: bool
    buffer_size: int


class DistributionResponse(msgspec.Struct, kw_only=True):
    """Response of /get_distribution."""

    probabilities: list[float]
    mutation_types: list[str]


class NothingBody(msgspec.Struct, kw_only=True):
    """Request of /update."""


class WhereBody(msgspec.Struct, kw_only=True):
    """Request of /save and /load."""

    path: str | UnsetType = UNSET


class Directive023:
    """The eight endpoints. They share one policy, which learns only on /update."""

    def __init__(
        self, service: Service, lifecycle: PolicyLifecycle, *, input_dim: int = 1536, least: int = 128
    ) -> None:
        self.service, self.lifecycle = service, lifecycle
        self.config = schema.NewPolicy(
            name=POLICY,
            actions=list(WIRE_MUTATIONS),
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
        """Create the policy, or restore it with the decisions that wait for their reward."""
        if POLICY not in self.service.policies:
            await self.service.create(self.config)
        elif self.service.policy(POLICY).config.embedding_size != self.config.embedding_size:
            known = self.service.policy(POLICY).config.embedding_size
            raise Refused("conflict", f"the stored policy takes {known} numbers; start with --input-dim {known}")
        for entry in self.service.store.reader.latest("decision", 100_000, tag=POLICY):
            waiting = self.service.decisions.get(entry.id)
            if waiting is not None and waiting.final is None:
                decision, _ = read_decision(entry, self.config)
                self._wait_for(entry.id, decision.obs["obs"], decision.action, decision.log_prob)
        for entry in self.service.store.reader.latest("reward", 100_000, tag=POLICY):
            self._count(RewardRecord(**entry.body))

    def routes(self) -> list[Route]:
        """Return the routes in the order of Directive-023's documentation, under its names."""
        return [replace(r, answer=dict[str, Any], name=r.path[1:], about="") for r in routes_of(self)]

    @route("GET", "/health")
    async def health(self) -> dict[str, str]:
        """Report that the server is alive."""
        return {"status": "ok"}

    @route("GET", "/stats")
    async def stats(self) -> dict[str, Any]:
        """Return statistics of the last rewards and updates."""
        versions = self.lifecycle.version_list(POLICY).versions
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

    @route("POST", "/select_action")
    async def select(self, body: SelectBody) -> SelectedResponse:
        """Choose an action for a state."""
        new = schema.NewDecision(embedding=body.embedding, deterministic=body.deterministic)
        (decision,) = await self.service.decide(POLICY, [new])
        row = np.array(body.embedding, np.float32)
        log_prob = float(np.log(decision.probability))
        self._wait_for(decision.decision_id, row, decision.action, log_prob)
        return SelectedResponse(
            action=decision.action,
            mutation_type=decision.name,
            log_prob=log_prob,
            value=float(self.service.policy(POLICY).network.values(row[None])[0]),
            decision_id=decision.decision_id,
        )

    @route("POST", "/store_experience")
    async def store(self, body: ExperienceBody) -> StoredResponse:
        """Store the reward of an action that was selected here."""
        size = self.config.embedding_size
        for name, row in (("state", body.state), ("next_state", body.next_state)):
            if len(row) != size:
                raise Refused("invalid", f"{name} has {len(row)} numbers; this policy takes {size}", pointer=f"/{name}")
        id = self._match(body)
        reward = schema.NewReward(value=body.reward, terminated=body.done, truncated=not body.done)
        serving, waiting = self.service.decision(id)
        if not body.done:  # the service would ask the critic about a next decision, which this API does not have
            next_state = np.array(body.next_state, np.float32)[None]
            self.service.bootstraps[id] = float(serving.network.values(next_state)[0])
        await self.service.reward(id, reward)
        self._count(waiting.rewards[-1])
        return StoredResponse(stored=True, buffer_size=len(serving.ledger))

    @route("POST", "/update")
    async def update(self, _: NothingBody) -> dict[str, Any]:
        """Learn from the stored experiences, and wait for the result."""
        serving = self.service.policy(POLICY)
        if len(serving.ledger) < serving.config.training.least:
            return {"message": "Not enough experiences"}
        job = await self.lifecycle.finished(await self.lifecycle.update(POLICY))
        if job.state != "done":
            raise Refused("failed", job.message)
        names = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")
        return {
            **{name: job.result[name] for name in names},
            "learning_rate": job.result["lr"],
            "buffer_size": int(job.result["samples"]),
            "update_count": int(job.result["version"]),
        }

    @route("POST", "/get_distribution", scope="distribution")
    async def distribution(self, body: SelectBody) -> DistributionResponse:
        """Return the probability of every action; nothing is decided or stored."""
        chances = chances_of(self.service.policy(POLICY), schema.NewDecision(embedding=body.embedding))
        return DistributionResponse(probabilities=chances.distribution, mutation_types=list(WIRE_MUTATIONS))

    @route("POST", "/save")
    async def save(self, body: WhereBody) -> dict[str, Any]:
        """Save the policy under a name; by default one with its version."""
        name = f"ppo_checkpoint_{self.service.policy(POLICY).version}" if body.path is UNSET else _plain(body.path)
        await self.lifecycle.checkpoint(POLICY, schema.NewCheckpoint(), name=name)
        return {"saved": True, "path": name}

    @route("POST", "/load")
    async def load(self, body: WhereBody) -> dict[str, Any]:
        """Return to the policy that was saved under a name."""
        if body.path is UNSET:
            raise Refused("invalid", "path is missing; pass the name that /save returned", pointer="/path")
        try:
            await self.lifecycle.activate_checkpoint(_plain(body.path))
        except Refused as why:
            if why.kind == "unknown":
                raise Refused("unknown", "File not found") from why
            raise
        return {"loaded": True}

    def _wait_for(self, id: str, row: np.ndarray, action: int, log_prob: float) -> None:
        self._open.setdefault((_hash(row), action), deque()).append((id, log_prob))

    def _match(self, body: ExperienceBody) -> str:
        """Return the oldest open decision that an experience can belong to."""
        key = (_hash(np.array(body.state, np.float32)), body.action)
        waiting = self._open.get(key, deque())
        for id, log_prob in waiting:
            named = body.decision_id is UNSET or body.decision_id == id
            if named and abs(log_prob - body.log_prob) <= TOLERANCE:
                waiting.remove((id, log_prob))
                if not waiting:
                    del self._open[key]
                return id
        raise Refused("conflict", "no open decision has this state, action and log_prob; call /select_action first")

    def _count(self, reward: RewardRecord) -> None:
        self._rewards.append(reward.value)
        self._largest = max(self._largest, reward.value)
        self._episodes += reward.terminated

    def error_body(self, why: Refused, request: str) -> tuple[bytes, str]:
        """Return a problem with the field `error`, which Directive-023's clients read."""
        detail = {"malformed": "Invalid JSON"}.get(why.kind, why.detail)
        if why.kind == "unknown" and why.detail.startswith("nothing is served at"):
            detail = "Not found"
        body = msgspec.to_builtins(problem(why, request)) | {"error": detail}
        return msgspec.json.encode(body), "application/problem+json"


def _hash(row: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(row, np.float32).tobytes()).hexdigest()


def _plain(path: str) -> str:
    if _NAME.fullmatch(path) is None:
        raise Refused(
            "invalid", f"{path[:80]!r} is not a plain name: letters, digits, dots, - and _, no folders", pointer="/path"
        )
    return path
