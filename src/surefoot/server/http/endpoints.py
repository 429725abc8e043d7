"""The endpoints of the service, declared on the methods that answer them. OpenAPI is generated from these.

The first line of a docstring is the operation's summary in OpenAPI.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from surefoot.server import schema
from surefoot.server.decisions import administration, decision_log
from surefoot.server.decisions.policy_lifecycle import PolicyLifecycle
from surefoot.server.decisions.requests import chances_of
from surefoot.server.decisions.service import Service
from surefoot.server.http.access import Scope
from surefoot.server.http.metrics import exposition
from surefoot.server.http.openapi import document
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import BATCH_BODY, Counted, Route, Serves, route, routes_of
from surefoot.server.trained_runs import Runs

_POLICY, _DECISION, _RUN = "/v1/policies/{policy}", "/v1/decisions/{decision}", "/v1/runs/{run}"
_AFTER_DECISION = dict.fromkeys(("reward", "explain", "activate"), ("decision", "decision_id"))


def all_routes(service: Service, lifecycle: PolicyLifecycle, counted: Counted) -> list[Route]:
    """Return the routes of a service that decides and learns."""

    async def distribution(name: str, new: schema.NewDecision) -> schema.Chances:
        return chances_of(service.policy(name), new, service.digits)

    owners = (
        ServerEndpoints(service, counted, lifecycle),
        DistributionEndpoint(distribution),
        RunEndpoints(Runs()),
        DecisionEndpoints(service, lifecycle),
        LifecycleEndpoints(service, lifecycle),
    )
    return [route for owner in owners for route in routes_of(owner)]


def described_routes() -> list[Route]:
    """Return the same routes without a service, for the OpenAPI document."""
    owners = (ServerEndpoints, DistributionEndpoint, RunEndpoints, DecisionEndpoints, LifecycleEndpoints)
    return [route for owner in owners for route in routes_of(owner)]


class ServerEndpoints:
    """Endpoints of every service: health, metrics and OpenAPI."""

    def __init__(self, service: Serves, counted: Counted, lifecycle: PolicyLifecycle | None = None) -> None:
        self._service, self._counted, self._lifecycle = service, counted, lifecycle

    @route("GET", "/healthz", scope="read")
    async def health(self) -> schema.Health:
        """Liveness probe. No authentication."""
        return schema.Health(status="draining" if self._service.draining else "ok")

    @route("GET", "/readyz", scope="read", problems=("unavailable",))
    async def ready(self) -> schema.Health:
        """Readiness probe. No authentication."""
        if self._service.draining:
            raise Refused("unavailable", "the service is shutting down", headers={"Retry-After": "5"})
        return schema.Health(status="ok")

    @route("GET", "/metrics", scope="read", answer=str, kind="text/plain; version=0.0.4; charset=utf-8")
    async def metrics(self) -> bytes:
        """Metrics in Prometheus format."""
        return exposition(self._counted, self._lifecycle)

    @route("GET", "/openapi.json", scope="read", answer=dict[str, Any])
    async def openapi(self) -> bytes:
        """This OpenAPI document."""
        return document(self._counted.routes, secured=bool(self._counted.guard.tokens))


class DistributionEndpoint:
    """Probabilities of a policy's choices; writes nothing, so replicas serve it too."""

    def __init__(self, distribution: Callable[[str, schema.NewDecision], Awaitable[schema.Chances]]) -> None:
        self._distribution = distribution

    @route("POST", f"{_POLICY}/distribution", scope="distribution", problems=("unknown",))
    async def distribution(self, name: str, new: schema.NewDecision) -> schema.Chances:
        """Return the probability of every choice without deciding. Needs the scope `distribution`, as it reveals the policy."""
        return await self._distribution(name, new)


class RunEndpoints:
    """Trained policies, served without learning."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    @route("GET", "/v1/runs", scope="read")
    async def list_runs(self) -> list[schema.RunResponse]:
        """List the trained policies that `surefoot serve RUN` serves."""
        return [policy.describe() for policy in self._runs.policies.values()]

    @route("GET", _RUN, scope="read", problems=("unknown",))
    async def get_run(self, name: str) -> schema.RunResponse:
        """Return the observation and action spaces of a trained policy."""
        return self._runs.run(name).describe()

    @route("POST", f"{_RUN}/actions", limit=BATCH_BODY, problems=("unknown",))
    async def act(self, name: str, new: schema.NewAct) -> schema.Act:
        """Return an action for an observation; nothing is stored."""
        return self._runs.run(name).act([new], "")[0]

    @route("POST", f"{_RUN}/actions/batch", limit=BATCH_BODY, problems=("unknown",))
    async def act_many(self, name: str, many: schema.Acts) -> schema.ActList:
        """Return actions for many observations."""
        return schema.ActList(acts=self._runs.run(name).act(many.acts, "/acts/{}"))


def _distribution_scope(body: schema.NewDecision | schema.DecisionsBody) -> Scope | None:
    decisions = body.decisions if isinstance(body, schema.DecisionsBody) else [body]
    return "distribution" if any(new.distribution for new in decisions) else None


class DecisionEndpoints:
    """Policies, decisions and rewards."""

    def __init__(self, service: Service, lifecycle: PolicyLifecycle) -> None:
        self._service, self._lifecycle = service, lifecycle

    @route("GET", "/v1/policies", scope="read")
    async def list_policies(self) -> list[schema.PolicyResponse]:
        """List the policies."""
        return [administration.describe(serving) for serving in self._service.policies.values()]

    @route("POST", "/v1/policies", scope="admin", status=201, problems=("conflict",))
    async def create_policy(self, new: schema.NewPolicy) -> schema.PolicyResponse:
        """Create a policy; repeating the same request returns the same policy."""
        return await administration.create(self._service, new)

    @route("GET", _POLICY, scope="read", problems=("unknown",))
    async def get_policy(self, name: str) -> schema.PolicyResponse:
        """Return the configuration and statistics of a policy."""
        return administration.describe(self._service.policy(name))

    @route("PATCH", _POLICY, scope="admin", problems=("unknown", "conflict", "full"))
    async def change_policy(self, name: str, new: schema.PolicyChange) -> schema.PolicyResponse:
        """Rename or freeze a policy; add, describe or retire actions."""
        return await administration.change(self._service, name, new)

    @route("DELETE", _POLICY, scope="admin", problems=("unknown", "full"))
    async def delete_policy(self, name: str) -> schema.Deleted:
        """Delete a policy with its versions, decisions and rewards."""
        return await administration.delete(self._service, name)

    def begin_decide(self, name: str, new: schema.NewDecision, then: Callable[[Any], None]) -> None:
        """Decide without a coroutine; `then` gets the decision or an error."""
        self._service.begin(name, [new], lambda result: then(result if isinstance(result, Exception) else result[0]))

    @route(
        "POST",
        f"{_POLICY}/decisions",
        begin=begin_decide,
        also=_distribution_scope,
        key="decision_id",
        links=_AFTER_DECISION,
        problems=("unknown", "conflict", "full"),
    )
    async def decide(self, name: str, new: schema.NewDecision) -> schema.DecisionResponse:
        """Choose an action. The decision is on disk when the response arrives."""
        return (await self._service.decide(name, [new]))[0]

    @route(
        "POST",
        f"{_POLICY}/decisions/batch",
        also=_distribution_scope,
        limit=BATCH_BODY,
        problems=("unknown", "conflict", "full"),
    )
    async def decide_many(self, name: str, many: schema.DecisionsBody) -> schema.DecisionList:
        """Choose many actions in one request, all or none."""
        return schema.DecisionList(decisions=await self._service.decide(name, many.decisions))

    @route("GET", f"{_POLICY}/decisions", scope="read", problems=("unknown",))
    async def list_decisions(self, name: str, query: schema.DecisionQuery) -> schema.DecisionLog:
        """List past decisions, newest first."""
        return await self._read(decision_log.list_decisions, name, query)

    @route(
        "GET",
        f"{_POLICY}/decisions.ndjson",
        scope="read",
        problems=("unknown",),
        answer=str,
        kind="application/x-ndjson",
    )
    async def export_ndjson(self, name: str, query: schema.ExportQuery) -> bytes:
        """Export past decisions, one JSON object per line, newest first."""
        return await self._read(decision_log.as_ndjson, name, query)

    @route(
        "GET",
        f"{_POLICY}/decisions.csv",
        scope="read",
        problems=("unknown",),
        answer=str,
        kind="text/csv; charset=utf-8",
    )
    async def export_csv(self, name: str, query: schema.ExportQuery) -> bytes:
        """Export past decisions as CSV, newest first."""
        return await self._read(decision_log.as_csv, name, query)

    @route("GET", f"{_POLICY}/statistics", scope="read", problems=("unknown",))
    async def statistics(self, name: str) -> schema.PolicyStatistics:
        """Return the share and the mean reward of each action, and the calibration."""
        return decision_log.statistics(self._service.policy(name))

    async def _read(self, function: Callable[..., Any], name: str, query: Any) -> Any:
        """Read the store in a thread: a filter may have to read much of it."""
        arguments = self._service, self._service.policy(name), query
        return await asyncio.get_running_loop().run_in_executor(self._service.workers, function, *arguments)

    @route("GET", _DECISION, scope="read", problems=("unknown",))
    async def explain(self, id: str) -> schema.Explained:
        """Explain a decision, with similar past decisions and their rewards."""
        return await self._lifecycle.explain(id)

    @route("POST", f"{_DECISION}/reward", key="reward_id", problems=("unknown", "conflict", "expired", "full"))
    async def reward(self, id: str, new: schema.NewReward, *, client: str = "") -> schema.RewardResponse:
        """Report the reward of a decision."""
        return await self._service.reward(id, new, client=client)

    @route("POST", f"{_DECISION}/activate", problems=("unknown", "full"))
    async def activate(self, id: str) -> schema.DecisionResponse:
        """Report that a deferred decision was carried out."""
        return await self._service.activate(id)


class LifecycleEndpoints:
    """Learning jobs, and the versions that they create."""

    def __init__(self, service: Service, lifecycle: PolicyLifecycle) -> None:
        self._service, self._lifecycle = service, lifecycle

    @route(
        "POST",
        f"{_POLICY}/updates",
        scope="admin",
        status=202,
        links={"getJob": ("job", "job_id")},
        problems=("unknown", "conflict"),
    )
    async def update(self, name: str, new: schema.NewJob) -> schema.JobResponse:
        """Start a learning job."""
        return await self._lifecycle.update(name, None if new.least is msgspec.UNSET else new.least)

    @route("GET", "/v1/jobs/{job}", scope="read", problems=("unknown",))
    async def get_job(self, id: str) -> schema.JobResponse:
        """Return the state of a job."""
        return self._lifecycle.job(id)

    @route("GET", f"{_POLICY}/versions", scope="read", problems=("unknown",))
    async def list_versions(self, name: str) -> schema.VersionList:
        """List the versions, newest first."""
        return self._lifecycle.version_list(name)

    @route("POST", f"{_POLICY}/promote", scope="admin", problems=("unknown", "conflict"))
    async def promote(self, name: str, new: schema.PromotionBody) -> schema.PolicyResponse:
        """Make a version live for all decisions, or for a share of them."""
        return await self._lifecycle.promote(name, new)

    @route("POST", f"{_POLICY}/rollback", scope="admin", problems=("unknown", "conflict"))
    async def rollback(self, name: str) -> schema.PolicyResponse:
        """Make the previously live version live again."""
        return await self._lifecycle.rollback(name)

    @route("POST", f"{_POLICY}/evaluations", scope="read", problems=("unknown", "conflict"))
    async def evaluate(self, name: str, new: schema.NewEvaluation) -> schema.OffPolicy:
        """Estimate from the log what another version would have earned."""
        return await self._lifecycle.evaluate(name, new)

    @route(
        "POST",
        f"{_POLICY}/checkpoints",
        scope="admin",
        status=201,
        links={"activateCheckpoint": ("checkpoint", "checkpoint_id")},
        problems=("unknown", "conflict"),
    )
    async def create_checkpoint(self, name: str, new: schema.NewCheckpoint) -> schema.CheckpointResponse:
        """Name a version permanently."""
        return await self._lifecycle.checkpoint(name, new)

    @route("POST", "/v1/checkpoints/{checkpoint}/activate", scope="admin", problems=("unknown", "conflict", "invalid"))
    async def activate_checkpoint(self, id: str) -> schema.PolicyResponse:
        """Make the version of a checkpoint live."""
        return await self._lifecycle.activate_checkpoint(id)
