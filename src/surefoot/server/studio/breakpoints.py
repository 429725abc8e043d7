"""Conditions that pause a run, as a tab gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from surefoot.graph.run.interpreter import Break


def breaks_of(told: Iterable[Mapping[str, Any]]) -> list[Break]:
    """Conditions as the canvas has them: {end, test, limit, key}."""
    return [Break(str(b["end"]), str(b["test"]), float(b["limit"]), str(b.get("key", ""))) for b in told]
