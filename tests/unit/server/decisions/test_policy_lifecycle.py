"""Updates as jobs, versions, checkpoints, evaluation and explanation."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.server import schema

from .service_cases import asked, refused, run


def test_an_update_needs_enough_and_runs_alone(tmp_path):
    async def story(service):
        with refused("conflict"):
            await service.lifecycle.update("greet")
        with refused("unknown"):
            await service.lifecycle.update("nobody")

    run(tmp_path, story)


def test_the_log_says_what_another_version_would_have_earned(tmp_path):
    async def story(service):
        rng = np.random.default_rng(1)
        for i in range(300):
            (made,) = await service.decide("greet", [asked(f"d{i}", embedding=rng.standard_normal(4).tolist())])
            await service.reward(f"d{i}", schema.NewReward(value=float(made.action == 1)))
        await service.lifecycle.finished(await service.lifecycle.update("greet"))
        return await service.lifecycle.evaluate("greet", schema.NewEvaluation(version=0))

    found = run(tmp_path, story)
    assert found.decisions == 300
    assert found.effective_sample_size == pytest.approx(300.0)
    assert found.logged.low < found.dr.value < found.logged.high
    assert not found.enough


def test_a_decision_is_explained(tmp_path):
    async def story(service):
        for i in range(6):
            await service.decide("greet", [asked(f"d{i}", embedding=[1.0, 0.1 * i, 0.0, 0.0])])
            await service.reward(f"d{i}", schema.NewReward(value=0.1 * i))
        return await service.lifecycle.explain("d5")

    told = run(tmp_path, story)
    assert told.reward == pytest.approx(0.5)
    # Nothing is learned yet: one of three actions is right, or none of them.
    assert (told.learned, told.prior) == (0.0, pytest.approx(1 / 4))
    assert [past.decision_id for past in told.nearest] == ["d4", "d3", "d2", "d1", "d0"]
    assert sum(told.distribution) == pytest.approx(1.0)


def test_a_checkpoint_can_be_gone_back_to(tmp_path):
    async def story(service):
        named = await service.lifecycle.checkpoint("greet", schema.NewCheckpoint())
        for i in range(8):
            await service.decide("greet", [asked(f"d{i}")])
            await service.reward(f"d{i}", schema.NewReward(value=0.5 * (i % 2)))
        await service.lifecycle.finished(await service.lifecycle.update("greet"))
        assert service.policy("greet").version == 1
        with refused("unknown"):
            await service.lifecycle.activate_checkpoint("greet-77")
        return (await service.lifecycle.activate_checkpoint(named.checkpoint_id)).version

    assert run(tmp_path, story) == 0


def test_no_client_makes_up_more_than_its_share_of_what_is_learned(tmp_path):
    async def story(service):
        # Nine of ten rewards are of one client, and there are two.
        for i in range(100):
            client = "b" if i % 10 == 0 else "loud"
            await service.decide("greet", [asked(f"d{i}")])
            await service.reward(f"d{i}", schema.NewReward(value=1.0), client=client)
        job = await service.lifecycle.finished(await service.lifecycle.update("greet"))
        return job.result["samples"], job.result["left_out"]

    samples, left_out = run(tmp_path, story)
    assert samples + left_out == 100
    assert samples == pytest.approx(60, abs=2)  # all 10 of b, and half of all rewards of the other
