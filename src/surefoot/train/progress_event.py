"""The state of a run after one update, for dashboards, records and callers."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.learn.report import UpdateReport
from surefoot.telemetry.doctor.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalPoint:
    """One evaluation over complete episodes; raw returns."""

    env_steps: int
    mean: float
    std: float
    minimum: float
    maximum: float
    episodes: int
    is_best: bool
    """Whether no earlier evaluation of this run had a higher mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The state of a training run right after one update."""

    report: UpdateReport
    env_steps: int
    total_steps: int
    """Length of the run."""
    seconds: float
    """Wall time since this process began training; a resumed run starts again at 0."""
    episodes: int
    """Episodes finished since the run began."""
    recent_return: float | None
    """Mean raw return of the last 100 episodes; None before the first one ends. The same holds for the next two."""
    recent_length: float | None
    recent_success: float | None
    """None also if the env does not report success."""
    new_returns: tuple[float, ...]
    """Raw returns of the episodes that ended during this update's rollout."""
    evaluation: EvalPoint | None
    """The evaluation made after this update, if any."""
    checkpoint: int | None
    """Update number of the checkpoint saved after this update, if any."""
    notes: tuple[str, ...]
    """Sentences to show: the minibatch rule, dropped episodes, why this path is used."""
    findings: tuple[Finding, ...] = ()
    """Findings of the doctor that were opened or closed since the last update."""
