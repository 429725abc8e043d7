"""The endpoints of the service, declared on the methods that answer them. OpenAPI is generated from these.

The first line of a docstring is the operation's summary in OpenAPI.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from surefoot.server import schema
from surefoot.server.decisions.policy_lifecycle import Steward
from surefoot.server.decisions.served_policy import chances_of
from surefoot.server.decisions.service import Service
from surefoot.server.http.access import Scope
from surefoot.server.http.metrics import exposition
from surefoot.server.http.openapi import document
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import BATCH_BODY, Counted, Route, Serves, route, routes_of
from surefoot.server.trained_runs import Runs

_POLICY, _DECISION, _RUN = "/v1/policies/{policy}", "/v1/decisions/{decision}", "/v1/runs/{run}"
_AFTER_DECISION = dict.fromkeys(("reward", "explain", "activate"), ("decision", "decision_id"))


def all_routes(service: Service, steward: Steward, counted: Counted) -> list[Route]:
    """Return the routes of a service that decides and learns."""

    async def distribution(name: str, new: schema.NewDecision) -> schema.Chances:
        return chances_of(service.policy(name), new, service.digits)

    owners = (
        ServerEndpoints(service, counted, steward),
        DistributionEndpoint(distribution),
        RunEndpoints(Runs()),
        DecisionEndpoints(service, steward),
        LifecycleEndpoints(service, steward),
    )
    return [route for owner in owners for route in routes_of(owner)]


def described_routes() -> list[Route]:
    """Return the same routes for a description, without a service."""
    owners = (ServerEndpoints, DistributionEndpoint, RunEndpoints, DecisionEndpoints, LifecycleEndpoints)
    return [route for owner in owners for route in routes_of(owner)]


class ServerEndpoints:
    """Of every service: liveness, counters and description."""

    def __init__(self, service: Serves, counted: Counted, steward: Steward | None = None) -> None:
        self._service, self._counted, self._steward = service, counted, steward

    @route("GET", "/healthz", scope="read")
    async def health(self) -> schema.Health:
        """It lives. Asked without a token."""
        return schema.Health(status="draining" if self._service.draining else "ok")

    @route("GET", "/readyz", scope="read", problems=("unavailable",))
    async def ready(self) -> schema.Health:
        """It answers. Asked without a token."""
        if self._service.draining:
            raise Refused("unavailable", "the service is shutting down", headers={"Retry-After": "5"})
        return schema.Health(status="ok")

    @route("GET", "/metrics", scope="read", answer=str, kind="text/plain; version=0.0.4; charset=utf-8")
    async def metrics(self) -> bytes:
        """Counters for Prometheus."""
        return exposition(self._counted, self._steward)

    @route("GET", "/openapi.json", scope="read", answer=dict[str, Any])
    async def openapi(self) -> bytes:
        """This description."""
        return document(self._counted.routes, secured=bool(self._counted.guard.tokens))


class DistributionEndpoint:
    """The probabilities of a policy's choices; writes nothing, so that replicas have it, too."""

    def __init__(self, distribution: Callable[[str, schema.NewDecision], Awaitable[schema.Chances]]) -> None:
        self._distribution = distribution

    @route("POST", f"{_POLICY}/distribution", scope="distribution", problems=("unknown",))
    async def distribution(self, name: str, new: schema.NewDecision) -> schema.Chances:
        """What would be chosen how often. Nothing is decided or kept; a scope of its own, as it tells the whole policy."""
        return await self._distribution(name, new)


class RunEndpoints:
    """Trained policies, served as they are."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    @route("GET", "/v1/runs", scope="read")
    async def list_runs(self) -> list[schema.RunResponse]:
        """The trained policies that `surefoot serve RUN` serves."""
        return [policy.describe() for policy in self._runs.policies.values()]

    @route("GET", _RUN, scope="read", problems=("unknown",))
    async def get_run(self, name: str) -> schema.RunResponse:
        """What a trained policy sees and does."""
        return self._runs.run(name).describe()

    @route("POST", f"{_RUN}/actions", limit=BATCH_BODY, problems=("unknown",))
    async def act(self, name: str, new: schema.NewAct) -> schema.Act:
        """An action for an observation; nothing is kept."""
        return self._runs.run(name).act([new], "")[0]

    @route("POST", f"{_RUN}/actions/batch", limit=BATCH_BODY, problems=("unknown",))
    async def act_many(self, name: str, many: schema.Acts) -> schema.ActList:
        """Actions for many observations."""
        return schema.ActList(acts=self._runs.run(name).act(many.acts, "/acts/{}"))


def _distribution_scope(body: schema.NewDecision | schema.DecisionsBody) -> Scope | None:
    wanted = body.decisions if isinstance(body, schema.DecisionsBody) else [body]
    return "distribution" if any(new.distribution for new in wanted) else None


class DecisionEndpoints:
    """Policies, their decisions and the rewards of these."""

    def __init__(self, service: Service, steward: Steward) -> None:
        self._service, self._steward = service, steward

    @route("GET", "/v1/policies", scope="read")
    async def list_policies(self) -> list[schema.PolicyResponse]:
        """All policies."""
        return [self._service.describe(serving) for serving in self._service.policies.values()]

    @route("POST", "/v1/policies", scope="admin", status=201, problems=("conflict",))
    async def create_policy(self, new: schema.NewPolicy) -> schema.PolicyResponse:
        """Make a policy; the same again is the same policy."""
        return await self._service.create(new)

    @route("GET", _POLICY, scope="read", problems=("unknown",))
    async def get_policy(self, name: str) -> schema.PolicyResponse:
        """How a policy is doing."""
        return self._service.describe(self._service.policy(name))

    def begin_decide(self, name: str, new: schema.NewDecision, then: Callable[[Any], None]) -> None:
        """Decide without a coroutine; `then` gets the decision or an error."""
        self._service.begin(name, [new], lambda made: then(made if isinstance(made, Exception) else made[0]))

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
        """Choose an action. Acknowledged means on the disk."""
        return (await self._service.decide(name, [new]))[0]

    @route(
        "POST",
        f"{_POLICY}/decisions/batch",
        also=_distribution_scope,
        limit=BATCH_BODY,
        problems=("unknown", "conflict", "full"),
    )
    async def decide_many(self, name: str, many: schema.DecisionsBody) -> schema.DecisionList:
        """Choose many actions, all or none."""
        return schema.DecisionList(decisions=await self._service.decide(name, many.decisions))

    @route("GET", _DECISION, scope="read", problems=("unknown",))
    async def explain(self, id: str) -> schema.Explained:
        """Why an action was chosen, and what came of decisions like it."""
        return await self._steward.explain(id)

    @route("POST", f"{_DECISION}/reward", key="reward_id", problems=("unknown", "conflict", "expired", "full"))
    async def reward(self, id: str, new: schema.NewReward, *, client: str = "") -> schema.RewardResponse:
        """What came of a decision."""
        return await self._service.reward(id, new, client=client)

    @route("POST", f"{_DECISION}/activate", problems=("unknown", "full"))
    async def activate(self, id: str) -> schema.DecisionResponse:
        """A deferred decision was carried out."""
        return await self._service.activate(id)


class LifecycleEndpoints:
    """Updates as jobs, and the versions that they make."""

    def __init__(self, service: Service, steward: Steward) -> None:
        self._service, self._steward = service, steward

    @route(
        "POST",
        f"{_POLICY}/updates",
        scope="admin",
        status=202,
        links={"getJob": ("job", "job_id")},
        problems=("unknown", "conflict"),
    )
    async def update(self, name: str, new: schema.NewJob) -> schema.JobResponse:
        """Learn now, as a job."""
        return await self._steward.update(name, None if new.least is msgspec.UNSET else new.least)

    @route("GET", "/v1/jobs/{job}", scope="read", problems=("unknown",))
    async def get_job(self, id: str) -> schema.JobResponse:
        """How far a job is."""
        return self._steward.job(id)

    @route("GET", f"{_POLICY}/versions", scope="read", problems=("unknown",))
    async def list_versions(self, name: str) -> schema.VersionList:
        """What was learned, newest first."""
        return self._steward.version_list(name)

    @route("POST", f"{_POLICY}/promote", scope="admin", problems=("unknown", "conflict"))
    async def promote(self, name: str, new: schema.PromotionBody) -> schema.PolicyResponse:
        """Let a version answer all decisions, or a share of them."""
        return await self._steward.promote(name, new)

    @route("POST", f"{_POLICY}/rollback", scope="admin", problems=("unknown", "conflict"))
    async def rollback(self, name: str) -> schema.PolicyResponse:
        """Back to the version that answered before."""
        return await self._steward.rollback(name)

    @route("POST", f"{_POLICY}/evaluations", scope="read", problems=("unknown", "conflict"))
    async def evaluate(self, name: str, new: schema.NewEvaluation) -> schema.OffPolicy:
        """What another version would have earned, from the log."""
        return await self._steward.evaluate(name, new)

    @route(
        "POST",
        f"{_POLICY}/checkpoints",
        scope="admin",
        status=201,
        links={"activateCheckpoint": ("checkpoint", "checkpoint_id")},
        problems=("unknown", "conflict"),
    )
    async def create_checkpoint(self, name: str, new: schema.NewCheckpoint) -> schema.CheckpointResponse:
        """Give a version a name that stays."""
        return await self._steward.checkpoint(name, new)

    @route("POST", "/v1/checkpoints/{checkpoint}/activate", scope="admin", problems=("unknown", "conflict", "invalid"))
    async def activate_checkpoint(self, id: str) -> schema.PolicyResponse:
        """Let the version of a checkpoint answer."""
        return await self._steward.activate_checkpoint(id)
