"""Prompts for the tests of the mutations."""

from __future__ import annotations

CODE = "Write a Python function that sorts a list of numbers."
LONG = (
    "Hello there! I would like you to write an essay about bees. As you know, bees are really important. "
    "In other words, without bees there is no honey. The essay must have 300 words."
)
