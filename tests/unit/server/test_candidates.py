"""Decisions that bring their candidates, each with a description."""

from __future__ import annotations

import numpy as np
import pytest

POLICY = {"name": "pick", "choose": "candidates", "encoder": "hashing", "embedding_size": 128}
DECIDE = "/v1/policies/pick/decisions"
THREE = [
    {"id": "refund", "description": "give the money back"},
    {"id": "replace", "description": "send a new cup"},
    {"id": "person", "description": "let a colleague answer"},
]


def test_the_description_that_is_nearest_is_likeliest_before_anything_was_learned(serving):
    async def story(ask):
        body = {"text": "please send me a new cup", "candidates": THREE, "distribution": True}
        made = (await ask("POST", DECIDE, body)).json
        backwards = (await ask("POST", DECIDE, {**body, "candidates": THREE[::-1]})).json
        return made, backwards

    made, backwards = serving(story, policy=POLICY)
    assert int(np.argmax(made["distribution"])) == 1
    assert made["name"] == THREE[made["action"]]["id"]
    assert backwards["distribution"] == pytest.approx(made["distribution"][::-1])


def test_masks_ids_and_replays_work_as_for_actions(serving):
    async def story(ask):
        body = {"decision_id": "c1", "text": "a cup", "candidates": THREE, "mask": [False, False, True]}
        first, again = [(await ask("POST", DECIDE, body)).json for _ in range(2)]
        others = await ask("POST", DECIDE, {**body, "candidates": [*THREE[:2], {"id": "x", "description": "other"}]})
        renamed = await ask(
            "POST", DECIDE, {**body, "candidates": [{**each, "id": each["id"] + "!"} for each in THREE]}
        )
        explained = (await ask("GET", "/v1/decisions/c1")).json
        return first, again, others.status, renamed.status, explained

    first, again, others, renamed, explained = serving(story, policy=POLICY)
    assert first == again
    assert (first["name"], first["action"], first["probability"]) == ("person", 2, 1.0)
    assert (others, renamed) == (409, 409)
    assert explained["distribution"] == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({}, "/"),
        ({"candidates": []}, "/candidates"),
        ({"candidates": [*THREE, THREE[0]]}, "/candidates/3/id"),
        ({"candidates": [{"id": "a"}]}, "/candidates/0"),
        ({"candidates": [{"id": "a", "description": ""}]}, "/candidates/0/description"),
        ({"candidates": [{"id": "a", "embedding": [1.0]}]}, "/candidates/0/embedding"),
        ({"candidates": [{"id": "a", "description": "x", "embedding_b64": "AAAA"}]}, "/candidates/0"),
        ({"candidates": THREE, "mask": [True]}, "/mask"),
        ({"candidates": THREE, "mode": "apprentice", "action": 3}, "/action"),
    ],
)
def test_what_candidates_cannot_be(serving, changes, pointer):
    async def story(ask):
        return await ask("POST", DECIDE, {"text": "a cup", **changes})

    told = serving(story, policy=POLICY)
    assert (told.status, told.json["pointer"]) == (422, pointer)


def test_a_policy_has_actions_or_candidates(serving):
    async def story(ask):
        told = [
            await ask("POST", "/v1/policies", {"name": "a"}),
            await ask("POST", "/v1/policies", {"name": "b", "choose": "candidates", "actions": ["x", "y"]}),
            await ask("POST", "/v1/policies/greet/decisions", {"embedding": [0.0] * 4, "candidates": THREE}),
        ]
        return [(t.status, t.json["pointer"]) for t in told]

    assert serving(story) == [(422, "/actions"), (422, "/actions"), (422, "/candidates")]


def test_what_was_learned_of_some_candidates_holds_for_others_that_are_described_alike(serving):
    """A word that is asked for means another word in the description; both are met only through rewards."""
    means = {"cheap": "budget", "quick": "express", "quiet": "silent", "warm": "heated"}
    seen = ["room with a view", "train to the coast", "hotel by the lake", "flight at noon"]
    unseen = ["bus through town", "cabin in the woods", "boat on the river", "flat near the park"]
    rng = np.random.default_rng(0)

    def question(places, **more):
        word, order = rng.choice(list(means)), rng.permutation(list(means.values()))
        candidates = [{"id": w, "description": f"{w} {places[rng.integers(4)]}"} for w in order]
        return {"text": f"something {word} please", "candidates": candidates, **more}, means[word]

    async def share(ask, places, count, **more):
        asked = [question(places, **more) for _ in range(count)]
        told = await ask("POST", f"{DECIDE}/batch", {"decisions": [body for body, _ in asked]})
        made = [
            (d["decision_id"], d["name"] == right) for d, (_, right) in zip(told.json["decisions"], asked, strict=True)
        ]
        return made, float(np.mean([good for _, good in made]))

    async def story(ask):
        _, before = await share(ask, unseen, 200, mode="shadow")
        for _ in range(9):
            made, _ = await share(ask, seen, 64)
            for id, good in made:
                await ask("POST", f"/v1/decisions/{id}/reward", {"value": float(good)})
            await ask.learned("/v1/policies/pick")
        _, after = await share(ask, unseen, 200, mode="shadow", deterministic=True)
        worth = (await ask("POST", "/v1/policies/pick/evaluations", {"version": 9})).json
        return before, after, worth

    before, after, worth = serving(story, policy=POLICY)
    assert before < 0.4
    assert after > 0.7
    assert worth["dr"]["value"] > worth["logged"]["value"]


def test_candidates_are_there_after_a_restart(serving):
    async def before(ask):
        await ask("POST", DECIDE, {"decision_id": "c1", "text": "a cup", "candidates": THREE})

    async def after(ask):
        again = await ask("POST", DECIDE, {"decision_id": "c1", "text": "a cup", "candidates": THREE})
        told = await ask("POST", "/v1/decisions/c1/reward", {"value": 1})
        (made,) = ask.service.policy("pick").pending.finished(0)
        return again.status, told.status, made.record.names, made.record.scene.x.shape

    serving(before, policy=POLICY)
    assert serving(after, policy=POLICY) == (200, 200, ["refund", "replace", "person"], (128,))
