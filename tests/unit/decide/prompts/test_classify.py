"""Tests of `surefoot.decide.prompts.classify`."""

from __future__ import annotations

import pytest

from surefoot.decide.prompts.classify import classify

from .mutations_cases import CODE


@pytest.mark.parametrize(
    ("prompt", "category"),
    [
        (CODE, "CODE_GENERATION"),
        ("Review this code for bugs: def f(): pass", "CODE_REVIEW"),
        ("Write a blog article about tea.", "CONTENT_WRITING"),
        ("Write a slogan for our new product campaign.", "MARKETING_COPY"),
        ("Analyze the sales data and draw a chart.", "DATA_ANALYSIS"),
        ("Who wrote Faust?", "GENERAL_QA"),
        ("Write a poem about a lonely character.", "CREATIVE_WRITING"),
        ("Tea.", "GENERAL_QA"),
    ],
)
def test_prompts_are_classified(prompt: str, category: str):
    assert classify(prompt).category == category


def test_without_a_matching_pattern_the_confidence_is_low():
    assert classify("Tea.").confidence == 0.25
