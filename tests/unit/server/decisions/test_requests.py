"""Requests, and the stored form of decisions."""

from __future__ import annotations

import numpy as np

from surefoot.server import schema
from surefoot.server.decisions.requests import chances_of, read_decision

from .service_cases import asked, run


def test_what_is_read_back_is_what_was_decided(tmp_path):
    async def story(service):
        (made,) = await service.decide("greet", [asked("x", mask=[True, False, True])])
        serving = service.policy("greet")
        record, answer = read_decision(service.store.journal.get("decision", "x"), serving)
        return made, answer, record, service.decisions["x"].record

    made, answer, record, live = run(tmp_path, story)
    assert answer == made
    assert record.names == live.names == ["hello", "wave"]
    for part in ("x", "option", "cosine"):
        np.testing.assert_array_equal(getattr(record.scene, part), getattr(live.scene, part))
    assert (record.choice.at, record.choice.probability) == (live.choice.at, live.choice.probability)


def test_a_look_at_the_distribution_changes_nothing(tmp_path):
    async def story(service):
        serving = service.policy("greet")
        generator = serving.agent._generator.bit_generator
        before = serving.inputs.state(), serving.agent.cosines.state(), generator.state
        chances = chances_of(serving, asked())
        after = serving.inputs.state(), serving.agent.cosines.state(), generator.state
        return before == after, sum(chances.distribution)

    unchanged, total = run(tmp_path, story)
    assert unchanged
    assert abs(total - 1.0) < 1e-9


def test_none_of_these_is_answered_as_nothing(tmp_path):
    async def story(service):
        (made,) = await service.decide("greet", [asked("x")])
        return made, service.policy("greet").waiting

    # Three actions of which nothing is known: each succeeds in a quarter of the cases.
    made, waiting = run(tmp_path, story, abstain_below=0.3)
    assert (made.abstained, made.action, made.name, waiting) == (True, None, None, 0)
    assert made.confidence < 0.3
    assert isinstance(made, schema.DecisionResponse)
