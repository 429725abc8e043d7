"""One stream of decisions through library, service, graph node and prompt policy: the same decisions."""

from __future__ import annotations

import asyncio

import numpy as np

from surefoot.decide.core.agent import Agent
from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.encoders.observed import GivenVectors
from surefoot.decide.prompts.mutations import STOP
from surefoot.decide.prompts.policy import CHANGES, PromptConfig, PromptPolicy, versions
from surefoot.decide.tools.protocol import Toolbox
from surefoot.graph.runtime.tools import ToolPolicyNode, Tools, ToolTrainerNode
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


class Tool:
    def __init__(self, name, description):
        self.name, self.description = name, description

    async def __call__(self, request):
        raise AssertionError("nothing runs here")


class Described(GivenVectors):
    """Vectors from elsewhere; descriptions are encoded as `described` does."""

    def encode(self, texts):
        return HashingEncoder(SIZE).encode(texts)


def test_a_graph_node_chooses_as_the_library_chooses():
    policy, trainer = ToolPolicyNode(), ToolTrainerNode()
    toolbox = Tools(Toolbox(*(Tool(name, text) for name, text in NAMES.items())), None)
    made = list[str | None]()
    for vector, right in stream():
        choices, agent = policy(vector[None], toolbox, Described(SIZE))
        made.append(choices[0].name)
        trainer(choices, np.array([float(made[-1] == right)]), agent)
    assert made == by_library()


def mutated():
    """Yield prompts, and the gain of each mutation: an answer form helps where there are options, nothing helps stories."""
    rng = np.random.default_rng(4)
    for _ in range(60):
        if rng.random() < 0.5:
            prompt = f"Which of these is old: wine, milk or {rng.integers(99)}?"
            yield prompt, {"answer-form": 1.0, "answer-cue": 0.3}
        else:
            yield f"Write a story about {rng.integers(99)} bees.", {}


def test_the_prompt_policy_chooses_as_the_service_chooses(serving):
    policy = PromptPolicy()
    actions, size = [*CHANGES, STOP], policy.agent.encoder.dim

    async def story(ask):
        settings = {"lr": policy.agent.chooser.config.lr}
        new = {"name": "one", "actions": actions, "embedding_size": size, "training": {"settings": settings}}
        assert (await ask("POST", "/v1/policies", {**new, "abstain_below": 0.0})).status == 201

        async def decide(vector, allowed, **how):
            body = {"embedding": vector.tolist(), "mask": [name in allowed for name in actions], **how}
            answer = await ask("POST", "/v1/policies/one/decisions", body)
            return answer.json

        rng, made, answered = np.random.default_rng(5), list[str](), list[str]()
        for prompt, gains in mutated():
            possible = list(versions(prompt, prompt, PromptConfig()))
            vector = policy.observe(prompt, [])
            made.append(policy.choose(prompt, [], possible))
            answered.append((await decide(vector, [*possible, STOP], deterministic=True))["name"])
            mutation = possible[int(rng.integers(len(possible)))]
            gain = gains.get(mutation, -1.5)
            policy.learn(prompt, [], mutation, gain)
            success = 0.5 + 0.5 * gain / policy.config.span
            for name, reward in ((mutation, success), (STOP, 1.0 - success)):
                taken = await decide(vector, [mutation, STOP], mode="apprentice", action=actions.index(name))
                assert (
                    await ask("POST", f"/v1/decisions/{taken['decision_id']}/reward", {"value": reward})
                ).status == 200
                while len(ask.service.policy("one").pending):
                    await asyncio.sleep(0.001)
        return made, answered

    made, answered = serving(story, policy=None)
    assert made == answered
    # And it is a policy that has learned.
    assert {"answer-form", STOP} <= set(made[-10:])
