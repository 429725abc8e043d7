"""Tests of `surefoot.decide.prompts.variation`."""

from __future__ import annotations

from surefoot.decide.prompts.variation import Impact, variation


def test_a_variation_records_both_lengths_and_has_the_typescript_names():
    result = variation("ab", "abcd", "expansion", "adds cd", Impact(cost="increase"), sections=["cd"])
    assert result.to_json() == {
        "text": "abcd",
        "mutationType": "expansion",
        "changeDescription": "adds cd",
        "expectedImpact": {"quality": "neutral", "cost": "increase", "latency": "neutral", "reliability": "neutral"},
        "metadata": {"originalLength": 2, "newLength": 4, "sections": ["cd"]},
    }
