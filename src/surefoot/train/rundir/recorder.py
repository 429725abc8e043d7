"""Options of the telemetry of a run, and the calls of its recorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from surefoot.errors import ConfigError
from surefoot.learn.report import UpdateReport
from surefoot.learn.report_builder import COLUMNS
from surefoot.telemetry.schema import Episodes
from surefoot.telemetry.writer import Mirror, Recorder
from surefoot.train.collect.episodes import Episode
from surefoot.train.diagnose.diagnostics import resident
from surefoot.train.rundir.rundir import RunDir

# The first updates of a session are recorded one by one at any speed, so that even a run of one second can be examined.
EARLY = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingOptions:
    """Whether telemetry is written, and for which share of the gradient steps."""

    record: bool | None = None
    """False writes no file; mirrors still receive every line. None: the value in run.json, and True in a new run."""
    minibatch_rate: float = 0.0
    """Share of gradient steps that are recorded."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.minibatch_rate <= 1.0:
            raise ConfigError(f"minibatch_rate is {self.minibatch_rate:g}; it must be a share, 0 (none) to 1 (all)")

    def should_record(self, header: dict[str, object]) -> bool:
        """Return whether to write telemetry; `header` holds the contents of run.json."""
        return bool(header.get("record", True)) if self.record is None else self.record


def open_recorder(directory: RunDir, options: RecordingOptions, *, record: bool, mirrors: Sequence[Mirror]) -> Recorder:
    """Return the run's recorder; without `record` it writes no file."""
    path = directory.telemetry if record else None
    return Recorder(path, directory.name, mirrors=mirrors, minibatch_rate=options.minibatch_rate, early=EARLY)


def record_update(
    recorder: Recorder,
    env_steps: int,
    report: UpdateReport,
    episodes: Sequence[Episode],
    labels: Mapping[str, str] | None = None,
) -> None:
    """Record the episodes that ended in an update, a share of its gradient steps, and the update."""
    if episodes:
        _record_episodes(recorder, env_steps, episodes)
    if recorder.minibatch_rate:
        _record_minibatches(recorder, report)
    recorder.update(
        env_steps=env_steps,
        updates=report.update,
        m=report.row,
        # Memory is only in the record: a report contains nothing that would differ in a second run.
        stats={**report.stats, **resident()} if "weight_norm" in report.stats else report.stats,
        epochs=lambda: [epoch.as_dict() for epoch in report.epochs],
        seconds=report.seconds,
        episodes=_summary(episodes) if episodes else None,
        stopped_early=report.stopped_early,
        rolled_back=report.rolled_back,
        skipped_reason=report.skipped_reason,
        labels=labels,
    )


def _record_episodes(recorder: Recorder, env_steps: int, episodes: Sequence[Episode]) -> None:
    # Episodes beyond the rate limit of the recorder are counted, not written.
    room = max(0, recorder.room_for_episodes())
    recorder.drop_episodes(max(0, len(episodes) - room))
    for episode in episodes[:room]:
        recorder.episode(
            return_=episode.return_,
            length=episode.length,
            env=episode.stream,
            env_steps=env_steps,
            terminated=not episode.truncated,
            success=None if episode.success is None else bool(episode.success),
        )


def _record_minibatches(recorder: Recorder, report: UpdateReport) -> None:
    steps = report.gradient_steps
    if steps is None:
        return
    for number, epoch in enumerate(steps.epoch.tolist()):
        recorder.minibatch(epoch=epoch, minibatch=number, m=lambda k=number: (COLUMNS, steps.rows[k].tolist()))


def _summary(episodes: Sequence[Episode]) -> Episodes | None:
    success = [bool(e.success) for e in episodes if e.success is not None]
    return Episodes.of([e.return_ for e in episodes], [e.length for e in episodes], success)


NO_RECORD = (
    "no telemetry is written (--telemetry off): no curves, no report, and `doctor` and `telemetry watch` have no data"
)
