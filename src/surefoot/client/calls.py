"""What can be asked of a service: each call's path, body and answer, once for both clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from surefoot.client.bodies import at, observed, quoted, read, wire, without_id
from surefoot.errors import SurefootError
from surefoot.server import schema
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
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request and how its answer is read."""

    method: str
    path: str
    body: Any
    answer: Callable[[bytes], T]
    repeatable: bool = True
    """Asking twice does no more than asking once."""


def _get(path: str, kind: type[T]) -> Call[T]:
    return Call("GET", path, None, lambda raw: read(raw, kind))


def _post(path: str, body: Any, kind: type[T], *, repeatable: bool = True) -> Call[T]:
    return Call("POST", path, body, lambda raw: read(raw, kind), repeatable)


def _part(call: Call[K], part: Callable[[K], T]) -> Call[T]:
    return Call(call.method, call.path, call.body, lambda raw: part(call.answer(raw)), call.repeatable)


def health() -> Call[Health]:
    return _get("/healthz", Health)


def ready() -> Call[Health]:
    return _get("/readyz", Health)


def metrics() -> Call[str]:
    return Call("GET", "/metrics", None, bytes.decode)


def policies() -> Call[list[PolicyResponse]]:
    return _get("/v1/policies", list[PolicyResponse])


def policy(name: str) -> Call[PolicyResponse]:
    return _get(at(name), PolicyResponse)


def create_policy(name: str, actions: Sequence[str], settings: Mapping[str, Any]) -> Call[PolicyResponse]:
    return _post("/v1/policies", {"name": name, "actions": list(actions), **settings}, PolicyResponse)


def decide(policy: str, seen: Mapping[str, Any]) -> Call[DecisionResponse]:
    return _post(f"{at(policy)}/decisions", wire(seen), DecisionResponse)


def decide_many(policy: str, many: Iterable[Mapping[str, Any]]) -> Call[list[DecisionResponse]]:
    body = {"decisions": [wire(seen) for seen in many]}
    return _part(_post(f"{at(policy)}/decisions/batch", body, schema.DecisionList), lambda told: told.decisions)


def distribution(policy: str, seen: Mapping[str, Any]) -> Call[Chances]:
    return _post(f"{at(policy)}/distribution", without_id(seen), Chances)


def runs() -> Call[list[RunResponse]]:
    return _get("/v1/runs", list[RunResponse])


def run(name: str) -> Call[RunResponse]:
    return _get(f"/v1/runs/{quoted(name)}", RunResponse)


def act(run: str, observation: Any, how: Mapping[str, Any]) -> Call[Act]:
    return _post(f"/v1/runs/{quoted(run)}/actions", observed(observation, how), Act)


def act_many(run: str, observations: Iterable[Any], how: Mapping[str, Any]) -> Call[list[Act]]:
    body = {"acts": [observed(each, how) for each in observations]}
    return _part(_post(f"/v1/runs/{quoted(run)}/actions/batch", body, schema.ActList), lambda told: told.acts)


def reward(decision: str, value: float | None, told: Mapping[str, Any]) -> Call[RewardResponse]:
    body = dict(told) if value is None else {"value": value, **told}
    return _post(f"/v1/decisions/{quoted(decision)}/reward", body, RewardResponse)


def activate(decision: str) -> Call[DecisionResponse]:
    return _post(f"/v1/decisions/{quoted(decision)}/activate", None, DecisionResponse)


def explain(decision: str) -> Call[Explained]:
    return _get(f"/v1/decisions/{quoted(decision)}", Explained)


def versions(policy: str) -> Call[list[Version]]:
    return _part(_get(f"{at(policy)}/versions", schema.VersionList), lambda told: told.versions)


def promote(policy: str, version: int, share: float, gate: bool) -> Call[PolicyResponse]:
    return _post(f"{at(policy)}/promote", {"version": version, "share": share, "gate": gate}, PolicyResponse)


def rollback(policy: str) -> Call[PolicyResponse]:
    return _post(f"{at(policy)}/rollback", None, PolicyResponse, repeatable=False)


def evaluate(policy: str, version: int, last: int) -> Call[OffPolicy]:
    return _post(f"{at(policy)}/evaluations", {"version": version, "last": last}, OffPolicy)


def update(policy: str, least: int | None) -> Call[JobResponse]:
    return _post(f"{at(policy)}/updates", {} if least is None else {"least": least}, JobResponse, repeatable=False)


def job(id: str) -> Call[JobResponse]:
    return _get(f"/v1/jobs/{quoted(id)}", JobResponse)


def checkpoint(policy: str, version: int | None) -> Call[CheckpointResponse]:
    return _post(f"{at(policy)}/checkpoints", {} if version is None else {"version": version}, CheckpointResponse)


def activate_checkpoint(id: str) -> Call[PolicyResponse]:
    return _post(f"/v1/checkpoints/{quoted(id)}/activate", None, PolicyResponse)


def ended(job: JobResponse) -> bool:
    """Whether a job is over; SurefootError where it failed."""
    if job.state == "failed":
        raise SurefootError(f"job {job.job_id} failed: {job.message}")
    return job.state not in ("waiting", "running")
