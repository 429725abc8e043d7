"""Versions of a served policy."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.policy.experience_log import Log
from surefoot.errors import CheckpointIncompatible
from surefoot.server import schema
from surefoot.server.decisions.snapshots import restore, snapshot, version_chooser

from .service_cases import asked, run


async def learned(service, count=12):
    for i in range(count):
        await service.decide("greet", [asked(f"d{i}")])
        await service.reward(f"d{i}", schema.NewReward(value=float(i % 2)))
    await service.lifecycle.finished(await service.lifecycle.update("greet"))
    return service.policy("greet")


def test_a_version_has_the_weights_and_not_the_log(tmp_path):
    async def story(service):
        serving = await learned(service)
        return snapshot(serving), version_chooser(serving, 1), serving.learner

    parts, chooser, learner = run(tmp_path, story)
    assert "log" not in parts["chooser"]
    np.testing.assert_array_equal(parts["weights"]["table"], chooser.state()["table"])
    assert (len(chooser.log), len(learner.log)) == (0, 12)


def test_a_version_has_what_a_client_needs_to_evaluate_it(tmp_path):
    async def story(service):
        serving = await learned(service)
        return snapshot(serving)["weights"], serving

    weights, serving = run(tmp_path, story)
    options = serving.agent.options
    assert weights["descriptions"].shape == (len(options), serving.config.embedding_size)
    assert weights["present"].tolist() == [1.0] * len(options)
    # Sharpness, relative, mean and deviation of cosines, length, "none", sharpness and floor of the draw.
    assert weights["settings"].shape == (8,)
    assert weights["settings"][-2:] == pytest.approx([80.0, 0.02])


def test_outcomes_that_were_deleted_are_not_replayed(tmp_path):
    async def story(service):
        serving = await learned(service)
        parts, log = snapshot(serving), Log(serving.learner.dim, serving.learner.config.log)
        restore(serving, parts, log)
        return len(serving.learner.log), serving.learner.outcomes

    assert run(tmp_path, story) == (0, 12)


def test_a_version_of_another_learner_is_refused(tmp_path):
    async def story(service):
        serving = service.policy("greet")
        serving.versions.save(7, {"weights": {"network.module.policy": np.zeros(3)}})
        with pytest.raises(CheckpointIncompatible, match="earlier version"):
            version_chooser(serving, 7)

    run(tmp_path, story)
