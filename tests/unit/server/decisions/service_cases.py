"""A service in this process with one policy, for the tests of this folder."""

from __future__ import annotations

import asyncio

from surefoot.server import schema
from surefoot.server.decisions.administration import create
from surefoot.server.decisions.policy_lifecycle import PolicyLifecycle
from surefoot.server.decisions.service import Service
from surefoot.server.http.problems import Refused


def new_policy(**changes):
    known = {"name": "greet", "actions": ["hello", "bye", "wave"], "embedding_size": 4}
    training = schema.TrainingBody(automatic=False, least=4)
    return schema.NewPolicy(**{**known, "training": training, **changes})


def asked(id=None, **changes):
    known = {"embedding": [1.0, 0.0, 0.5, -1.0]}
    return schema.NewDecision(**({} if id is None else {"decision_id": id}), **{**known, **changes})


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def run(tmp_path, story, clock=None, **policy):
    """One service from start to end, with a policy in it."""

    async def whole():
        service = Service(tmp_path, clock=clock or Clock(), seed=0)
        service.lifecycle = PolicyLifecycle(service)
        await service.start()
        try:
            if "greet" not in service.policies:
                await create(service, new_policy(**policy))
            return await story(service)
        finally:
            await service.close()

    return asyncio.run(whole())


def refused(kind, pointer=None):
    class Catch:
        def __enter__(self):
            return self

        def __exit__(self, type_, error, trace):
            assert isinstance(error, Refused), f"nothing was refused: {error}"
            assert error.kind == kind, f"{error.kind}: {error.detail}"
            assert pointer is None or error.pointer == pointer
            return True

    return Catch()
