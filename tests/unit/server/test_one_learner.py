"""One stream of decisions through the library, the service with actions and the service with candidates: the same decisions."""

from __future__ import annotations

import asyncio

import numpy as np

from surefoot.decide.core.agent import Agent
from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.encoders.observed import GivenVectors
from surefoot.server.schema import TrainingBody

NAMES = {"refund": "give the money back", "replace": "send a new cup", "person": "let a colleague answer"}
SIZE, COUNT = 64, 150


def stream():
    """Yield vectors of texts and the right choice of each, which the descriptions do not tell."""
    rng, encoder = np.random.default_rng(3), HashingEncoder(SIZE)
    words = ["money", "cup", "colleague", "broken", "late", "lost"]
    for _ in range(COUNT):
        first, second = rng.integers(0, 6, 2)
        vector = encoder.encode([f"{words[first]} {words[second]} please"])[0]
        yield vector, list(NAMES)[(first + second) % 3]


def described():
    encoder = HashingEncoder(SIZE)
    return encoder.encode([f"{name}: {text}" for name, text in NAMES.items()])


def by_library():
    agent = Agent(GivenVectors(SIZE))
    for name, vector in zip(NAMES, described(), strict=True):
        agent.options.add_vector(name, vector)
    made = list[str | None]()
    for vector, right in stream():
        record = agent.decide("", vector=vector)
        made.append(record.name)
        if record.name is not None:
            agent.outcome(record.id, float(record.name == right))
            agent.learn()
    return made


def by_service(serving, **policy):
    candidates = [{"id": n, "embedding": v.tolist()} for n, v in zip(NAMES, described(), strict=True)]
    more = {"candidates": candidates} if policy.get("choose") else {}

    async def story(ask):
        from msgspec import convert

        from surefoot.server.decisions.administration import create
        from surefoot.server.schema import NewPolicy

        await create(ask.service, convert({"name": "one", "embedding_size": SIZE, **policy}, NewPolicy))
        assert ask.service.policy("one").config.training == TrainingBody()
        made = list[str | None]()
        for vector, right in stream():
            answer = (await ask("POST", "/v1/policies/one/decisions", {"embedding": vector.tolist(), **more})).json
            made.append(answer["name"])
            if answer["name"] is not None:
                reward = {"value": float(answer["name"] == right)}
                assert (await ask("POST", f"/v1/decisions/{answer['decision_id']}/reward", reward)).status == 200
                # On a busy machine learning may be behind, and the next decision would see older weights.
                while len(ask.service.policy("one").pending):
                    await asyncio.sleep(0.001)
        return made

    return serving(story, policy=None)


def test_actions_are_chosen_as_the_library_chooses(serving):
    embeddings = {name: vector.tolist() for name, vector in zip(NAMES, described(), strict=True)}
    assert by_service(serving, actions=list(NAMES), description_embeddings=embeddings) == by_library()


def test_candidates_are_chosen_as_the_library_chooses(serving):
    assert by_service(serving, choose="candidates") == by_library()
