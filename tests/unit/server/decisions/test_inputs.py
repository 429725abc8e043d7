"""Inputs of decisions as numbers."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.encoders.observed import GivenVectors
from surefoot.server import schema
from surefoot.server.decisions.inputs import Inputs

from .service_cases import asked, new_policy, refused


def inputs(**changes):
    config = new_policy(**changes)
    return Inputs(config, GivenVectors(config.embedding_size))


def test_embeddings_of_length_1_are_unchanged_and_others_are_divided_by_their_mean_length():
    unit = np.array([0.6, 0.8, 0.0, 0.0], np.float32)
    assert inputs().scaled(unit) is unit
    reader = inputs()
    assert np.linalg.norm(reader.scaled(4.0 * unit)) == pytest.approx(1.0)
    # The mean of 4 and 2 is 3: what is longer than usual stays longer.
    assert np.linalg.norm(reader.scaled(2.0 * unit)) == pytest.approx(2 / 3)


def test_features_are_categories_and_numbers_in_deviations():
    reader = inputs(feature_size=32)
    rows = [
        reader.features(schema.NewDecision(features={"age": age, "plan": plan, "new": True}))
        for age, plan in ((20.0, "free"), (40.0, "free"), (1e9, "paid"))
    ]
    assert all(np.abs(row).max() <= 3.0 for row in rows)
    one, two = (reader.features(schema.NewDecision(features={"plan": plan}), observe=False) for plan in ("a", "b"))
    assert np.linalg.norm(one) == pytest.approx(1.0)
    assert not np.array_equal(one, two)


def test_a_policy_without_features_refuses_them(tmp_path):
    from .service_cases import run

    async def story(service):
        with refused("invalid", "/features"):
            await service.decide("greet", [asked(features={"age": 3.0})])

    run(tmp_path, story)


def test_features_alone_are_an_input_and_are_learned_from(tmp_path):
    from .service_cases import run

    async def story(service):
        for i in range(120):
            (made,) = await service.decide("greet", [schema.NewDecision(features={"plan": ["free", "paid"][i % 2]})])
            await service.reward(made.decision_id, schema.NewReward(value=float(made.action == i % 2)))
        new = [schema.NewDecision(features={"plan": plan}, deterministic=True) for plan in ("free", "paid")]
        return [d.action for d in await service.decide("greet", new)]

    assert run(tmp_path, story, feature_size=16, training=schema.TrainingBody()) == [0, 1]
