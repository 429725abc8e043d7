"""A run as one row of a table."""

from __future__ import annotations

from typing import Any

from surefoot.errors import RunLocked, SurefootError
from surefoot.learn.checkpoint.atomic_files import RunLock
from surefoot.telemetry.reader import read_records
from surefoot.telemetry.schema import EndRecord, EvaluationRecord, FindingRecord, HeaderRecord, UpdateRecord
from surefoot.train.rundir.rundir import RunDir


def row_of(run: RunDir) -> dict[str, Any]:
    """Return a run as one row; its state follows from the last lines of its record."""
    row: dict[str, Any] = {
        "run": run.name,
        "env": "?",
        "state": "unreadable",
        "env_steps": 0,
        "score": None,
        "return": None,
        "finding": None,
    }
    try:
        for record in read_records(run.path):
            row["env_steps"] = record.env_steps
            match record:
                case HeaderRecord():
                    row["env"], row["state"] = record.env, "running"
                case UpdateRecord():
                    row["return"] = row["return"] if record.episodes is None else record.episodes.return_mean
                case EvaluationRecord():
                    row["score"] = record.return_mean
                case FindingRecord():
                    row["finding"] = record.title if record.status == "open" else None
                case EndRecord():
                    row["state"] = record.reason
                    row["finding"] = record.message or row["finding"]
                case _:
                    pass
    except SurefootError as why:
        row["finding"] = str(why)
        # A run with --telemetry off has no record; its header still has the env.
        if not run.telemetry.exists() and run.read_header().get("record") is False:
            header = run.read_header()
            row |= {"env": header["spec"].get("env", "?"), "state": "not recorded", "finding": None}
    # The record has no end but no process holds the lock: the process was killed.
    if row["state"] == "running" and not is_locked(run):
        row["state"] = "stopped without an end"
    return row


def is_locked(run: RunDir) -> bool:
    """Return whether a process is writing the run."""
    try:
        with RunLock(run.path):
            return False
    except RunLocked:
        return True
