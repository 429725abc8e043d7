"""How much of a run is written down, and the recorder that does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.errors import ConfigError
from surefoot.learn.report import UpdateReport
from surefoot.learn.tally import COLUMNS
from surefoot.telemetry.writer import Mirror, Recorder
from surefoot.train.rundir import RunDir

EARLY = 64
"""Updates at the start of a session that get a line each, however fast they come: a run of a second can be examined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What of a run is kept."""

    record: bool | None = None
    """False writes no record; mirrors still get every line. None is as run.json says, and True in a new run."""
    minibatch_rate: float = 0.0
    """Share of gradient steps that get a line of their own."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.minibatch_rate <= 1.0:
            raise ConfigError(f"minibatch_rate is {self.minibatch_rate:g}; it is a share, 0 (none) to 1 (all)")

    def said_by(self, header: dict[str, object]) -> bool:
        """Whether to write a record, where run.json has this to say."""
        return bool(header.get("record", True)) if self.record is None else self.record


def open_recorder(directory: RunDir, keep: Keep, *, record: bool, mirrors: Sequence[Mirror]) -> Recorder:
    """The run's recorder; without `record` it writes no file."""
    path = directory.telemetry if record else None
    return Recorder(path, directory.name, mirrors=mirrors, minibatch_rate=keep.minibatch_rate, early=EARLY)


def tell_minibatches(recorder: Recorder, report: UpdateReport) -> None:
    """Tell each gradient step of an update; call before the update itself is told."""
    steps = report.gradient_steps
    if steps is None or not recorder.minibatch_rate:
        return
    for number, epoch in enumerate(steps.epoch.tolist()):
        recorder.minibatch(epoch=epoch, minibatch=number, m=lambda k=number: (COLUMNS, steps.rows[k].tolist()))


NO_RECORD = "no record is written: --record off; curves, report, doctor and watch have nothing to read"
