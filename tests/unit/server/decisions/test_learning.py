"""Learning beside the answers: by itself, in versions, and never with weights that are not finite."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from surefoot.server import schema
from surefoot.server.decisions.learning import gap

from .service_cases import asked, run

AUTOMATIC = schema.TrainingBody(every=16)


async def until(condition):
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


async def rewarded(service, count, first=0):
    for i in range(first, first + count):
        row = [0.0] * 4
        row[i % 2] = 1.0
        (made,) = await service.decide("greet", [asked(f"d{i}", embedding=row)])
        await service.reward(f"d{i}", schema.NewReward(value=float(made.action == i % 2)))


def test_it_learns_by_itself_and_saves_versions(tmp_path):
    async def story(service):
        await rewarded(service, 200)
        serving = service.policy("greet")
        # How many depends on the disk: outcomes that arrive during a save count for the next version.
        await until(lambda: not len(serving.pending) and serving.newest >= 3)
        made = [(await service.decide("greet", [asked(embedding=row, deterministic=True)]))[0] for row in np.eye(4)[:2]]
        return serving.learner.outcomes, [each.action for each in made], serving.version == serving.newest

    assert run(tmp_path, story, training=AUTOMATIC) == (200, [0, 1], True)


def test_the_gap_between_versions_grows_with_the_policy(tmp_path):
    async def story(service):
        serving, gaps = service.policy("greet"), list[int]()
        for outcomes in (0, 1000, 20_000, 1_000_000):
            serving.learner.outcomes = outcomes
            gaps.append(gap(serving))
        return gaps

    assert run(tmp_path, story, training=schema.TrainingBody()) == [128, 128, 2000, 5000]


def test_an_older_version_that_somebody_chose_still_decides_after_a_restart(tmp_path):
    async def chosen(service):
        serving = service.policy("greet")
        await rewarded(service, 40)
        await until(lambda: serving.newest >= 2)
        await service.lifecycle.promote("greet", schema.PromotionBody(version=1))
        await rewarded(service, 40, first=40)
        await until(lambda: serving.newest >= 4)

    async def after(service):
        serving = service.policy("greet")
        return serving.version, serving.pinned is not None

    run(tmp_path, chosen, training=AUTOMATIC)
    assert run(tmp_path, after, training=AUTOMATIC) == (1, True)


def test_after_a_restart_it_has_learned_the_same(tmp_path):
    """A service that is stopped between two versions learns what came after the last one again, to the same bits."""

    async def one_by_one(service, first):
        # On a busy machine learning may be behind, and the next decision would see older weights.
        for count in range(first, first + 40):
            await rewarded(service, 1, first=count)
            await until(lambda: service.policy("greet").learner.outcomes == count + 1)  # noqa: B023

    async def half(service):
        await one_by_one(service, 0)

    async def rest(service):
        serving = service.policy("greet")
        await until(lambda: serving.learner.outcomes == 40)
        await one_by_one(service, 40)
        (drawn,) = await service.decide("greet", [asked("last", distribution=True)])
        return serving.learner.state(), serving.agent.calibration.state(), drawn.action, drawn.distribution

    async def whole(service):
        await half(service)
        return await rest(service)

    run(tmp_path / "twice", half, training=AUTOMATIC)
    twice, once = run(tmp_path / "twice", rest, training=AUTOMATIC), run(tmp_path / "once", whole, training=AUTOMATIC)
    np.testing.assert_array_equal(twice[0]["table"], once[0]["table"])
    np.testing.assert_array_equal(twice[0]["log"]["columns"]["reward"][:80], once[0]["log"]["columns"]["reward"][:80])
    assert twice[0]["generator"] == once[0]["generator"]
    assert twice[1:] == once[1:]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_weights_that_are_not_finite_never_answer(tmp_path):
    async def story(service):
        serving = service.policy("greet")
        await rewarded(service, 20)
        await until(lambda: serving.newest >= 1)
        learn = serving.learner.learn

        def broken(episodes):
            learn(episodes)
            serving.learner._now.table[:] = np.nan

        serving.learner.learn = broken
        await rewarded(service, 1, first=20)
        await until(lambda: not len(serving.pending))
        serving.learner.learn = learn
        (made,) = await service.decide("greet", [asked(distribution=True)])
        return bool(np.isfinite(serving.learner.state()["table"]).all()), sum(made.distribution)

    assert run(tmp_path, story, training=AUTOMATIC) == (True, pytest.approx(1.0))


def test_a_frozen_policy_decides_and_does_not_learn(tmp_path):
    from surefoot.server.decisions.administration import change

    async def story(service):
        await change(service, "greet", schema.PolicyChange(frozen=True))
        await rewarded(service, 20)
        serving = service.policy("greet")
        frozen = serving.learner.outcomes, len(serving.pending)
        await change(service, "greet", schema.PolicyChange(frozen=False))
        await rewarded(service, 5, first=20)
        await until(lambda: serving.learner.outcomes == 5)
        return frozen

    assert run(tmp_path, story, training=AUTOMATIC) == (0, 0)


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
