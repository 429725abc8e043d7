"""A run as one row of a table."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.errors import RunLocked, SurefootError
from surefoot.learn.checkpoint.atomic_files import RunLock
from surefoot.telemetry.doctor.findings import severity_rank
from surefoot.telemetry.export.run_facts import recent_return
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
    # Updates of which a mean over a hundred episodes may need the last ones only.
    episodes: deque[tuple[int, float]] = deque(maxlen=1000)
    open_findings: dict[str, FindingRecord] = {}
    try:
        for record in read_records(run.path, skip=("episode", "minibatch")):
            match record:
                case HeaderRecord():
                    row["env"], row["state"] = record.env, "running"
                case UpdateRecord():
                    row["env_steps"] = record.env_steps
                    if record.episodes is not None and record.episodes.return_mean is not None:
                        episodes.append((record.episodes.count, record.episodes.return_mean))
                case EvaluationRecord():
                    row["score"] = record.return_mean
                case FindingRecord():
                    open_findings.pop(record.rule, None)
                    if record.status == "open":
                        open_findings[record.rule] = record
                case EndRecord():
                    row["state"], row["env_steps"] = record.reason, record.env_steps
                    row["finding"] = record.message or None
                case _:
                    pass
    except SurefootError as why:
        row["finding"] = str(why)
        # A run with --telemetry off has no record; its header still has the env.
        if not run.telemetry.exists() and run.read_header().get("record") is False:
            header = run.read_header()
            row |= {"env": header["spec"].get("env", "?"), "state": "not recorded", "finding": None}
    if row["finding"] is None and open_findings:
        row["finding"] = _first(open_findings).title
    counts, returns = np.array(episodes, float).reshape(-1, 2).T
    # The same number as on the run's page and in its report.
    row["return"] = recent[0] if (recent := recent_return(counts, returns)) is not None else None
    # The record has no end but no process holds the lock: the process was killed.
    if row["state"] == "running" and not is_locked(run):
        row["state"] = "stopped without an end"
    return row


def _first(findings: Mapping[str, FindingRecord]) -> FindingRecord:
    """Return the one to start with, as `surefoot doctor` does: a cause may have opened after its consequences."""
    # Reading the rules takes time that a list of healthy runs does not need.
    from surefoot.telemetry.doctor.doctor import primary
    from surefoot.telemetry.doctor.findings import Finding
    from surefoot.telemetry.doctor.rules import shipped_rules

    known = {rule.id for rule in shipped_rules()}
    shipped = [
        Finding(rule=f.rule, severity=f.severity, since_update=f.since_update, title=f.title)
        for f in findings.values()
        if f.rule in known
    ]
    first = primary(shipped, shipped_rules())
    if first is not None:
        return findings[first]
    return max(findings.values(), key=lambda f: (f.primary, severity_rank(f.severity)))


def is_locked(run: RunDir) -> bool:
    """Return whether a process is writing the run."""
    try:
        with RunLock(run.path):
            return False
    except RunLocked:
        return True
