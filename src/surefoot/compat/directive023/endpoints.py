"""The eight endpoints of Directive-023's server, with its bodies and status codes, over its trainer.

Its clients run unchanged, with one difference: a reward must belong to a decision of this service.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import deque
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from surefoot.compat.directive023.trainer import Experience, PPOConfig, PPOTrainer, fingerprint, update_stats
from surefoot.data.journal import Entry
from surefoot.errors import SurefootError
from surefoot.server import schema
from surefoot.server.decisions.requests import ordered_id
from surefoot.server.decisions.service import Service
from surefoot.server.http.messages import problem
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import Route, route, routes_of

FOLDER = "directive023"
"""Folder of the policy, below the service's data directory."""
DECISION, EXPERIENCE = "directive023-decision", "directive023-experience"
"""Kinds of entries in the service's store."""
# Allowed difference between the log-probability of a request and of the response: clients print and parse it.
TOLERANCE = 1e-5
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
    """The eight endpoints over Directive-023's trainer, which learns only on /update. What is acknowledged is on disk."""

    def __init__(self, service: Service, *, input_dim: int = 1536, least: int = 128) -> None:
        self.service = service
        self.config = PPOConfig(input_dim=input_dim, min_buffer_size=least)
        self.directory = service.directory / FOLDER
        self._trainer: PPOTrainer | None = None
        self._turn = asyncio.Lock()
        """An update changes the weights in place: nothing is chosen meanwhile."""
        self._open: dict[tuple[bytes, int], deque[tuple[str, float]]] = {}
        """{(hash of the state, action): [(decision, log-probability)]}, oldest first."""

    @property
    def trainer(self) -> PPOTrainer:
        """The policy; `prepare` creates it."""
        assert self._trainer is not None
        return self._trainer

    async def prepare(self) -> None:
        """Create the policy, or restore it with the experiences and decisions that it has not learned from."""
        trainer = self._trainer = PPOTrainer(self.config)
        if (self.directory / "latest").exists():
            try:
                trainer.load(self.directory)
            except SurefootError as why:
                raise Refused("conflict", f"{self.directory} holds a policy of other sizes: {why}") from why
        journal = self.service.store.reader
        stored = {e.id: e for e in journal.scan(EXPERIENCE)}
        for entry in journal.scan(DECISION):
            state = np.frombuffer(entry.raw or b"", np.float32).copy()
            if len(state) != self.config.input_dim:
                detail = f"the stored policy takes {len(state)} numbers; start with --input-dim {len(state)}"
                raise Refused("conflict", detail)
            body, outcome = entry.body, stored.get(entry.id)
            if outcome is None:
                self._wait_for(entry.id, state, body["action"], body["log_prob"])
            elif outcome.body["update"] == trainer.learner.updates:
                trainer.store_experience(_experience(body, outcome.body, state, outcome.raw or b""))

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
        return self.trainer.get_stats()

    @route("POST", "/select_action")
    async def select(self, body: SelectBody) -> SelectedResponse:
        """Choose an action for a state."""
        row, id = self._checked("embedding", body.embedding), ordered_id()
        async with self._turn:
            chosen = self.trainer.select_action(row, body.deterministic)
            # In float64, so that it is the logarithm of what /get_distribution returns.
            chances = self.trainer.get_distribution(row)["probabilities"]
            chosen["log_prob"] = math.log(max(chances[chosen["action"]], 1e-300))
        numbers = {"action": chosen["action"], "log_prob": chosen["log_prob"], "value": chosen["value"]}
        await self.service.store.write(Entry(kind=DECISION, id=id, body=numbers, raw=row.tobytes()))
        self._wait_for(id, row, chosen["action"], chosen["log_prob"])
        return SelectedResponse(**chosen, decision_id=id)

    @route("POST", "/store_experience")
    async def store(self, body: ExperienceBody) -> StoredResponse:
        """Store the reward of an action that was selected here."""
        state, after = self._checked("state", body.state), self._checked("next_state", body.next_state)
        id, log_prob = self._match(body)
        entry = self.service.store.journal.get(DECISION, id)
        assert entry is not None
        update = self.trainer.learner.updates
        outcome = {"reward": body.reward, "done": body.done, "update": update}
        try:
            await self.service.store.write(Entry(kind=EXPERIENCE, id=id, body=outcome, raw=after.tobytes()))
        except Refused:
            self._wait_for(id, state, body.action, log_prob)
            raise
        experience = _experience(entry.body, outcome, state, after.tobytes())
        return StoredResponse(stored=True, buffer_size=self.trainer.store_experience(experience))

    @route("POST", "/update")
    async def update(self, _: NothingBody) -> dict[str, Any]:
        """Learn from the stored experiences, and wait for the result."""
        loop, trainer = asyncio.get_running_loop(), self.trainer
        if len(trainer.buffer) < self.config.min_buffer_size:
            return {"message": "Not enough experiences"}
        async with self._turn:
            # In a thread: other endpoints answer meanwhile.
            report = await loop.run_in_executor(self.service.workers, trainer.update)
            if report is None:  # another request was faster
                return {"message": "Not enough experiences"}
            if report.skipped_reason or report.rolled_back:
                raise Refused("failed", report.skipped_reason or "the update was not finite and was rolled back")
            await loop.run_in_executor(self.service.workers, trainer.save, self.directory)
        # Learned from: experiences of an earlier update are not loaded again, whether or not they are still there.
        for kind in (EXPERIENCE, DECISION):
            journal = self.service.store.journal
            learned = [e.seq for e in journal.scan(kind) if kind == EXPERIENCE or not self._is_open(e)]
            journal.delete(kind, learned)
        return update_stats(report)

    @route("POST", "/get_distribution", scope="distribution")
    async def distribution(self, body: SelectBody) -> DistributionResponse:
        """Return the probability of every action; nothing is decided or stored."""
        row = self._checked("embedding", body.embedding)
        async with self._turn:
            return DistributionResponse(**self.trainer.get_distribution(row))

    @route("POST", "/save")
    async def save(self, body: WhereBody) -> dict[str, Any]:
        """Save the policy under a name; by default one with its version."""
        name = f"ppo_checkpoint_{self.trainer.learner.updates}" if body.path is UNSET else _plain(body.path)
        await asyncio.get_running_loop().run_in_executor(
            self.service.workers, self.trainer.save, self.directory / "saved" / name
        )
        return {"saved": True, "path": name}

    @route("POST", "/load")
    async def load(self, body: WhereBody) -> dict[str, Any]:
        """Return to the policy that was saved under a name."""
        if body.path is UNSET:
            raise Refused("invalid", "path is missing; pass the name that /save returned", pointer="/path")
        folder = self.directory / "saved" / _plain(body.path)
        if not folder.is_dir():
            raise Refused("unknown", "File not found")
        async with self._turn:
            self.trainer.load(folder)
            # So that a restart continues with it.
            await asyncio.get_running_loop().run_in_executor(self.service.workers, self.trainer.save, self.directory)
        return {"loaded": True}

    def _checked(self, name: str, numbers: list[float]) -> np.ndarray:
        size = self.config.input_dim
        if len(numbers) != size:
            detail = f"{name} has {len(numbers)} numbers; this policy takes {size}"
            raise Refused("invalid", detail, pointer=f"/{name}")
        return np.array(numbers, np.float32)

    def _is_open(self, entry: Entry) -> bool:
        key = (fingerprint(np.frombuffer(entry.raw or b"", np.float32)), entry.body["action"])
        return any(id == entry.id for id, _ in self._open.get(key, ()))

    def _wait_for(self, id: str, row: np.ndarray, action: int, log_prob: float) -> None:
        self._open.setdefault((fingerprint(row), action), deque()).append((id, log_prob))

    def _match(self, body: ExperienceBody) -> tuple[str, float]:
        """Return the oldest open decision that an experience can belong to, and its log-probability."""
        key = (fingerprint(body.state), body.action)
        waiting = self._open.get(key, deque())
        for id, log_prob in waiting:
            named = body.decision_id is UNSET or body.decision_id == id
            if named and abs(log_prob - body.log_prob) <= TOLERANCE:
                waiting.remove((id, log_prob))
                if not waiting:
                    del self._open[key]
                return id, log_prob
        raise Refused("conflict", "no open decision has this state, action and log_prob; call /select_action first")

    def error_body(self, why: Refused, request: str) -> tuple[bytes, str]:
        """Return a problem with the field `error`, which Directive-023's clients read."""
        detail = {"malformed": "Invalid JSON"}.get(why.kind, why.detail)
        if why.kind == "unknown" and why.detail.startswith("nothing is served at"):
            detail = "Not found"
        body = msgspec.to_builtins(problem(why, request)) | {"error": detail}
        return msgspec.json.encode(body), "application/problem+json"


def _experience(chosen: dict[str, Any], outcome: dict[str, Any], state: np.ndarray, after: bytes) -> Experience:
    return Experience(
        state=state,
        # A copy: torch warns of arrays that cannot be written.
        next_state=np.frombuffer(after, np.float32).copy(),
        action=chosen["action"],
        log_prob=chosen["log_prob"],
        value=chosen["value"],
        reward=outcome["reward"],
        done=outcome["done"],
        policy_version=outcome["update"],
    )


def _plain(path: str) -> str:
    if _NAME.fullmatch(path) is None:
        raise Refused(
            "invalid", f"{path[:80]!r} is not a plain name: letters, digits, dots, - and _, no folders", pointer="/path"
        )
    return path
