"""What can be asked of any service: whether it lives, what trained runs do, what a policy would choose."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from surefoot.server import schema
from surefoot.server.http.openapi import document
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import BATCH_BODY, Counted, Route, Serves
from surefoot.server.trained_runs import Runs


def base_routes(service: Serves, counted: Counted, metrics: Callable[[], bytes]) -> list[Route]:
    """What every service answers: whether it lives, its counters, its description."""

    async def health() -> schema.Health:
        return schema.Health(status="draining" if service.draining else "ok")

    async def ready() -> schema.Health:
        if service.draining:
            raise Refused("unavailable", "the service is shutting down", headers={"Retry-After": "5"})
        return schema.Health(status="ok")

    async def counters() -> bytes:
        return metrics()

    async def openapi() -> bytes:
        return document(counted.routes, secured=bool(counted.guard.tokens))

    return [
        Route(
            method="GET",
            path="/healthz",
            handle=health,
            answer=schema.Health,
            scope="read",
            name="health",
            about="It lives. Asked without a token.",
        ),
        Route(
            method="GET",
            path="/readyz",
            handle=ready,
            answer=schema.Health,
            scope="read",
            name="ready",
            about="It answers. Asked without a token.",
            problems=("unavailable",),
        ),
        Route(
            method="GET",
            path="/metrics",
            handle=counters,
            answer=str,
            scope="read",
            name="metrics",
            kind="text/plain; version=0.0.4; charset=utf-8",
            about="Counters for Prometheus.",
        ),
        Route(
            method="GET",
            path="/openapi.json",
            handle=openapi,
            answer=dict[str, Any],
            scope="read",
            name="openapi",
            about="This description.",
        ),
    ]


def run_routes(runs: Runs) -> list[Route]:
    """Trained policies, served as they are."""

    async def listed() -> list[schema.RunResponse]:
        return [policy.describe() for policy in runs.policies.values()]

    async def described(name: str) -> schema.RunResponse:
        return runs.run(name).describe()

    async def act(name: str, new: schema.NewAct) -> schema.Act:
        return runs.run(name).act([new], "")[0]

    async def act_many(name: str, many: schema.Acts) -> schema.ActList:
        return schema.ActList(acts=runs.run(name).act(many.acts, "/acts/{}"))

    at = "/v1/runs/{run}"
    return [
        Route(
            method="GET",
            path="/v1/runs",
            handle=listed,
            answer=list[schema.RunResponse],
            scope="read",
            name="listRuns",
            about="The trained policies that `surefoot serve RUN` serves.",
        ),
        Route(
            method="GET",
            path=at,
            handle=described,
            answer=schema.RunResponse,
            scope="read",
            name="getRun",
            problems=("unknown",),
            about="What a trained policy sees and does.",
        ),
        Route(
            method="POST",
            path=f"{at}/actions",
            handle=act,
            body=schema.NewAct,
            answer=schema.Act,
            limit=BATCH_BODY,
            name="act",
            problems=("unknown",),
            about="An action for an observation; nothing is kept.",
        ),
        Route(
            method="POST",
            path=f"{at}/actions/batch",
            handle=act_many,
            body=schema.Acts,
            answer=schema.ActList,
            limit=BATCH_BODY,
            name="actMany",
            problems=("unknown",),
            about="Actions for many observations.",
        ),
    ]


def distribution_route(distribution: Callable[[str, schema.NewDecision], Awaitable[schema.Chances]]) -> Route:
    """Every choice's probability: it writes nothing, so that replicas answer it, too."""
    return Route(
        method="POST",
        path="/v1/policies/{policy}/distribution",
        handle=distribution,
        body=schema.NewDecision,
        answer=schema.Chances,
        scope="distribution",
        name="distribution",
        problems=("unknown",),
        about="What would be chosen how often. Nothing is decided or kept; a scope of its own, as it tells the whole policy.",
    )
