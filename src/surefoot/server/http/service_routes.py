"""What can be asked of a service that decides and learns, and which verb answers. OpenAPI is made from this table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from surefoot.server import schema
from surefoot.server.decisions.policy_lifecycle import Steward
from surefoot.server.decisions.service import Service
from surefoot.server.http.access import Scope
from surefoot.server.http.metrics import exposition
from surefoot.server.http.route import BATCH_BODY, Counted, Route
from surefoot.server.http.routes import base_routes, distribution_route, run_routes
from surefoot.server.trained_runs import Runs

_POLICY, _DECISION = "/v1/policies/{policy}", "/v1/decisions/{decision}"


def described_routes() -> list[Route]:
    """The routes, to be described and not to be asked."""

    class Nobody:
        def __getattr__(self, name: str) -> Any:
            return None

    nobody: Any = Nobody()
    return all_routes(nobody, nobody, nobody)


def all_routes(service: Service, steward: Steward, counted: Counted) -> list[Route]:
    """Everything that can be asked of a service that decides and learns."""

    def metrics() -> bytes:
        return exposition(service, steward, counted.counts, counted.seconds)

    async def distribution(name: str, new: schema.NewDecision) -> schema.Chances:
        return service.distribution(name, new)

    return [
        *base_routes(service, counted, metrics),
        distribution_route(distribution),
        *run_routes(Runs()),
        *policy_routes(service),
        *decision_routes(service),
        *outcome_routes(service, steward),
        *learning_routes(steward),
        *version_routes(steward),
    ]


def policy_routes(service: Service) -> list[Route]:
    """Which policies there are."""

    async def policies() -> list[schema.PolicyResponse]:
        return [service.describe(serving) for serving in service.policies.values()]

    async def policy(name: str) -> schema.PolicyResponse:
        return service.describe(service.policy(name))

    return [
        Route(
            method="GET",
            path="/v1/policies",
            handle=policies,
            answer=list[schema.PolicyResponse],
            scope="read",
            name="listPolicies",
            about="All policies.",
        ),
        Route(
            method="POST",
            path="/v1/policies",
            handle=service.create,
            body=schema.NewPolicy,
            answer=schema.PolicyResponse,
            scope="admin",
            status=201,
            name="createPolicy",
            problems=("conflict",),
            about="Make a policy; the same again is the same policy.",
        ),
        Route(
            method="GET",
            path=_POLICY,
            handle=policy,
            answer=schema.PolicyResponse,
            scope="read",
            name="getPolicy",
            problems=("unknown",),
            about="How a policy is doing.",
        ),
    ]


def decision_routes(service: Service) -> list[Route]:
    """Choosing."""

    async def decide(name: str, new: schema.NewDecision) -> schema.DecisionResponse:
        return (await service.decide(name, [new]))[0]

    async def decide_many(name: str, many: schema.DecisionsBody) -> schema.DecisionList:
        return schema.DecisionList(decisions=await service.decide(name, many.decisions))

    def begin(name: str, new: schema.NewDecision, then: Callable[[Any], None]) -> None:
        service.begin(name, [new], lambda found: then(found if isinstance(found, Exception) else found[0]))

    after = ("decision", "decision_id")
    next_: dict[str, tuple[str, str]] = {"reward": after, "explain": after, "activate": after}
    return [
        Route(
            method="POST",
            path=f"{_POLICY}/decisions",
            handle=decide,
            begin=begin,
            also=_asks_for_all,
            key="decision_id",
            body=schema.NewDecision,
            answer=schema.DecisionResponse,
            name="decide",
            links=next_,
            problems=("unknown", "conflict", "full"),
            about="Choose an action. Acknowledged means on the disk.",
        ),
        Route(
            method="POST",
            path=f"{_POLICY}/decisions/batch",
            handle=decide_many,
            also=_one_asks_for_all,
            body=schema.DecisionsBody,
            answer=schema.DecisionList,
            limit=BATCH_BODY,
            name="decideMany",
            problems=("unknown", "conflict", "full"),
            about="Choose many actions, all or none.",
        ),
    ]


def outcome_routes(service: Service, steward: Steward) -> list[Route]:
    """What comes after a decision."""
    return [
        Route(
            method="GET",
            path=_DECISION,
            handle=steward.explain,
            answer=schema.Explained,
            scope="read",
            name="explain",
            problems=("unknown",),
            about="Why an action was chosen, and what came of decisions like it.",
        ),
        Route(
            method="POST",
            path=f"{_DECISION}/reward",
            handle=service.reward,
            wants_client=True,
            key="reward_id",
            body=schema.NewReward,
            answer=schema.RewardResponse,
            name="reward",
            problems=("unknown", "conflict", "expired", "full"),
            about="What came of a decision.",
        ),
        Route(
            method="POST",
            path=f"{_DECISION}/activate",
            handle=service.activate,
            answer=schema.DecisionResponse,
            name="activate",
            problems=("unknown", "full"),
            about="A deferred decision was carried out.",
        ),
    ]


def learning_routes(steward: Steward) -> list[Route]:
    """Learning, as jobs, and what came of it."""

    async def update(name: str, wish: schema.NewJob) -> schema.JobResponse:
        return await steward.update(name, None if wish.least is msgspec.UNSET else wish.least)

    async def job(id: str) -> schema.JobResponse:
        return steward.job(id)

    async def versions(name: str) -> schema.VersionList:
        return steward.version_list(name)

    return [
        Route(
            method="POST",
            path=f"{_POLICY}/updates",
            handle=update,
            body=schema.NewJob,
            answer=schema.JobResponse,
            scope="admin",
            status=202,
            name="update",
            links={"getJob": ("job", "job_id")},
            problems=("unknown", "conflict"),
            about="Learn now, as a job.",
        ),
        Route(
            method="GET",
            path="/v1/jobs/{job}",
            handle=job,
            answer=schema.JobResponse,
            scope="read",
            name="getJob",
            problems=("unknown",),
            about="How far a job is.",
        ),
        Route(
            method="GET",
            path=f"{_POLICY}/versions",
            handle=versions,
            answer=schema.VersionList,
            scope="read",
            name="listVersions",
            problems=("unknown",),
            about="What was learned, newest first.",
        ),
    ]


def version_routes(steward: Steward) -> list[Route]:
    """Which version answers."""
    return [
        Route(
            method="POST",
            path=f"{_POLICY}/promote",
            handle=steward.promote,
            body=schema.PromotionBody,
            answer=schema.PolicyResponse,
            scope="admin",
            name="promote",
            problems=("unknown", "conflict"),
            about="Let a version answer all decisions, or a share of them.",
        ),
        Route(
            method="POST",
            path=f"{_POLICY}/rollback",
            handle=steward.rollback,
            answer=schema.PolicyResponse,
            scope="admin",
            name="rollback",
            problems=("unknown", "conflict"),
            about="Back to the version that answered before.",
        ),
        Route(
            method="POST",
            path=f"{_POLICY}/evaluations",
            handle=steward.evaluate,
            body=schema.NewEvaluation,
            answer=schema.OffPolicy,
            scope="read",
            name="evaluate",
            problems=("unknown", "conflict"),
            about="What another version would have earned, from the log.",
        ),
        Route(
            method="POST",
            path=f"{_POLICY}/checkpoints",
            handle=steward.checkpoint,
            body=schema.NewCheckpoint,
            answer=schema.CheckpointResponse,
            scope="admin",
            status=201,
            name="createCheckpoint",
            links={"activateCheckpoint": ("checkpoint", "checkpoint_id")},
            problems=("unknown", "conflict"),
            about="Give a version a name that stays.",
        ),
        Route(
            method="POST",
            path="/v1/checkpoints/{checkpoint}/activate",
            handle=steward.activate_checkpoint,
            answer=schema.PolicyResponse,
            scope="admin",
            name="activateCheckpoint",
            problems=("unknown", "conflict", "invalid"),
            about="Let the version of a checkpoint answer.",
        ),
    ]


def _asks_for_all(new: schema.NewDecision) -> Scope | None:
    return "distribution" if new.distribution else None


def _one_asks_for_all(many: schema.DecisionsBody) -> Scope | None:
    return "distribution" if any(new.distribution for new in many.decisions) else None
