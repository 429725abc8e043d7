"""A service in this process with one policy, for the tests of this folder."""

from __future__ import annotations

import asyncio

from surefoot.server import schema
from surefoot.server.decisions.learning_process import answer
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


class Inline:
    """Learns in this process: the same code, without the time it takes to start another one."""

    def __init__(self, root):
        self.root, self.learners = root, {}

    def ask(self, recipe, rollout):
        return answer(self.learners, recipe, rollout, self.root / recipe.name)

    def close(self):
        self.learners.clear()


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def run(tmp_path, story, clock=None, **policy):
    """One service from start to end, with a policy in it."""

    async def whole():
        service = Service(tmp_path, clock=clock or Clock(), seed=0, pupil=Inline(tmp_path / "policies"))
        service.lifecycle = PolicyLifecycle(service)
        await service.start()
        try:
            if "greet" not in service.policies:
                await service.create(new_policy(**policy))
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


def told_by(service, counts):
    """Decides and rewards, so many for each client, those of the first client first."""

    async def tell():
        for client, count in counts.items():
            for i in range(count):
                await service.decide("greet", [asked(f"{client}-{i}")])
                await service.reward(f"{client}-{i}", schema.NewReward(value=1.0), client=client)

    return tell()
