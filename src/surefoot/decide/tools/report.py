"""Rows for a summary, from a trial's log or from an agent's reflected episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surefoot.decide.evaluation.trial import LOG, decisions_of
from surefoot.decide.tools.reflection import ReflectionBuffer
from surefoot.errors import RunNotFound


def rows_in(directory: Path) -> list[dict[str, Any]]:
    """chosen, reward (0 … 1), probability, confidence; right and nearest where they are known."""
    if (directory / LOG).exists():
        return decisions_of(directory)
    if not (directory / "reflections.sqlite").exists():
        raise RunNotFound(f"{directory} holds neither a trial nor an agent's episodes")
    buffer = ReflectionBuffer(capacity=10**9, persist_path=directory)
    rows = [episode_row(entry.body) for entry in buffer.journal.scan("episode")]
    buffer.close()
    return rows


def episode_row(body: dict[str, Any]) -> dict[str, Any]:
    woven = body["spacetime"]
    decision = woven["decision"] or {}
    return {
        "text": woven["query_text"],
        "chosen": woven["tool_used"],
        "right": body["feedback"].get("right"),
        "reward": float(body["reward"]),
        "probability": float(decision.get("probability", 1.0)),
        "confidence": float(woven["trace"]["tool_confidence"]),
    }
