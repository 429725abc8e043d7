"""What is there after a restart."""

from __future__ import annotations

import pytest

from surefoot.data.journal import Entry, Journal
from surefoot.errors import ConfigError
from surefoot.server import schema
from surefoot.server.decisions.administration import change, describe

from .service_cases import Clock, asked, run


def test_a_policy_of_an_earlier_version_is_refused_with_a_sentence(tmp_path):
    tmp_path.mkdir(exist_ok=True)
    with Journal(tmp_path / "decisions.sqlite") as journal:
        journal.put(Entry(kind="policy", id="greet", body={"name": "greet", "actions": ["a", "b"]}))

    async def story(service):
        return None

    with pytest.raises(ConfigError, match="made by an earlier version of surefoot.*--data-dir"):
        run(tmp_path, story)


def test_changes_of_a_policy_are_there_after_a_restart(tmp_path):
    async def before(service):
        await change(
            service, "greet", schema.PolicyChange(add_actions=["nod"], retire_actions=["bye"], abstain_below=0.1)
        )
        return describe(service.policy("greet"))

    async def after(service):
        return describe(service.policy("greet"))

    one, two = run(tmp_path, before), run(tmp_path, after)
    assert one == two
    assert (two.actions, two.retired) == (["hello", "bye", "wave", "nod"], ["bye"])


def test_an_outcome_by_default_is_learned_once(tmp_path):
    clock, training = Clock(), schema.TrainingBody()

    async def before(service):
        await service.decide("greet", [asked("x"), asked("y")])
        await service.reward("x", schema.NewReward(value=1.0))
        clock.now += 700.0
        service.expire()

    async def after(service):
        serving = service.policy("greet")
        while len(serving.pending):
            import asyncio

            await asyncio.sleep(0.01)
        return serving.learner.outcomes, serving.waiting, list(serving.recent)

    run(tmp_path, before, clock, training=training)
    assert run(tmp_path, after, clock, training=training) == (2, 0, [1.0, 0.0])


def test_steps_of_an_open_episode_wait_for_its_end(tmp_path):
    async def before(service):
        await service.decide("greet", [asked("a", episode="e"), asked("b", episode="e")])
        await service.reward("a", schema.NewReward(value=0.0, terminated=False))

    async def after(service):
        await service.reward("b", schema.NewReward(value=1.0))
        return [(each.record.id, each.reward) for each in service.policy("greet").pending.finished(0)]

    run(tmp_path, before)
    assert run(tmp_path, after) == [("b", 1.0), ("a", 0.5)]
