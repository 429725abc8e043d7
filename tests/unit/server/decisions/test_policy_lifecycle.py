"""Updates as jobs, versions, checkpoints, evaluation and explanation."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.server import schema
from surefoot.server.decisions.policy_lifecycle import excess

from .service_cases import asked, refused, run, told_by


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
    assert (told.learned, told.prior) == (0.0, pytest.approx(told.decision.probability, abs=1e-6))
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


@pytest.mark.parametrize(
    ("counts", "share", "left_out"),
    [
        ({"only": 20}, 0.2, 0),
        ({"loud": 18, "b": 2}, 0.2, 8),
        ({"loud": 16, "b": 1, "c": 1, "d": 1, "e": 1}, 0.2, 12),
        ({"loud": 16, "b": 1, "c": 1, "d": 1, "e": 1}, 1.0, 0),
    ],
)
def test_no_client_makes_up_more_than_its_share_of_an_update(tmp_path, counts, share, left_out):
    async def story(service):
        await told_by(service, counts)
        job = await service.lifecycle.finished(await service.lifecycle.update("greet"))
        again = service.policy("greet")
        return job.result["left_out"], len(again.ledger), again.reward_clients

    training = schema.TrainingBody(automatic=False, least=4, client_share=share)
    assert run(tmp_path, story, training=training) == (left_out, 0, {})


def test_of_a_client_that_told_too_much_the_newest_counts(tmp_path):
    async def story(service):
        await told_by(service, {"loud": 8, "b": 2})
        ready = service.policy("greet").ledger.ready
        return [ready[place][0][0].id for place in sorted(excess(service.policy("greet")))]

    assert run(tmp_path, story) == ["loud-0", "loud-1", "loud-2"]
