"""A run on disk: trained, evaluated, recorded and saved, so that it can be killed at any moment and resumed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.envs.api import World
from surefoot.envs.make import placement_of
from surefoot.errors import EnvError, WorkersLost
from surefoot.learn.checkpoint.atomic_files import RunLock
from surefoot.learn.checkpoint.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from surefoot.learn.checkpoint.retention import mark_best, prune
from surefoot.learn.checkpoint.typed_state import RunProgress, typed
from surefoot.learn.report import UpdateReport
from surefoot.telemetry.doctor.doctor import LiveDoctor
from surefoot.telemetry.doctor.findings import Finding, sentence
from surefoot.telemetry.schema import EndReason
from surefoot.telemetry.writer import Mirror, Recorder, truncate_after
from surefoot.train.collect.episodes import Episode
from surefoot.train.collect.replay_cycles import Cycles
from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
from surefoot.train.progress_event import EvalPoint, Moment
from surefoot.train.rundir.recorder import NO_RECORD, RecordingOptions, open_recorder, record_update
from surefoot.train.rundir.run_header import git_commit, kernel_name, next_after, resume_notes, versions, write_header
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

# As many streams as episodes by default, so that each stream plays one.
EVAL_STREAMS = 10


class Run:
    """A run directory while it trains. Create it with `create_run` or `resume_run`, iterate over `moments`, close it."""

    def __init__(
        self,
        directory: RunDir,
        training: Training | Cycles,
        recorder: Recorder,
        lock: RunLock,
        live_doctor: LiveDoctor | None = None,
    ) -> None:
        self.directory, self.training, self.recorder, self.lock = directory, training, recorder, lock
        self.live_doctor = live_doctor
        """The doctor, if there is one."""
        self.spec = training.spec
        self.best_mean = -np.inf
        self.next_eval = self.spec.eval_every or np.inf
        self.next_checkpoint = self.spec.checkpoint_every
        self.saved_at: int | None = None
        self.notes: list[str] = []
        """Sentences for the next event."""
        self.labels: dict[str, str] = {"data_mode": training.mode} if isinstance(training, Cycles) else {}
        """Texts that go into the record with the numbers of each update."""
        self._eval_world: World | None = None
        self._closed = False

    def moments(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Moment]:
        """Train until the spec's steps are done or `stop` returns True; save and evaluate regularly and at the end."""
        begin = time.perf_counter()
        while not self.training.finished and not stop():
            try:
                report = self.training.update()
            except WorkersLost:
                # The updates so far are complete: save them, so that the run can be resumed with new workers.
                self._record_losses()
                self._keep()
                raise
            self._record_losses()
            fresh = self.training.collector.episodes.take_fresh()
            steps, finished = self.training.env_steps, self.training.finished
            self.record(report, fresh, steps)
            findings = self._examine()
            # Saved before the evaluation, which may take long or fail and must not cost what was learned.
            saved = self.save() if finished or steps >= self.next_checkpoint or stop() else None
            # Not when stopped: Ctrl-C should return quickly, and a resumed run makes the evaluation later.
            due = steps >= self.next_eval or (finished and self.spec.eval_every)
            evaluation = self._evaluate(stop) if due and not stop() else None
            if evaluation is not None:
                saved = self.save(best=evaluation.is_best)
            recent = self.training.collector.episodes.recent()
            notes, self.notes = tuple(self.notes + _notes(report)), []
            yield Moment(
                report=report,
                env_steps=steps,
                total_steps=self.spec.total_steps,
                seconds=time.perf_counter() - begin,
                episodes=self.training.collector.episodes.finished,
                recent_return=recent[0],
                recent_length=recent[1],
                recent_success=recent[2],
                new_returns=tuple(episode.return_ for episode in fresh),
                evaluation=evaluation,
                checkpoint=saved,
                notes=notes,
                findings=findings,
            )
        # `stop` may have become True after the last check.
        self._keep()

    def _keep(self) -> None:
        """Save if there was an update since the last checkpoint."""
        if self.training.learner.updates and self.saved_at != self.training.learner.updates:
            self.save()

    def _examine(self) -> tuple[Finding, ...]:
        """Return the doctor's new findings, and write them into the record."""
        result = () if self.live_doctor is None else tuple(self.live_doctor.take())
        at_length = self.live_doctor is not None and self.live_doctor.at_length
        for finding in result:
            self.recorder.finding(**finding.to_json())
            if at_length or finding.severity != "info":
                self.notes.append(sentence(finding, causes=at_length))
        return result

    def _record_losses(self) -> None:
        for lost in self.training.take_losses():
            self.recorder.event("worker_lost", lost)
            self.notes.append(lost)

    def save(self, *, best: bool = False) -> int:
        """Write a checkpoint and return its number, the number of updates."""
        step, root = self.training.learner.updates, self.directory.checkpoints
        # A large rollout may pass several of these; the next one is after the current step.
        self.next_checkpoint = next_after(self.next_checkpoint, self.spec.checkpoint_every, self.training.env_steps)
        self.recorder.begin_sync()
        inexact = self.training.world.inexact
        meta = {"exact": inexact is None, "why": inexact or ""}
        # The record is on the disk before the checkpoint counts: a resumed run cuts the record at its checkpoint.
        save_checkpoint(root, step, self.state(), meta=meta, ready=self.recorder.sync)
        if best:
            mark_best(root, step)
        prune(root, self.spec.keep_checkpoints)
        self.saved_at = step
        return step

    def state(self) -> dict[str, Any]:
        """Return the parts of a checkpoint: the training's, and the progress of the run."""
        progress = {
            "best_mean": float(self.best_mean),
            "next_eval": float(self.next_eval),
            "next_checkpoint": self.next_checkpoint,
            "threads": torch.get_num_threads(),
            "spec": self.spec.to_json(),
            "versions": versions(),
            "kernel": kernel_name(),
        }
        return {**self.training.state(), "run": progress}

    def set_state(self, parts: dict[str, Any]) -> None:
        """Continue from a checkpoint's parts."""
        self.training.set_state(parts)
        self.set_progress(typed(parts, "run", RunProgress))

    def set_progress(self, saved: RunProgress) -> None:
        """Continue the run's own schedule, and note what differs from when it was saved."""
        self.best_mean, self.next_eval = saved.best_mean, saved.next_eval
        self.next_checkpoint = saved.next_checkpoint
        if saved.threads != torch.get_num_threads():
            self.notes.append(
                f"saved with {saved.threads} threads, resumed with {torch.get_num_threads()}: digits will differ"
            )
        self.notes += resume_notes(saved, self.spec)

    def close(self, reason: EndReason, message: str = "") -> None:
        """Record the end and free everything. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self.recorder.close(reason, message)
            self.training.close()
            if self._eval_world is not None:
                self._eval_world.close()
        finally:
            # Also after an error above: a lock that remains would refuse to resume the run in this process.
            self.lock.__exit__(None, None, None)

    def _evaluate(self, stop: Callable[[], bool]) -> EvalPoint | None:
        """Evaluate the current policy; None if that was interrupted or an episode did not end."""
        spec, steps = self.spec, self.training.env_steps
        self.next_eval = next_after(self.next_eval, spec.eval_every, steps)
        # Made on first use and reused, since making an env may take seconds.
        if self._eval_world is None:
            self._eval_world = self.training.make(min(spec.eval_episodes, EVAL_STREAMS))
        seed = spec.seed + EVAL_SEED_OFFSET
        policy, device = self.training.policy, self.training.device
        try:
            played = play(
                policy,
                self._eval_world,
                spec.eval_episodes,
                seed=seed,
                device=device,
                stop=stop,
                path=spec.ppo.path,
            )
        except EnvError as why:
            # A policy that moves in circles may still improve: no reason to stop the training.
            self.recorder.event("evaluation_failed", str(why))
            self.notes.append(f"evaluation stopped: {why}")
            return None
        # Stopped in between: the mean of some episodes is not comparable with the best so far.
        if len(played.returns) < spec.eval_episodes:
            return None
        is_best = played.mean > self.best_mean
        self.best_mean = max(self.best_mean, played.mean)
        self.recorder.eval(
            returns=played.returns, lengths=played.lengths, successes=played.successes, deterministic=True
        )
        return EvalPoint(
            env_steps=steps,
            mean=played.mean,
            std=played.std,
            minimum=min(played.returns),
            maximum=max(played.returns),
            episodes=len(played.returns),
            is_best=is_best,
        )

    def record(self, report: UpdateReport, fresh: Sequence[Episode], env_steps: int) -> None:
        """Record an update and the episodes that ended in it, when a line is due."""
        self.recorder.defer(record_update, self.recorder, env_steps, report, fresh, self.labels)


def create_run(
    directory: RunDir,
    spec: RunSpec,
    *,
    training: Training | Cycles | None = None,
    command: Sequence[str] = (),
    mirrors: Sequence[Mirror] = (),
    doctor: LiveDoctor | None = None,
    recording: RecordingOptions = RecordingOptions(),  # noqa: B008  it is frozen
) -> Run:
    """Return a new run in an empty directory. With `doctor`, its findings go into the record."""
    lock = RunLock(directory.path).__enter__()
    try:
        training = training or Training(spec)
        record = recording.should_record({})
        write_header(directory, training, command, record=record)
        watchers = (*mirrors, doctor) if doctor else mirrors
        run = Run(
            directory, training, open_recorder(directory, recording, record=record, mirrors=watchers), lock, doctor
        )
        size_note = spec.ppo.minibatch_size_for(spec.ppo.batch_size)[1]
        run.notes += [size_note] if size_note else []
        _announce(run, command)
    except BaseException:
        lock.__exit__(None, None, None)
        raise
    return run


def resume_run(
    directory: RunDir,
    *,
    total_steps: int | None = None,
    training: Training | Cycles | None = None,
    command: Sequence[str] = (),
    mirrors: Sequence[Mirror] = (),
    doctor: LiveDoctor | None = None,
    recording: RecordingOptions = RecordingOptions(),  # noqa: B008  it is frozen
) -> tuple[Run, Checkpoint]:
    """Return a run at its newest complete checkpoint; `total_steps` makes it and its schedules longer."""
    lock = RunLock(directory.path).__enter__()
    try:
        header = directory.read_header()
        spec, record = RunSpec.from_json(directory.read_spec()), recording.should_record(header)
        checkpoint = load_checkpoint(directory.checkpoints)
        if total_steps is not None:
            spec = replace(spec, total_steps=total_steps)
        training = training or Training(spec)
        # First: a checkpoint that cannot be restored must not cost the record anything.
        progress = typed(checkpoint.parts, "run", RunProgress)
        training.set_state(checkpoint.parts)
        # The record of updates after the checkpoint is removed: they are trained and recorded again.
        truncate_after(directory.telemetry, checkpoint.step)
        if doctor and directory.telemetry.exists():
            doctor.catch_up(directory.telemetry)
        watchers = (*mirrors, doctor) if doctor else mirrors
        run = Run(
            directory, training, open_recorder(directory, recording, record=record, mirrors=watchers), lock, doctor
        )
        run.set_progress(progress)
        run.saved_at = checkpoint.step
        if total_steps is not None or record != header.get("record", True):
            write_header(directory, training, command, record=record)
        run.notes += checkpoint.skipped
        if training.world.inexact is not None:
            run.notes.append(f"resumed with new episodes, not bit-exact: {training.world.inexact}")
        _announce(run, command)
    except BaseException:
        lock.__exit__(None, None, None)
        raise
    return run, checkpoint


def _announce(run: Run, command: Sequence[str]) -> None:
    inexact, placement = run.training.world.inexact, placement_of(run.training.world)
    run.notes += [placement] if placement else []
    run.notes += [NO_RECORD] if run.recorder.path is None else []
    run.recorder.header(
        env=run.spec.env,
        seed=run.spec.seed,
        config=run.spec.to_json(),
        versions=versions(),
        command=command,
        resume_command=["surefoot", "resume", run.directory.name],
        threads=torch.get_num_threads(),
        exact=inexact is None,
        exact_reason=inexact or "",
        path=run.training.learner.path,
        path_reason=run.training.learner.path_reason,
        git_commit=git_commit(Path.cwd()),
        num_envs=run.training.world.num_envs,
        placement=placement or "",
        total_steps=run.spec.total_steps,
    )


def _notes(report: UpdateReport) -> list[str]:
    """Return sentences about a report that a user should see."""
    notes: list[str] = []
    if report.skipped_reason:
        notes.append(f"update {report.update} learned nothing: {report.skipped_reason}")
    if report.rolled_back:
        notes.append(f"update {report.update} was not finite and was rolled back; the learning rate is halved")
    elif report.nonfinite_steps:
        notes.append(
            f"update {report.update}: {report.nonfinite_steps} gradient steps were not finite and were skipped"
        )
    if report.stats.get("dropped_episodes"):
        notes.append(f"{report.stats['dropped_episodes']:.0f} episodes with NaN or infinity were dropped")
    if report.stats.get("reward_outliers"):
        notes.append(f"{report.stats['reward_outliers']:.0f} rewards beyond 20 standard deviations")
    return notes
