"""The verbs of the service, without HTTP."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from surefoot.server import schema
from surefoot.server.decisions.administration import create, describe

from .service_cases import Clock, asked, new_policy, refused, run


def test_a_decision_is_made_rewarded_and_learned_from(tmp_path):
    async def story(service):
        rng = np.random.default_rng(0)
        for i in range(32):
            (made,) = await service.decide("greet", [asked(f"d{i}", embedding=rng.standard_normal(4).tolist())])
            assert made.name == ["hello", "bye", "wave"][made.action]
            told = await service.reward(f"d{i}", schema.NewReward(value=float(made.action == 1)))
            assert told.status == "stored"
        job = await service.lifecycle.update("greet")
        while service.lifecycle.job(job.job_id).state in ("waiting", "running"):
            await asyncio.sleep(0.05)
        return (
            service.lifecycle.job(job.job_id),
            describe(service.policy("greet")),
            service.lifecycle.version_list("greet"),
        )

    job, policy, versions = run(tmp_path, story)
    assert (job.state, job.message) == ("done", "")
    assert job.result["samples"] == 32
    assert (policy.version, policy.newest, policy.rewards) == (1, 1, 32)
    assert [v.version for v in versions.versions] == [1, 0]
    assert versions.versions[0].live


def test_the_same_id_is_sampled_once_and_another_question_under_it_refused(tmp_path):
    async def story(service):
        first, again = [(await service.decide("greet", [asked("x")]))[0] for _ in range(2)]
        assert first == again
        with refused("conflict"):
            await service.decide("greet", [asked("x", embedding=[0.0] * 4)])
        return service.policy("greet").decision_count

    assert run(tmp_path, story) == 1


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path):
    async def before(service):
        (made,) = await service.decide("greet", [asked("x")])
        await service.decide("greet", [asked("y")])
        await service.reward("x", schema.NewReward(value=1.0))
        return made

    async def after(service):
        (again,) = await service.decide("greet", [asked("x")])
        told = await service.reward("x", schema.NewReward(value=1.0))
        serving = service.policy("greet")
        return again, told.status, len(serving.pending), serving.waiting

    made = run(tmp_path, before)
    again, status, finished, open_ = run(tmp_path, after)
    assert again == made
    assert status == "replayed"
    assert (finished, open_) == (1, 1)


def test_rewards_come_once_within_their_time_and_range(tmp_path):
    clock = Clock()

    async def story(service):
        await service.decide("greet", [asked("x"), asked("late")])
        with refused("invalid", "/value"):
            await service.reward("x", schema.NewReward(value=7.0))
        await service.reward("x", schema.NewReward(parts={"speed": 0.5, "tone": 0.25}))
        assert (await service.reward("x", schema.NewReward(parts={"speed": 0.5, "tone": 0.25}))).status == "replayed"
        with refused("conflict"):
            await service.reward("x", schema.NewReward(value=0.1))
        with refused("unknown"):
            await service.reward("nobody", schema.NewReward(value=0.1))
        clock.now += 700.0
        with refused("expired"):
            await service.reward("late", schema.NewReward(value=0.1))
        assert service.expire() == 1
        return service.policy("greet").recent

    assert list(run(tmp_path, story, clock)) == [0.75, 0.0]


def test_several_rewards_may_be_summed_or_the_last_may_count(tmp_path):
    clock = Clock()

    async def story(service):
        await service.decide("greet", [asked("x")])
        for value in (0.25, 0.5):
            await service.reward("x", schema.NewReward(value=value))
        clock.now += 700.0
        service.expire()
        while service.decision("x")[1].final is None:  # closed once that is on disk
            await asyncio.sleep(0.01)
        return service.decision("x")[1].final

    assert run(tmp_path / "sum", story, clock, aggregation="sum") == 0.75
    clock.now = 1000.0
    assert run(tmp_path / "last", story, clock, aggregation="last") == 0.5


def test_a_reward_with_an_id_is_added_once(tmp_path):
    clock = Clock()

    async def story(service):
        await service.decide("greet", [asked("x")])
        told = [
            (await service.reward("x", schema.NewReward(value=value, reward_id=id))).status
            for id, value in (("a", 0.25), ("a", 0.25), ("b", 0.25))
        ]
        with refused("conflict"):
            await service.reward("x", schema.NewReward(value=0.5, reward_id="b"))
        clock.now += 700.0
        service.expire()
        while service.decision("x")[1].final is None:  # closed once that is on disk
            await asyncio.sleep(0.01)
        return told, service.decision("x")[1].final

    assert run(tmp_path, story, clock, aggregation="sum") == (["stored", "replayed", "added"], 0.5)


def test_a_deferred_decision_counts_once_it_is_activated(tmp_path):
    async def story(service):
        await service.decide("greet", [asked("x", defer=True)])
        with refused("conflict"):
            await service.reward("x", schema.NewReward(value=1.0))
        await service.activate("x")
        await service.reward("x", schema.NewReward(value=1.0))
        return len(service.policy("greet").pending)

    assert run(tmp_path, story) == 1


def test_a_shadow_decides_and_does_not_count(tmp_path):
    async def story(service):
        await service.decide("greet", [asked("x", mode="shadow")])
        await service.reward("x", schema.NewReward(value=1.0))
        return len(service.policy("greet").pending)

    assert run(tmp_path, story) == 0


def test_steps_of_an_episode_are_learned_from_when_it_is_over(tmp_path):
    async def story(service):
        for i in range(3):
            await service.decide("greet", [asked(f"s{i}", episode="e")])
            await service.reward(f"s{i}", schema.NewReward(value=0.2 * i, terminated=i == 2))
            told = len(service.policy("greet").pending)
            assert told == (3 if i == 2 else 0)
        return service.policy("greet").pending.finished(0)

    steps = run(tmp_path, story)
    # Last first, each with the mean of the rewards from it on.
    assert [each.record.id for each in steps] == ["s2", "s1", "s0"]
    assert [each.reward for each in steps] == pytest.approx([0.4, 0.3, 0.2])
    assert {each.position for each in steps} == {1}


def test_a_policy_is_made_once(tmp_path):
    async def story(service):
        again = await create(service, new_policy())
        with refused("conflict"):
            await create(service, new_policy(actions=["a", "b"]))
        with refused("invalid", "/actions"):
            await create(service, new_policy(name="twice", actions=["a", "a"]))
        with refused("invalid", "/training/settings"):
            await create(service, new_policy(name="odd", training=schema.TrainingBody(settings={"no_such_knob": 1})))
        return again.name

    assert run(tmp_path, story) == "greet"


def test_a_retry_waits_until_the_first_one_is_on_the_disk(tmp_path):
    async def story(service):
        order = []
        submit = service.store.submit

        def slow(rows, then):
            def told(error):
                order.append("committed")
                then(error)

            asyncio.get_running_loop().call_later(0.05, submit, rows, told)

        service.store.submit = slow

        async def one():
            (made,) = await service.decide("greet", [asked("x")])
            order.append("answered")
            return made

        first, again = await asyncio.gather(one(), one())
        return first == again, order

    assert run(tmp_path, story) == (True, ["committed", "answered", "answered"])


def test_an_id_belongs_to_one_policy(tmp_path):
    async def story(service):
        await create(service, new_policy(name="other"))
        await service.decide("greet", [asked("x")])
        with refused("conflict"):
            await service.decide("other", [asked("x")])

    run(tmp_path, story)


def test_what_memory_forgot_the_disk_knows(tmp_path, monkeypatch):
    monkeypatch.setattr("surefoot.server.decisions.service.IN_MEMORY", 3)

    async def story(service):
        first = (await service.decide("greet", [asked("d0")]))[0]
        await service.reward("d0", schema.NewReward(value=1.0))
        for i in range(1, 6):
            await service.decide("greet", [asked(f"d{i}")])
            await service.reward(f"d{i}", schema.NewReward(value=1.0))
        assert "d0" not in service.decisions
        with refused("expired"):
            await service.reward("d0", schema.NewReward(value=0.5))
        return first == (await service.decide("greet", [asked("d0")]))[0]

    assert run(tmp_path, story)
