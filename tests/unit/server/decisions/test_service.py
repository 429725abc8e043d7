"""The verbs of the service, without HTTP."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import torch

from surefoot.server import schema
from surefoot.server.decisions.learning_process import answer, save
from surefoot.server.decisions.policy_lifecycle import Steward, excess
from surefoot.server.decisions.service import Service
from surefoot.server.http.problems import Refused


def new_policy(**changes):
    known = {"name": "greet", "actions": ["hello", "bye", "wave"], "embedding_size": 4}
    training = schema.TrainingBody(automatic=False, least=4)
    return schema.NewPolicy(**{**known, "training": training, **changes})


def asked(id=None, **changes):
    known = {"embedding": [1.0, 0.0, 0.5, -1.0]}
    return schema.NewDecision(**({} if id is None else {"decision_id": id}), **{**known, **changes})


class Inline:
    """Learns in this process: the same code, without the time it takes to start another one."""

    def __init__(self, root):
        self.root, self.learners = root, {}

    def ask(self, recipe, rollout):
        return answer(self.learners, recipe, rollout, self.root / recipe.name)

    def close(self):
        self.learners.clear()


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def run(tmp_path, story, clock=None, **policy):
    """One service from start to end, with a policy in it."""

    async def whole():
        service = Service(tmp_path, clock=clock or Clock(), seed=0, pupil=Inline(tmp_path / "policies"))
        service.steward = Steward(service)
        await service.start()
        try:
            if "greet" not in service.policies:
                await service.create(new_policy(**policy))
            return await story(service)
        finally:
            await service.close()

    return asyncio.run(whole())


def refused(kind, pointer=None):
    class Catch:
        def __enter__(self):
            return self

        def __exit__(self, type_, error, trace):
            assert isinstance(error, Refused), f"nothing was refused: {error}"
            assert error.kind == kind, f"{error.kind}: {error.detail}"
            assert pointer is None or error.pointer == pointer
            return True

    return Catch()


def test_a_decision_is_made_rewarded_and_learned_from(tmp_path):
    async def story(service):
        rng = np.random.default_rng(0)
        for i in range(32):
            (made,) = await service.decide("greet", [asked(f"d{i}", embedding=rng.standard_normal(4).tolist())])
            assert made.name == ["hello", "bye", "wave"][made.action]
            told = await service.reward(f"d{i}", schema.NewReward(value=float(made.action == 1)))
            assert told.status == "stored"
        job = await service.steward.update("greet")
        while service.steward.job(job.job_id).state in ("waiting", "running"):
            await asyncio.sleep(0.05)
        return (
            service.steward.job(job.job_id),
            service.describe(service.policy("greet")),
            service.steward.version_list("greet"),
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
        return service.policy("greet").made

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
        return again, told.status, len(serving.ledger), serving.ledger.waiting

    made = run(tmp_path, before)
    again, status, finished, open_ = run(tmp_path, after)
    assert again == made
    assert status == "replayed"
    assert (finished, open_) == (1, 1)


def test_base64_is_the_same_as_numbers(tmp_path):
    row = np.array([0.25, -1.5, 3.0, 0.0], np.float32)

    async def story(service):
        (one,) = await service.decide("greet", [asked("a", embedding=row.tolist(), distribution=True)])
        sent = schema.NewDecision(decision_id="b", embedding_b64=row.tobytes(), distribution=True)
        (two,) = await service.decide("greet", [sent])
        return one.distribution, two.distribution

    one, two = run(tmp_path, story)
    assert one == two
    assert sum(one) == pytest.approx(1.0)


def test_a_mask_is_kept_to(tmp_path):
    async def story(service):
        made = await service.decide("greet", [asked(mask=[False, True, False], distribution=True) for _ in range(20)])
        return {d.action for d in made}, made[0].distribution

    actions, chances = run(tmp_path, story)
    assert actions == {1}
    assert chances == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"embedding": [1.0]}, "/embedding"),
        ({"embedding": [1.0, 2.0, float("nan"), 0.0]}, "/embedding/2"),
        ({"mask": [True]}, "/mask"),
        ({"mask": [False] * 3}, "/mask"),
        ({"mode": "apprentice"}, "/action"),
        ({"mode": "apprentice", "action": 7}, "/action"),
        ({"embedding_b64": b"abc"}, "/"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path, changes, pointer):
    async def story(service):
        with refused("invalid", pointer):
            await service.decide("greet", [asked(**changes)])
        assert service.policy("greet").made == 0

    run(tmp_path, story)


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
        return told, service.decision("x")[1].final

    assert run(tmp_path, story, clock, aggregation="sum") == (["stored", "replayed", "added"], 0.5)


def test_a_deferred_decision_counts_once_it_is_activated(tmp_path):
    async def story(service):
        await service.decide("greet", [asked("x", defer=True)])
        with refused("conflict"):
            await service.reward("x", schema.NewReward(value=1.0))
        await service.activate("x")
        await service.reward("x", schema.NewReward(value=1.0))
        return len(service.policy("greet").ledger)

    assert run(tmp_path, story) == 1


def test_a_shadow_decides_and_does_not_count(tmp_path):
    async def story(service):
        await service.decide("greet", [asked("x", mode="shadow")])
        await service.reward("x", schema.NewReward(value=1.0))
        return len(service.policy("greet").ledger)

    assert run(tmp_path, story) == 0


def test_steps_of_an_episode_are_learned_from_when_it_is_over(tmp_path):
    async def story(service):
        for i in range(3):
            await service.decide("greet", [asked(f"s{i}", episode="e")])
            await service.reward(f"s{i}", schema.NewReward(value=0.1, terminated=i == 2))
            told = len(service.policy("greet").ledger)
            assert told == (3 if i == 2 else 0)
        return service.policy("greet").ledger.drain()

    rollout = run(tmp_path, story)
    assert rollout.reward.shape == (3, 1)
    assert rollout.terminated[:, 0].tolist() == [False, False, True]


def test_a_canary_answers_its_share_and_rollback_takes_it_away(tmp_path):
    async def story(service):
        for i in range(8):
            await service.decide("greet", [asked(f"d{i}")])
            await service.reward(f"d{i}", schema.NewReward(value=0.5 * (i % 2)))
        job = await service.steward.update("greet")
        while service.steward.job(job.job_id).state in ("waiting", "running"):
            await asyncio.sleep(0.05)
        await service.steward.promote("greet", schema.PromotionBody(version=0))
        await service.steward.promote("greet", schema.PromotionBody(version=1, share=0.5))
        made = await service.decide("greet", [asked() for _ in range(60)])
        share = np.mean([d.policy_version == 1 for d in made])
        back = await service.steward.rollback("greet")
        with refused("unknown"):
            await service.steward.promote("greet", schema.PromotionBody(version=9))
        return share, back.version, back.canary

    share, version, canary = run(tmp_path, story)
    assert 0.25 < share < 0.75
    assert (version, canary) == (1, None)


def test_an_update_needs_enough_and_runs_alone(tmp_path):
    async def story(service):
        with refused("conflict"):
            await service.steward.update("greet")
        with refused("unknown"):
            await service.steward.update("nobody")

    run(tmp_path, story)


def test_the_log_says_what_another_version_would_have_earned(tmp_path):
    async def story(service):
        rng = np.random.default_rng(1)
        for i in range(300):
            (made,) = await service.decide("greet", [asked(f"d{i}", embedding=rng.standard_normal(4).tolist())])
            await service.reward(f"d{i}", schema.NewReward(value=float(made.action == 1)))
        return await service.steward.evaluate("greet", schema.NewEvaluation(version=0))

    found = run(tmp_path, story)
    assert found.decisions == 300
    assert found.effective_sample_size == pytest.approx(300.0)
    assert found.logged.low < found.dr.value < found.logged.high
    assert not found.enough


def test_a_policy_is_made_once(tmp_path):
    async def story(service):
        again = await service.create(new_policy())
        with refused("conflict"):
            await service.create(new_policy(actions=["a", "b"]))
        with refused("invalid", "/actions"):
            await service.create(new_policy(name="twice", actions=["a", "a"]))
        with refused("invalid", "/training/settings"):
            await service.create(new_policy(name="odd", training=schema.TrainingBody(settings={"no_such_knob": 1})))
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


def test_an_id_belongs_to_one_policy(tmp_path):
    async def story(service):
        await service.create(new_policy(name="other"))
        await service.decide("greet", [asked("x")])
        with refused("conflict"):
            await service.decide("other", [asked("x")])

    run(tmp_path, story)


def test_what_memory_forgot_the_disk_knows(tmp_path, monkeypatch):
    monkeypatch.setattr("surefoot.server.decisions.service.KEPT", 3)

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


def test_text_is_encoded_where_the_policy_has_an_encoder(tmp_path):
    async def story(service):
        with refused("invalid", "/text"):
            await service.decide("greet", [schema.NewDecision(text="hello there")])
        await service.create(new_policy(name="words", encoder="hashing", embedding_size=64))
        return [
            (await service.decide("words", [schema.NewDecision(text=t, distribution=True)]))[0].distribution
            for t in ("hello there", "hello there", "good bye")
        ]

    one, same, other = run(tmp_path, story)
    assert one == same
    assert one != other


def test_a_decision_is_explained(tmp_path):
    async def story(service):
        for i in range(6):
            await service.decide("greet", [asked(f"d{i}", embedding=[1.0, 0.1 * i, 0.0, 0.0])])
            await service.reward(f"d{i}", schema.NewReward(value=0.1 * i))
        return await service.steward.explain("d5")

    told = run(tmp_path, story)
    assert told.reward == pytest.approx(0.5)
    assert (told.learned, told.prior) == (0.0, pytest.approx(told.decision.probability, abs=1e-6))
    assert [past.decision_id for past in told.nearest] == ["d4", "d3", "d2", "d1", "d0"]
    assert sum(told.distribution) == pytest.approx(1.0)


def test_a_checkpoint_can_be_gone_back_to(tmp_path):
    async def story(service):
        named = await service.steward.checkpoint("greet", schema.NewCheckpoint())
        for i in range(8):
            await service.decide("greet", [asked(f"d{i}")])
            await service.reward(f"d{i}", schema.NewReward(value=0.5 * (i % 2)))
        await service.steward.finished(await service.steward.update("greet"))
        assert service.policy("greet").version == 1
        with refused("unknown"):
            await service.steward.activate_checkpoint("greet-77")
        return (await service.steward.activate_checkpoint(named.checkpoint_id)).version

    assert run(tmp_path, story) == 0


def test_the_likeliest_action_is_not_learned_from(tmp_path):
    async def story(service):
        made = await service.decide("greet", [asked(deterministic=True) for _ in range(5)])
        for each in made:
            await service.reward(each.decision_id, schema.NewReward(value=1.0))
        return {each.action for each in made}, len(service.policy("greet").ledger)

    actions, finished = run(tmp_path, story)
    assert (len(actions), finished) == (1, 0)


def told_by(service, counts):
    """Decides and rewards, so many for each client, those of the first client first."""

    async def tell():
        for client, count in counts.items():
            for i in range(count):
                await service.decide("greet", [asked(f"{client}-{i}")])
                await service.reward(f"{client}-{i}", schema.NewReward(value=1.0), client=client)

    return tell()


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
        job = await service.steward.finished(await service.steward.update("greet"))
        again = service.policy("greet")
        return job.result["left_out"], len(again.ledger), again.tellers

    training = schema.TrainingBody(automatic=False, least=4, client_share=share)
    assert run(tmp_path, story, training=training) == (left_out, 0, {})


def test_of_a_client_that_told_too_much_the_newest_counts(tmp_path):
    async def story(service):
        await told_by(service, {"loud": 8, "b": 2})
        ready = service.policy("greet").ledger.ready
        return [ready[place][0][0].id for place in sorted(excess(service.policy("greet")))]

    assert run(tmp_path, story) == ["loud-0", "loud-1", "loud-2"]


def test_weights_that_are_not_finite_never_answer(tmp_path):
    async def story(service):
        await told_by(service, {"a": 8})
        before = service.policy("greet").network
        learn = service.apprentice.ask

        def poisoned(recipe, rollout):
            told = learn(recipe, rollout)
            learner = service.apprentice.learners["greet"]
            with torch.no_grad():
                next(iter(learner.policy.parameters()))[0, 0] = float("nan")
            save(learner, service.directory / "policies/greet", {})
            return told

        service.apprentice.ask = poisoned
        job = await service.steward.finished(await service.steward.update("greet"))
        (made,) = await service.decide("greet", [asked("after")])
        return job.state, job.message, service.policy("greet").network is before, made.policy_version

    state, message, same, version = run(tmp_path, story)
    assert (state, same, version) == ("failed", True, 0)
    assert "NaN or infinity" in message
