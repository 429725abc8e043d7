"""Shared data of the tests of the environment."""

from __future__ import annotations

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.prompts.scorers import FeatureScorer
from surefoot.decide.prompts.world import PromptConfig, PromptWorld

PROMPTS = [
    "Write a Python function that sorts a list.",
    "Tell me about bees and then about wasps in the garden.",
    "Why?",
]


def a_world(n: int = 2, **config: float) -> PromptWorld:
    return PromptWorld(PROMPTS, FeatureScorer(), HashingEncoder(16), n, PromptConfig(**config), in_order=True)
