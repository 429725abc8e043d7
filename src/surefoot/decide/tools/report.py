"""Rows for a summary, from a trial's log or from an agent's runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surefoot.decide.evaluation.trial import LOG, decisions_of
from surefoot.decide.tools.run_log import FILE, LoggedRun, RunLog
from surefoot.errors import RunNotFound


def rows_in(directory: Path) -> list[dict[str, Any]]:
    """Return chosen, reward (0 … 1), probability, confidence; right and nearest where they are known."""
    if (directory / LOG).exists():
        return decisions_of(directory)
    if not (directory / FILE).exists():
        raise RunNotFound(f"{directory} holds neither a trial nor an agent's episodes")
    runs = RunLog(directory, capacity=10**9)
    rows = [report_row(logged) for logged in runs.recent(10**9)]
    runs.close()
    return rows


def report_row(logged: LoggedRun) -> dict[str, Any]:
    run = logged.run
    return {
        "text": run.query,
        "chosen": run.tool,
        "right": logged.feedback.get("right"),
        "reward": float(logged.reward),
        "probability": 1.0 if run.decision is None else run.decision.probability,
        "confidence": float(run.trace.tool_confidence),
    }
