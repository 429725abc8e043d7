"""Decisions that are made together: which version answers, and what a refused commit leaves."""

from __future__ import annotations

import asyncio

import numpy as np

from surefoot.server import schema
from surefoot.server.http.problems import Refused

from .service_cases import asked, refused, run


def test_a_canary_answers_its_share_and_rollback_takes_it_away(tmp_path):
    async def story(service):
        for i in range(8):
            await service.decide("greet", [asked(f"d{i}")])
            await service.reward(f"d{i}", schema.NewReward(value=0.5 * (i % 2)))
        job = await service.lifecycle.update("greet")
        while service.lifecycle.job(job.job_id).state in ("waiting", "running"):
            await asyncio.sleep(0.05)
        await service.lifecycle.promote("greet", schema.PromotionBody(version=0))
        await service.lifecycle.promote("greet", schema.PromotionBody(version=1, share=0.5))
        made = await service.decide("greet", [asked() for _ in range(60)])
        share = np.mean([d.policy_version == 1 for d in made])
        back = await service.lifecycle.rollback("greet")
        with refused("unknown"):
            await service.lifecycle.promote("greet", schema.PromotionBody(version=9))
        return share, back.version, back.canary

    share, version, canary = run(tmp_path, story)
    assert 0.25 < share < 0.75
    assert (version, canary) == (1, None)


def test_the_likeliest_action_is_not_learned_from(tmp_path):
    async def story(service):
        made = await service.decide("greet", [asked(deterministic=True) for _ in range(5)])
        for each in made:
            await service.reward(each.decision_id, schema.NewReward(value=1.0))
        return {each.action for each in made}, len(service.policy("greet").pending)

    actions, finished = run(tmp_path, story)
    assert (len(actions), finished) == (1, 0)


def test_what_the_disk_refuses_was_never_decided(tmp_path):
    async def story(service):
        submit = service.store.submit

        def broken(rows, then):
            then(Refused("full", "the disk is full"))

        service.store.submit = broken
        with refused("full"):
            await service.decide("greet", [asked("x")])
        assert service.find("x") is None
        service.store.submit = submit
        await service.decide("greet", [asked("x")])
        service.store.submit = broken
        with refused("full"):
            await service.reward("x", schema.NewReward(value=1.0))
        service.store.submit = submit
        return (await service.reward("x", schema.NewReward(value=0.5))).status

    assert run(tmp_path, story) == "stored"
