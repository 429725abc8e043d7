"""What the tests that were split from test_mutations.py share."""

from __future__ import annotations

CODE = "Write a Python function that sorts a list of numbers."
