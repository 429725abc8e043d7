"""What the doctor orders, done: back to the last checkpoint before the trouble, and on with the settings it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from surefoot.errors import ConfigError, Diverged
from surefoot.learn.checkpoint.checkpoint import newest_first, step_of
from surefoot.learn.checkpoint.retention import go_back
from surefoot.telemetry.doctor.doctor import LiveDoctor, patch_for
from surefoot.telemetry.doctor.findings import Finding, gravity, patch_text
from surefoot.telemetry.doctor.metric_history import MetricHistory
from surefoot.telemetry.doctor.rules import shipped_rules
from surefoot.telemetry.writer import Mirror
from surefoot.train.config import split_settings
from surefoot.train.progress_event import Moment
from surefoot.train.run import Run, resume_run, write_header
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

MOST = 3
"""Treatments of one run; what three did not mend needs a person."""
KEPT = 30
"""Checkpoints that a run under treatment keeps, so that there is one from before the trouble."""
MARGIN = 0.9
"""A finding needs some records before it opens: a checkpoint of the last tenth before that may be sick already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """What is to be done about a finding."""

    finding: Finding
    patch: dict[str, Any]
    """Settings that change; none means that only a person can mend it, and the run should stop."""
    back_to: int
    """The update whose checkpoint is taken up again."""

    def __str__(self) -> str:
        what = f"{self.finding.rule} ({self.finding.title})"
        if not self.patch:
            return f"stopped for {what}: no setting of a running run would mend it"
        return f"went back to update {self.back_to} for {what} and on with {patch_text(self.patch)}"


def treatment(run: Run, findings: Sequence[Finding], before: Sequence[Treatment] = ()) -> Treatment | None:
    """What to do about the gravest of these findings; None if none is an error that nothing else explains."""
    grave = [f for f in findings if f.primary and f.status == "open" and gravity(f.severity) >= gravity("error")]
    if not grave:
        return None
    finding = max(grave, key=lambda f: gravity(f.severity))
    patch = {} if len(before) >= MOST else applicable(run.spec, finding.patch)
    good = MARGIN * finding.since_update
    steps = sorted(s for path in newest_first(run.directory.checkpoints) if (s := step_of(path.name)) is not None)
    # Where all of them are later, the earliest is the best there is.
    back_to = max((s for s in steps if s <= good), default=steps[0] if steps else 0)
    return Treatment(finding=finding, patch=patch if steps else {}, back_to=back_to)


def applicable(spec: RunSpec, patch: dict[str, Any]) -> dict[str, Any]:
    """The settings among these that a run can change on its way: those of learning and of rewards, not of the network."""
    return {knob: value for knob, value in patch.items() if _changes(spec, knob, value)}


def _changes(spec: RunSpec, knob: str, value: Any) -> bool:
    try:
        _, net, _ = split_settings({knob: value})
        return not net and patched(spec, {knob: value}) != spec
    except ConfigError:
        return False


def patched(spec: RunSpec, patch: dict[str, Any]) -> RunSpec:
    """The spec with these settings in place of its own."""
    ppo, net, collect = split_settings(patch)
    changed = replace(spec, ppo=spec.ppo.replace(**ppo), net=spec.net.replace(**net))
    return replace(changed, collect=spec.collect.replace(**collect))


class Patient:
    """A run and the doctor's hands: after each treatment `run` is another one, in the same directory."""

    def __init__(
        self, run: Run, *, act: bool, mirrors: Callable[[], Sequence[Mirror]] = tuple, command: Sequence[str] = ()
    ) -> None:
        self.run, self.act = run, act
        self.treatments: list[Treatment] = []
        self.given_up: str | None = None
        """Why the run was stopped, if the doctor stopped it."""
        self._mirrors, self._command = mirrors, command

    def moments(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Moment]:
        """The run's moments, and those of what it becomes."""
        if not self.act:
            yield from self.run.moments(stop)
            return
        wanted: Treatment | None = None
        while True:
            try:
                for moment in self.run.moments(stop):
                    wanted = treatment(self.run, moment.findings, self.treatments)
                    yield moment
                    if wanted is not None:
                        break
            except Diverged as why:
                wanted = treatment(self.run, [collapse(self.run, why)], self.treatments)
            if wanted is None:
                return
            if not wanted.patch:
                self.given_up = str(wanted)
                return
            self.treatments.append(wanted)
            self.run = treat(self.run, wanted, self._mirrors(), self._command)
            wanted = None


def collapse(run: Run, why: Diverged) -> Finding:
    """What ended a run by itself, as a finding."""
    rule = next(rule for rule in shipped_rules() if rule.id == "R01")
    history = MetricHistory() if run.attending is None else run.attending.doctor.history
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


def treat(run: Run, wanted: Treatment, mirrors: Sequence[Mirror] = (), command: Sequence[str] = ()) -> Run:
    """The run as it was before the trouble, with the new settings; `run` itself is closed."""
    run.close("interrupted", str(wanted))
    go_back(run.directory.checkpoints, wanted.back_to)
    training = Training(patched(run.spec, wanted.patch), make=run.training.make)
    doctor = LiveDoctor(at_length=run.attending is not None and run.attending.at_length)
    again, _ = resume_run(run.directory, training=training, command=command, mirrors=mirrors, doctor=doctor)
    write_header(run.directory, training, command, record=again.recorder.path is not None)
    details = {"finding": wanted.finding.to_json(), "patch": wanted.patch, "back_to": wanted.back_to}
    again.recorder.event("treated", str(wanted), details)
    again.notes.append(f"doctor: {wanted}")
    return again
