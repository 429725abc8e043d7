"""The record of a served policy."""

from __future__ import annotations

import json

from surefoot.server import schema

from .service_cases import asked, run


def test_every_version_is_a_line_with_rewards_and_shares(tmp_path):
    async def story(service):
        for i in range(20):
            (made,) = await service.decide("greet", [asked(f"d{i}")])
            await service.reward(f"d{i}", schema.NewReward(value=float(made.action == 1)))
        await service.lifecycle.finished(await service.lifecycle.update("greet"))

    run(tmp_path, story)
    lines = (tmp_path / "policies/greet/telemetry.ndjson").read_text().splitlines()
    (update,) = [line for line in map(json.loads, lines) if line["kind"] == "update"]
    assert (update["updates"], update["env_steps"]) == (1, 20)
    shares = {name: value for name, value in update["m"].items() if name.startswith("action_share_")}
    assert sum(shares.values()) == 1.0
    assert update["m"]["reward_mean"] == shares["action_share_bye"]
