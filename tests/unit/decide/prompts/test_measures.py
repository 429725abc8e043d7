"""Tests of `surefoot.decide.prompts.measures`."""

from __future__ import annotations

from surefoot.decide.prompts.measures import NAMES, measures

from .scorers_cases import PROMPTS


def test_every_measure_is_between_0_and_1():
    for prompt in [*PROMPTS, "", "?", "x" * 4000]:
        values = measures(prompt)
        assert tuple(values) == NAMES
        assert all(0.0 <= x <= 1.0 for x in values.values())


def test_each_general_measure_rises_with_what_it_measures():
    plain = measures("Tell me about bees.")
    for name, prompt in {
        "specific": 'Tell me at least 3 facts about "Apis mellifera", without jokes.',
        "complete": "Context: a school. Give an example, list the criteria, answer with a table.",
        "robust": "Tell me about bees. If you are unsure, say so.",
        "ordered": "First name the parts, then draw them, finally label them.",
    }.items():
        assert measures(prompt)[name] > plain[name], name
    assert plain["clear"] > measures("Tell me some really good stuff about things, maybe.")["clear"]
    assert plain["brief"] > measures("Tell me about bees. " * 20)["brief"]
