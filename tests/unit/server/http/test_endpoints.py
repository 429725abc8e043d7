"""The endpoints: decide, reward, learn, look."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from server.conftest import ROW

DECIDE = "/v1/policies/greet/decisions"


def test_the_whole_loop(serving):
    async def story(ask):
        for i in range(8):
            made = await ask("POST", DECIDE, {"decision_id": f"d{i}", "embedding": ROW})
            assert made.status == 200
            told = await ask("POST", f"/v1/decisions/d{i}/reward", {"value": float(made.json["action"] == 1)})
            assert (told.status, told.json["status"]) == (200, "stored")
        job = await ask.learned("/v1/policies/greet")
        policy = (await ask("GET", "/v1/policies/greet")).json
        versions = (await ask("GET", "/v1/policies/greet/versions")).json["versions"]
        listed = (await ask("GET", "/v1/policies")).json
        return job, policy, versions, listed

    job, policy, versions, listed = serving(story)
    assert (job["state"], job["result"]["version"]) == ("done", 1)
    assert (policy["version"], policy["decisions"], policy["rewards"]) == (1, 8, 8)
    assert [v["version"] for v in versions] == [1, 0]
    assert listed == [policy]


def test_an_update_is_in_the_policys_record(serving, tmp_path):
    async def story(ask):
        for i in range(8):
            await ask("POST", DECIDE, {"decision_id": f"d{i}", "embedding": ROW})
            await ask("POST", f"/v1/decisions/d{i}/reward", {"value": 0.5})
        await ask.learned("/v1/policies/greet")

    serving(story)
    lines = [json.loads(x) for x in (tmp_path / "d/policies/greet/telemetry.ndjson").read_text().splitlines()]
    (update,) = [x for x in lines if x["kind"] == "update"]
    assert (update["env_steps"], update["updates"], update["m"]["reward_mean"]) == (8, 1, 0.5)
    assert sum(x for name, x in update["m"].items() if name.startswith("action_share")) == pytest.approx(1.0)


def test_every_choices_probability_takes_a_scope_of_its_own(serving):
    tokens = {"d" * 16: frozenset({"decide"}), "x" * 16: frozenset({"decide", "distribution"})}

    async def story(ask):
        async def status(path, body, token):
            return (await ask("POST", path, body, authorization=f"Bearer {token}")).status

        wish, look = {"embedding": ROW}, "/v1/policies/greet/distribution"
        return [
            await status(look, wish, "d" * 16),
            await status(DECIDE, {**wish, "distribution": True}, "d" * 16),
            await status(f"{DECIDE}/batch", {"decisions": [wish, {**wish, "distribution": True}]}, "d" * 16),
            await status(look, wish, "x" * 16),
            await status(DECIDE, {**wish, "distribution": True}, "x" * 16),
        ]

    assert serving(story, tokens=tokens) == [403, 403, 403, 200, 200]


def test_looking_at_the_distribution_decides_nothing(serving):
    async def story(ask):
        told = (
            await ask("POST", "/v1/policies/greet/distribution", {"embedding": ROW, "mask": [True, False, True]})
        ).json
        return told, ask.service.policy("greet").decision_count

    told, made = serving(story)
    assert made == 0
    assert told["names"] == ["hello", "bye", "wave"]
    assert (told["distribution"][1], sum(told["distribution"])) == (0.0, pytest.approx(1.0))


def test_rewards_answer_as_documented(serving):
    async def story(ask):
        await ask("POST", DECIDE, {"decision_id": "x", "embedding": ROW})

        async def status(id, body):
            return (await ask("POST", f"/v1/decisions/{id}/reward", body)).status

        return [
            await status("nobody", {"value": 1}),
            await status("x", {"value": 2}),
            await status("x", {}),
            await status("x", {"value": 1}),
            await status("x", {"value": 1}),
            await status("x", {"value": 0.5}),
        ]

    assert serving(story) == [404, 422, 422, 200, 200, 409]


def test_many_decisions_are_made_together_or_not_at_all(serving):
    async def story(ask):
        raw = base64.b64encode(np.array(ROW, "<f4").tobytes()).decode()
        good = await ask("POST", f"{DECIDE}/batch", {"decisions": [{"embedding_b64": raw}] * 3})
        bad = await ask("POST", f"{DECIDE}/batch", {"decisions": [{"embedding": ROW}, {"embedding": [1]}]})
        return good, bad, ask.service.policy("greet").decision_count

    good, bad, made = serving(story)
    assert len({d["decision_id"] for d in good.json["decisions"]}) == 3
    assert (bad.status, bad.json["pointer"], made) == (422, "/decisions/1/embedding", 3)
