"""Automatic recovery: return to the last checkpoint before a serious finding and resume with the settings that fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from surefoot.errors import ConfigError, Diverged, EnvError
from surefoot.learn.checkpoint.checkpoint import newest_first, step_of
from surefoot.learn.checkpoint.retention import go_back
from surefoot.telemetry.doctor.doctor import LiveDoctor, patch_for
from surefoot.telemetry.doctor.findings import Finding, patch_text, severity_rank
from surefoot.telemetry.doctor.metric_history import MetricHistory
from surefoot.telemetry.doctor.rules import shipped_rules
from surefoot.telemetry.writer import Mirror
from surefoot.train.config import split_settings
from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
from surefoot.train.progress_event import Moment
from surefoot.train.run import Run, resume_run
from surefoot.train.rundir.run_header import write_header
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

# Each recovery repeats up to the whole run so far. More of them spend more time on a run whose patches do not help.
MAX_RECOVERIES = 3
# Checkpoints to retain while recovery is enabled. With fewer, all of them may be from after the problem began; with more
# the run takes more disk space.
RETAINED_CHECKPOINTS = 30
# A finding opens only after several records show its sign, so checkpoints of the last tenth before it may already be
# affected.
MARGIN = 0.9
# Share of the run that changed settings get before their score is compared: less, and chance decides.
TRIAL_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The response to a finding: a checkpoint to return to and the settings to change."""

    finding: Finding
    patch: dict[str, Any]
    """Settings to change. Empty if no setting fixes the problem; the run then stops."""
    back_to: int
    """The update whose checkpoint is restored."""
    spec: RunSpec | None = None
    """The settings to return to, if `patch` did not help; None to apply `patch`."""

    def __str__(self) -> str:
        cause = f"{self.finding.rule} ({self.finding.title})"
        if self.spec is not None:
            return f"took back {patch_text(self.patch)}, which did not help against {cause}"
        if not self.patch:
            return f"stopped because of {cause}: no setting that can change during a run fixes it"
        return f"returned to update {self.back_to} because of {cause} and resumed with {patch_text(self.patch)}"


def choose_recovery(run: Run, findings: Sequence[Finding], previous: Sequence[Recovery] = ()) -> Recovery | None:
    """Return the recovery for the open finding that no other one explains; None if the run should continue unchanged.

    A warning that no setting fixes does not stop a run; an error does.
    """
    found = [
        f for f in findings if f.primary and f.status == "open" and severity_rank(f.severity) >= severity_rank("warn")
    ]
    if not found:
        return None
    finding = max(found, key=lambda f: severity_rank(f.severity))
    tried = [recovery.patch for recovery in previous]
    patch = {} if len(previous) >= MAX_RECOVERIES else applicable(run.spec, finding.patch)
    if finding.severity == "warn" and (not patch or patch in tried):
        return None
    latest = MARGIN * finding.since_update
    if any(finding.rule == rule.id for rule in shipped_rules() if rule.sign.__name__ == "setting"):
        latest = 0.0  # a wrong setting was wrong from the first update on
    elif previous:
        latest = min(latest, 0.5 * previous[-1].back_to)  # the checkpoint of the last recovery was not good either
    steps = sorted(s for path in newest_first(run.directory.checkpoints) if (s := step_of(path.name)) is not None)
    # If every checkpoint is later than that, the earliest one is the least affected.
    back_to = max((s for s in steps if s <= latest), default=steps[0] if steps else 0)
    # Without any checkpoint there is nothing to restore: an empty patch stops the run.
    return Recovery(finding=finding, patch=patch if steps else {}, back_to=back_to)


def applicable(spec: RunSpec, patch: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of `patch` that a run can change while it trains: of learning and rewards, not of the network."""
    return {knob: value for knob, value in patch.items() if _changes(spec, knob, value)}


def _changes(spec: RunSpec, knob: str, value: Any) -> bool:
    # Environments are in the middle of their episodes; another number of them, or of steps, would begin anew.
    if knob in ("envs", "rollout_steps"):
        return False
    try:
        # Settings of the network are left out: the weights of the checkpoint would not fit another network.
        _, net, _ = split_settings({knob: value})
        return not net and patched(spec, {knob: value}) != spec
    except ConfigError:
        return False


def patched(spec: RunSpec, patch: dict[str, Any]) -> RunSpec:
    """Return `spec` with the settings of `patch`."""
    ppo, net, collect = split_settings(patch)
    changed = replace(spec, ppo=spec.ppo.replace(**ppo), net=spec.net.replace(**net))
    return replace(changed, collect=spec.collect.replace(**collect))


class RecoveringRun:
    """A run that recovers from serious findings. Each recovery replaces `run` by a new one in the same directory."""

    def __init__(
        self, run: Run, *, act: bool, mirrors: Callable[[], Sequence[Mirror]] = tuple, command: Sequence[str] = ()
    ) -> None:
        self.run, self.act = run, act
        self.recoveries: list[Recovery] = []
        self.stop_reason: str | None = None
        """Why the run was stopped, if no setting could fix a finding."""
        self.verdicts: list[str] = []
        """What was tried, with the score before and after."""
        self._trial: _Trial | None = None
        self._mirrors, self._command = mirrors, command

    def moments(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Moment]:
        """Yield the moments of the run and of the runs that replace it."""
        if not self.act:
            yield from self.run.moments(stop)
            return
        if not self.run.directory.checkpoints.exists():
            self.run.save()  # a finding may come before the first regular checkpoint
        recovery: Recovery | None = None
        while True:
            try:
                for moment in self.run.moments(stop):
                    recovery = choose_recovery(self.run, moment.findings, self.recoveries) or self._undone()
                    # The caller sees the moment with the finding before the run is replaced.
                    yield moment
                    if recovery is not None:
                        break
            except Diverged as why:
                # The update raised before its report, so the doctor has no finding for it.
                recovery = choose_recovery(self.run, [divergence_finding(self.run, why)], self.recoveries)
            if recovery is None:
                return
            if not recovery.patch:
                self.stop_reason = str(recovery)
                return
            before, steps = self.run.spec, self.run.training.env_steps
            current = score(self.run) if recovery.spec is None else 0.0
            self.run = recover(self.run, recovery, self._mirrors(), self._command)
            if recovery.spec is None:
                due = self.run.training.env_steps + int(TRIAL_SHARE * self.run.spec.total_steps)
                self._trial = _Trial(before, max(steps, due), current, recovery)
                self.recoveries.append(recovery)
            recovery = None

    def _undone(self) -> Recovery | None:
        """Return the recovery that takes a change of settings back, if the score after its trial is below that of before."""
        trial, run = self._trial, self.run
        if trial is None or run.training.env_steps < trial.due:
            return None
        self._trial, now = None, score(run)
        helped = now >= trial.score
        verdict = f"{patch_text(trial.recovery.patch)}: score {trial.score:.4g} before, {now:.4g} after"
        self.verdicts.append(f"{verdict}; {'kept' if helped else 'undone'}")
        run.notes.append(f"doctor: {self.verdicts[-1]}")
        if helped:
            return None
        return Recovery(finding=trial.recovery.finding, patch=trial.recovery.patch, back_to=run.save(), spec=trial.spec)


@dataclass(frozen=True, slots=True)
class _Trial:
    """A change of settings whose effect is not known yet."""

    spec: RunSpec
    """The settings before."""
    due: int
    """The env steps at which the scores are compared."""
    score: float
    recovery: Recovery


def score(run: Run) -> float:
    """Return the mean return of evaluation episodes; that of recent training episodes if one does not end."""
    world = run.training.make(run.spec.eval_episodes)
    try:
        seed = run.spec.seed + EVAL_SEED_OFFSET
        return play(run.training.policy, world, run.spec.eval_episodes, seed=seed, device=run.training.device).mean
    except EnvError:
        return run.training.collector.episodes.recent()[0] or 0.0
    finally:
        world.close()


def divergence_finding(run: Run, why: Diverged) -> Finding:
    """Return the finding for a run that ended with `Diverged`."""
    # R01 is the rule for numbers that are not finite; its causes and patch apply here too.
    rule = next(rule for rule in shipped_rules() if rule.id == "R01")
    history = MetricHistory() if run.live_doctor is None else run.live_doctor.doctor.history
    return Finding(
        rule=rule.id,
        severity="fatal",
        title=f"{rule.title}: {why}",
        since_update=run.training.learner.updates,
        since_env_steps=run.training.env_steps,
        causes=list(rule.causes),
        patch=patch_for(rule.patch, history),
        primary=True,
    )


def recover(run: Run, recovery: Recovery, mirrors: Sequence[Mirror] = (), command: Sequence[str] = ()) -> Run:
    """Close `run` and return one that resumes from the checkpoint of `recovery` with its settings."""
    run.close("interrupted", str(recovery))
    go_back(run.directory.checkpoints, recovery.back_to)
    training = Training(recovery.spec or patched(run.spec, recovery.patch), make=run.training.make)
    # A new doctor: the history of the old one contains the updates that were rolled back.
    doctor = LiveDoctor(at_length=run.live_doctor is not None and run.live_doctor.at_length)
    resumed, _ = resume_run(run.directory, training=training, command=command, mirrors=mirrors, doctor=doctor)
    # The header is rewritten, so that a later `resume` uses the new settings.
    write_header(run.directory, training, command, record=resumed.recorder.path is not None)
    details = {"finding": recovery.finding.to_json(), "patch": recovery.patch, "back_to": recovery.back_to}
    # The name of the event is part of the record's published format.
    resumed.recorder.event("treated", str(recovery), details)
    resumed.notes.append(f"doctor: {recovery}")
    return resumed
