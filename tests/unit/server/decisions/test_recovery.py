"""What is there after a restart."""

from __future__ import annotations

import asyncio

import pytest

from surefoot.data.journal import Entry, Journal
from surefoot.errors import ConfigError
from surefoot.server import schema
from surefoot.server.decisions.administration import change, describe
from surefoot.server.decisions.learning import save_version

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


def _stopped_while_saving(tmp_path, then=None):
    """A service with one learned version that is stopped after the files of the next one were written."""

    async def before(service):
        serving = service.policy("greet")
        await save_version(service, serving)
        never = asyncio.get_running_loop().create_future()
        service.store.write = lambda entry: never if entry.kind == "version" else None
        saving = asyncio.ensure_future(save_version(service, serving))
        while serving.versions.numbers[-1] < 2:
            await asyncio.sleep(0.01)
        if then is not None:
            await then(service)
        saving.cancel()
        return serving.versions.live, serving.versions.numbers

    async def after(service):
        serving = service.policy("greet")
        return serving.version, serving.newest, serving.pinned is not None, serving.versions.live

    return run(tmp_path, before), run(tmp_path, after)


def test_a_version_whose_saving_was_interrupted_decides_after_the_restart(tmp_path):
    """The policy learns on from it; it would otherwise decide with the version before for ever, as if that was promoted."""
    assert _stopped_while_saving(tmp_path) == ((1, [0, 1, 2]), (2, 2, False, 2))


def test_an_older_version_that_was_promoted_meanwhile_still_decides_after_the_restart(tmp_path):
    async def promote(service):
        await service.lifecycle.promote("greet", schema.PromotionBody(version=0))

    assert _stopped_while_saving(tmp_path, promote) == ((0, [0, 1, 2]), (0, 2, True, 0))


def test_the_version_before_the_newest_still_decides_after_a_restart_if_it_was_promoted(tmp_path):
    async def before(service):
        for _ in range(2):
            await save_version(service, service.policy("greet"))
        await service.lifecycle.promote("greet", schema.PromotionBody(version=1))

    async def after(service):
        return service.policy("greet").version, service.policy("greet").pinned is not None

    run(tmp_path, before)
    assert run(tmp_path, after) == (1, True)
