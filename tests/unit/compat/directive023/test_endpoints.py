"""Directive-023's eight endpoints over its trainer."""

from __future__ import annotations

import pytest

ROW = [1.0, 0.0, 0.5, -1.0]


def test_the_earlier_systems_endpoints(serving):
    async def story(ask):
        assert (await ask("GET", "/stats")).json == {"message": "No training data yet"}
        assert (await ask("POST", "/update", b"")).json == {"message": "Not enough experiences"}
        for i in range(8):
            row = [0.1 * i, 1.0, 0.0, 0.0]
            made = (await ask("POST", "/select_action", {"embedding": row})).json
            told = {**made, "state": row, "next_state": row, "reward": 0.25 * i, "done": i % 2 == 0}
            del told["mutation_type"], told["decision_id"]
            stored = await ask("POST", "/store_experience", told)
            assert stored.json == {"stored": True, "buffer_size": i + 1}
            assert (await ask("POST", "/store_experience", told)).status == 409
        update = (await ask("POST", "/update", {})).json
        chances = (await ask("POST", "/get_distribution", {"embedding": ROW})).json
        saved = (await ask("POST", "/save", {})).json
        outside = [(await ask("POST", "/save", {"path": p})).status for p in ("../x", "/etc/passwd", "a/b", "", "x\n")]
        loaded = [await ask("POST", "/load", {"path": p}) for p in (saved["path"], "none")]
        missing, bad = await ask("GET", "/other"), await ask("POST", "/select_action", b"{")
        return update, chances, saved, outside, loaded, missing, bad, (await ask("GET", "/stats")).json

    update, chances, saved, outside, loaded, missing, bad, stats = serving(story, compat=True)
    assert (update["buffer_size"], update["update_count"]) == (8, 1)
    assert set(update) == {
        *("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction"),
        *("learning_rate", "buffer_size", "update_count"),
    }
    assert sum(chances["probabilities"]) == pytest.approx(1.0)
    assert len(chances["mutation_types"]) == 5
    assert saved == {"saved": True, "path": "ppo_checkpoint_1"}
    assert outside == [422] * 5
    assert (loaded[0].json, loaded[1].status, loaded[1].json["error"]) == ({"loaded": True}, 404, "File not found")
    assert (missing.status, missing.json["error"]) == (404, "Not found")
    assert (bad.status, bad.json["error"]) == (400, "Invalid JSON")
    # The OpenAPI document promises RFC 9457 problems for every error.
    for response in (missing, bad, loaded[1]):
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json["status"] == response.status
    assert (stats["total_updates"], stats["total_episodes"], stats["max_reward"]) == (1, 4, 1.75)
    assert stats["avg_reward"] == pytest.approx(0.875)


def test_an_experience_of_the_earlier_system_is_bootstrapped_from_its_next_state(serving):
    async def story(ask):
        made = (await ask("POST", "/select_action", {"embedding": ROW})).json
        ahead = [0.0, 2.0, 0.0, 0.0]
        told = {**made, "state": ROW, "next_state": ahead, "reward": 1.0, "done": False}
        await ask("POST", "/store_experience", told)
        (experience,) = ask.app.extension.trainer.buffer
        return experience

    experience = serving(story, compat=True)
    assert experience.next_state.tolist() == [0.0, 2.0, 0.0, 0.0]
    assert (experience.done, experience.reward) == (False, 1.0)


def test_what_was_stored_and_what_waits_is_there_after_a_restart(serving):
    async def before(ask):
        rows = [[float(i), 1.0, 0.0, 0.0] for i in range(9)]
        made = [(await ask("POST", "/select_action", {"embedding": row})).json for row in rows]
        told = [
            {**m, "state": r, "next_state": r, "reward": 1.0, "done": True} for m, r in zip(made, rows, strict=True)
        ]
        for each in told[:8]:
            assert (await ask("POST", "/store_experience", each)).status == 200
        return told[8]

    async def after(ask):
        stored = await ask("POST", "/store_experience", waiting)
        update = await ask("POST", "/update", {})
        return stored.json, update.json["buffer_size"]

    async def learned(ask):
        again = await ask("POST", "/update", {})
        return again.json, ask.app.extension.trainer.learner.updates

    waiting = serving(before, compat=True)
    assert serving(after, compat=True) == ({"stored": True, "buffer_size": 9}, 9)
    assert serving(learned, compat=True) == ({"message": "Not enough experiences"}, 1)
