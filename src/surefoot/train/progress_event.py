"""What is known after one update: the one thing a dashboard, a record or a caller needs to look at."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.learn.report import UpdateReport
from surefoot.telemetry.doctor.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalPoint:
    """One evaluation: how the policy of that moment did over whole episodes, raw returns."""

    env_steps: int
    mean: float
    std: float
    minimum: float
    maximum: float
    episodes: int
    is_best: bool
    """No earlier evaluation of this run had a higher mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The state of a training run right after one update."""

    report: UpdateReport
    env_steps: int
    total_steps: int
    """Where the run will end."""
    seconds: float
    """Wall time since this process began training; a resumed run starts again at 0."""
    episodes: int
    """Finished since the run began."""
    recent_return: float | None
    """Mean raw return of the last 100 episodes; None before the first one ends. So for the next two."""
    recent_length: float | None
    recent_success: float | None
    """None too in worlds that do not report success."""
    new_returns: tuple[float, ...]
    """Raw returns of the episodes that ended during this update's rollout."""
    evaluation: EvalPoint | None
    """A fresh evaluation, if one was made."""
    checkpoint: int | None
    """Update number of a checkpoint that was just saved."""
    notes: tuple[str, ...]
    """Sentences worth showing: the minibatch rule, guards that fired, why this path was taken."""
    findings: tuple[Finding, ...] = ()
    """What the doctor found, or found to be over, since the last update."""
