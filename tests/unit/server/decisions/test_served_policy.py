"""What a decision's body says: embeddings, masks, text, and what cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.server import schema
from surefoot.server.decisions.administration import create

from .service_cases import asked, new_policy, refused, run


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
        assert service.policy("greet").decision_count == 0

    run(tmp_path, story)


def test_text_is_encoded_where_the_policy_has_an_encoder(tmp_path):
    async def story(service):
        with refused("invalid", "/text"):
            await service.decide("greet", [schema.NewDecision(text="hello there")])
        await create(service, new_policy(name="words", encoder="hashing", embedding_size=64))
        return [
            (await service.decide("words", [schema.NewDecision(text=t, distribution=True)]))[0].distribution
            for t in ("hello there", "hello there", "good bye")
        ]

    one, same, other = run(tmp_path, story)
    # Without descriptions nothing is known about any of them.
    assert one == same == other == pytest.approx([1 / 3] * 3)


def test_one_id_asked_in_two_manners_is_refused(tmp_path):
    async def story(service):
        await service.decide("greet", [asked("a", deterministic=True)])
        await service.decide("greet", [asked("a", deterministic=True)])  # a retry
        with refused("conflict"):
            await service.decide("greet", [asked("a", mask=[True, True, False])])

    run(tmp_path, story)
