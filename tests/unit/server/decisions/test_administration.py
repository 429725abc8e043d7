"""Policies as a whole: create, describe, change, delete."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from surefoot.server import schema
from surefoot.server.decisions.administration import change, create, delete, describe

from .service_cases import asked, new_policy, refused, run

Change = schema.PolicyChange


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"descriptions": {"hello": "say hello"}}, "/descriptions"),
        ({"description_embeddings": {"nobody": [0.0] * 4}}, "/description_embeddings"),
        ({"description_embeddings": {"hello": [0.0] * 3}}, "/description_embeddings"),
        ({"training": schema.TrainingBody(settings={"lr": 1e30})}, "/training/settings"),
        ({"training": schema.TrainingBody(settings={"no_such_knob": 1.0})}, "/training/settings"),
        ({"actions": [f"a{i}" for i in range(1000)], "embedding_size": 65_536}, "/embedding_size"),
        ({"reward_range": (1.0, 0.0)}, "/reward_range"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_their_place(tmp_path, changes, pointer):
    async def story(service):
        with refused("invalid", pointer):
            await create(service, new_policy(name="odd", **changes))

    run(tmp_path, story)


def test_the_action_with_the_nearest_description_is_likeliest_at_first(tmp_path):
    rows = np.eye(4, dtype=np.float32)
    described = {"hello": rows[0].tolist(), "bye": rows[1].tolist(), "wave": rows[2].tolist()}

    async def story(service):
        made = [
            (await service.decide("greet", [asked(embedding=rows[k].tolist(), distribution=True)]))[0] for k in range(3)
        ]
        return [int(np.argmax(each.distribution)) for each in made]

    assert run(tmp_path, story, description_embeddings=described) == [0, 1, 2]


def test_actions_are_added_retired_and_used_again(tmp_path):
    async def story(service):
        for i in range(40):
            (made,) = await service.decide("greet", [asked(f"d{i}")])
            await service.reward(f"d{i}", schema.NewReward(value=float(made.name == "bye")))
        before = (await service.decide("greet", [asked(distribution=True)]))[0].distribution
        await change(service, "greet", Change(add_actions=["nod"]))
        added = (await service.decide("greet", [asked(distribution=True)]))[0].distribution
        await change(service, "greet", Change(retire_actions=["bye"]))
        names = {d.name for d in await service.decide("greet", [asked() for _ in range(30)])}
        with refused("invalid", "/retire_actions"):
            await change(service, "greet", Change(retire_actions=["bye"]))
        with refused("invalid", "/retire_actions"):
            await change(service, "greet", Change(retire_actions=["hello", "wave"]))
        await change(service, "greet", Change(add_actions=["bye"]))
        again = (await service.decide("greet", [asked(distribution=True)]))[0].distribution
        return before, added, names, again

    before, added, names, again = run(tmp_path, story, training=schema.TrainingBody())
    assert before[1] > 0.9
    assert added[1] > 0.9  # the new one costs what was learned nothing
    assert names <= {"hello", "wave", "nod"}
    assert again[1] > 0.9
    assert len(again) == 4


def test_a_renamed_policy_keeps_its_decisions_and_its_old_name_is_free(tmp_path):
    async def before(service):
        await service.decide("greet", [asked("x")])
        await change(service, "greet", Change(name="salute"))
        with refused("unknown"):
            service.policy("greet")
        await service.reward("x", schema.NewReward(value=1.0))
        await create(service, new_policy(embedding_size=7))
        with refused("conflict", "/name"):
            await change(service, "salute", Change(name="greet"))

    async def after(service):
        found = {name: describe(serving) for name, serving in service.policies.items()}
        return {name: (each.decisions, each.rewards, each.embedding_size) for name, each in found.items()}

    run(tmp_path, before)
    assert run(tmp_path, after) == {"salute": (1, 1, 4), "greet": (0, 0, 7)}


def test_a_deleted_policy_leaves_nothing(tmp_path):
    async def before(service):
        await create(service, new_policy(name="other"))
        await service.decide("other", [asked("kept")])
        await service.decide("greet", [asked(f"d{i}") for i in range(20)])
        await service.reward("d0", schema.NewReward(value=1.0))
        deleted = await delete(service, "greet")
        with refused("unknown"):
            await service.reward("d1", schema.NewReward(value=1.0))
        tags = {entry.tag for kind in ("decision", "reward") for entry in service.store.journal.scan(kind)}
        return deleted.decisions, tags, (tmp_path / "policies/greet").exists()

    assert run(tmp_path, before) == (20, {"other"}, False)

    async def after(service):
        return sorted(service.policies), service.policy("greet").decision_count

    assert run(tmp_path, after) == (["greet", "other"], 0)  # `run` makes a new one


def test_a_policy_is_there_at_once_while_another_one_learns(tmp_path):
    async def story(service):
        await service.decide("greet", [asked(f"d{i}") for i in range(1000)])
        rewards = [service.reward(f"d{i}", schema.NewReward(value=1.0)) for i in range(1000)]
        learning = asyncio.gather(*rewards)
        await asyncio.sleep(0)
        begin = asyncio.get_running_loop().time()
        await create(service, new_policy(name="other"))
        seconds = asyncio.get_running_loop().time() - begin
        await learning
        return seconds

    assert run(tmp_path, story, training=schema.TrainingBody()) < 5.0
