"""Shared data of the tests of the scorers."""

from __future__ import annotations

PROMPTS = [
    "Write a Python function that sorts a list.",
    "Write a typed Python function that sorts a list, with unit tests for edge cases such as an empty list.",
    "Tell me about bees.",
    "What is the capital of France? Answer in one sentence and name a source.",
    "Write a poem.",
    "Write a poem in the voice of a lonely narrator, with a vivid scene and a surprising metaphor.",
    "Analyze the data.",
    "Analyze the sales data of 2024 by month, name the method, show a chart and give three insights.",
] * 3
