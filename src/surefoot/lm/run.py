"""A language run on disk: header, telemetry, samples, checkpoints. It resumes bit-exactly after a kill."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from surefoot.errors import ConfigError, SurefootError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, RunLock, replace_file
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.checkpoint.retention import mark_best, prune
from surefoot.lm.config import LMConfig
from surefoot.lm.dpo import DPOTraining
from surefoot.lm.training import LMStep, LMTraining
from surefoot.telemetry.doctor.doctor import LiveDoctor
from surefoot.telemetry.doctor.findings import sentence
from surefoot.telemetry.doctor.rules import Rule, read_rules, shipped_rules
from surefoot.telemetry.schema import EndReason
from surefoot.telemetry.writer import Mirror, Recorder, truncate_after
from surefoot.train.diagnose.diagnostics import resident
from surefoot.train.rundir.recorder import RecordingOptions, open_recorder
from surefoot.train.rundir.run_header import git_commit, versions
from surefoot.train.rundir.rundir import RunDir

# Rules about episodes, returns and observations: a language run has none. Its own rules cover repetition and entropy.
_GAME_RULES = {"R21B", "R21", "R26", "R07", "R06", "R12", "R11", "R21N", "R21S", "R22S", "R22", "R23", "R25"}


def language_rules() -> list[Rule]:
    """Return the doctor's rules for language runs: those about any learner, and those of rules.yaml."""
    # E: about environments. S: compared with published settings of control tasks, which are others.
    base = [rule for rule in shipped_rules() if rule.id not in _GAME_RULES and rule.id[0] not in "ES"]
    return read_rules(Path(__file__).with_name("rules.yaml"), base)


class LMRun:
    """A run directory while it trains: iterate `steps`, then call `close`."""

    def __init__(
        self,
        directory: RunDir,
        training: LMTraining | DPOTraining,
        recorder: Recorder,
        lock: RunLock,
        doctor: LiveDoctor,
    ) -> None:
        self.directory, self.training, self.recorder = directory, training, recorder
        self.lock, self.doctor = lock, doctor
        self.saved_at: int | None = None
        self.notes: list[str] = []
        self._closed = False

    def steps(self, stop: Callable[[], bool] = lambda: False) -> Iterator[tuple[LMStep, list[str]]]:
        """Yield (step, sentences) until the run ends. Saves every `checkpoint_every` steps, at the end and on errors."""
        training = self.training
        try:
            while not training.finished and not stop():
                step = training.step()
                self._record(step)
                notes, self.notes = [*self.notes, *step.notes, *self._examine()], []
                if training.finished or step.number % training.config.checkpoint_every == 0 or training.guards.improved:
                    self.save(best=training.guards.improved)
                yield step, notes
        except SurefootError:
            # The state of the last step is consistent: a failing reward or a full disk must not lose it.
            self._save_if_new()
            raise
        self._save_if_new()

    def _save_if_new(self) -> None:
        if self.training.steps and self.saved_at != self.training.steps:
            self.save()

    def save(self, *, best: bool = False) -> int:
        """Write a checkpoint and return its step."""
        root, step = self.directory.checkpoints, self.training.steps
        self.recorder.begin_sync()
        meta = {"exact": True, "why": "", "threads": torch.get_num_threads()}
        # The telemetry is on disk before the checkpoint counts, so that a resumed run has no gap.
        save_checkpoint(root, step, self.training.state(), meta=meta, ready=self.recorder.sync)
        if best:
            mark_best(root, step)
        # After `mark_best`, so that the best one is never pruned.
        prune(root, self.training.config.keep_checkpoints)
        self.saved_at = step
        return step

    def _record(self, step: LMStep) -> None:
        report = step.report
        learned = report.metrics()
        if isinstance(self.training, DPOTraining):
            # There are no advantages, values and sampled actions; their zeros would be findings.
            learned = {name: learned[name] for name in ("loss", "grad_norm", "grad_norm_max", "lr")}
        elif self.training.policy.backbone.dtype == torch.bfloat16:
            # Sampling and learning round differently in bfloat16; the doctor would report a changed policy.
            learned["sampler_mismatch"] = learned.pop("first_ratio_error")
        metrics = {**learned, **step.stats, **resident()}
        self.recorder.update(
            env_steps=self.training.tokens,
            updates=report.update,
            m=metrics,
            epochs=[epoch.as_dict() for epoch in report.epochs],
            seconds=step.seconds,
            stopped_early=report.stopped_early,
            rolled_back=report.rolled_back,
            skipped_reason=report.skipped_reason,
        )
        for note in step.notes:
            self.recorder.event("guard", note)
        line = {
            "step": step.number,
            "samples": [{"prompt": s.prompt, "response": s.response, "score": s.score} for s in step.samples],
        }
        # Appended line by line: `resume` drops a line that a kill cut off.
        with open(self.directory.path / "samples.ndjson", "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _examine(self) -> list[str]:
        findings = self.doctor.take()
        for finding in findings:
            self.recorder.finding(**finding.to_json())
        return [sentence(finding) for finding in findings if finding.severity != "info"]

    def close(self, reason: EndReason, message: str = "") -> None:
        """Record the end and release the lock. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self.recorder.close(reason, message)
        finally:
            self.lock.__exit__(None, None, None)


def create(
    directory: RunDir,
    training: LMTraining | DPOTraining,
    *,
    about: dict[str, Any],
    command: Sequence[str] = (),
    mirrors: Sequence[Mirror] = (),
) -> LMRun:
    """Start a run in an empty directory. `about` names model, prompts and reward, which a resumed run compares."""
    # Held until `LMRun.close`, hence no with block.
    lock = RunLock(directory.path).__enter__()
    verb = "dpo" if isinstance(training, DPOTraining) else "ppo"
    try:
        header = {
            "name": directory.name,
            "resume": f"surefoot lm {verb} --resume {directory.name}" + (" --reward …" if verb == "ppo" else ""),
            "spec": {
                **about,
                "env": "language",
                "chat_template": training.speech.chat,
                "seed": training.config.seed,
                "lm": training.config.to_json(),
                "ppo": training.ppo.to_json(),
            },
            "versions": _versions(),
            "threads": torch.get_num_threads(),
            "git_commit": git_commit(Path.cwd()),
            "command": list(command),
            "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        replace_file(REAL_FS, directory.header, (json.dumps(header, indent=2) + "\n").encode())
        return _open(directory, training, lock, about, command, mirrors)
    except BaseException:
        lock.__exit__(None, None, None)
        raise


def resume(
    directory: RunDir,
    training: LMTraining | DPOTraining,
    *,
    about: dict[str, Any],
    command: Sequence[str] = (),
    mirrors: Sequence[Mirror] = (),
) -> LMRun:
    """Resume a run from its newest intact checkpoint, or from the start if it has none."""
    lock = RunLock(directory.path).__enter__()
    try:
        require_same(directory, training, about)
        step, notes = 0, list[str]()
        if directory.checkpoints.is_dir() and any(directory.checkpoints.iterdir()):
            loaded = load_checkpoint(directory.checkpoints)
            training.set_state(loaded.parts)
            step, notes = loaded.step, list(loaded.skipped)
            threads = loaded.meta.get("threads")
            if threads != torch.get_num_threads():
                notes.append(
                    f"saved with {threads} threads, resumed with {torch.get_num_threads()}: results will differ by rounding"
                )
        # Steps after the checkpoint are repeated, so their records are removed.
        truncate_after(directory.telemetry, step)
        _cut_samples(directory.path / "samples.ndjson", step)
        run = _open(directory, training, lock, about, command, mirrors)
        # The doctor compares with earlier updates, which are read from the file.
        run.doctor.catch_up(directory.telemetry)
        run.saved_at, run.notes = step, notes
        return run
    except BaseException:
        lock.__exit__(None, None, None)
        raise


def saved_config(spec: dict[str, Any]) -> LMConfig:
    """Return the settings of a run from its header. Runs of earlier versions never used the chat template."""
    return LMConfig.from_json({"chat": "never", **spec["lm"]})


def require_same(directory: RunDir, training: LMTraining | DPOTraining, about: dict[str, Any]) -> None:
    """Raise `ConfigError` for another model, other prompts or another config than the run's."""
    spec = directory.read_header()["spec"]
    if "lm" not in spec:
        raise ConfigError(f"{directory.path} is not a language run; use `surefoot resume`")
    for name, value in about.items():
        if spec.get(name) != value:
            raise ConfigError(
                f"{name} is {value!r} but the run was started with {spec.get(name)!r}; pass the same to resume"
            )
    saved = saved_config(spec).to_json()
    for name, value in training.config.to_json().items():
        # A run may be made longer, and saved more or less often.
        if saved.get(name) != value and name not in ("steps", "checkpoint_every", "keep_checkpoints"):
            raise ConfigError(
                f"{name} is {value!r} but the run was started with {saved.get(name)!r}; pass the same to resume"
            )


def _open(
    directory: RunDir,
    training: LMTraining | DPOTraining,
    lock: RunLock,
    about: dict[str, Any],
    command: Sequence[str],
    mirrors: Sequence[Mirror],
) -> LMRun:
    doctor = LiveDoctor(language_rules())
    recorder = open_recorder(directory, RecordingOptions(), record=True, mirrors=[doctor, *mirrors])
    recorder.header(
        env=f"language: {about.get('model', '')}",
        seed=training.config.seed,
        config={"lm": training.config.to_json(), **training.ppo.to_json()},
        versions=_versions(),
        command=command,
        threads=torch.get_num_threads(),
        exact=True,
        path=training.path,
        path_reason=training.path_reason,
        # Environment steps are tokens here; this is the most that the run can have.
        total_steps=training.config.steps * training.config.responses * training.config.max_new_tokens,
        git_commit=git_commit(Path.cwd()),
    )
    run = LMRun(directory, training, recorder, lock, doctor)
    if training.skipped:
        run.notes.append(f"{len(training.skipped)} prompts were left out: {training.skipped[0]}")
        recorder.event("prompts_skipped", run.notes[-1], {"count": len(training.skipped)})
    return run


def _versions() -> dict[str, str]:
    return versions() | {package: version(package) for package in ("transformers", "tokenizers")}


def _cut_samples(path: Path, step: int) -> None:
    """Remove the samples of steps after `step`, and an incomplete last line."""
    if not path.is_file():
        return
    remaining: list[str] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                remaining.append(line)
        except (ValueError, KeyError, TypeError):
            break
    replace_file(REAL_FS, path, "".join(line + "\n" for line in remaining).encode())


def fingerprint(path: Path | str) -> str:
    """Return the sha256 of a file, by which a resumed run recognises its prompts."""
    return sha256(Path(os.fspath(path)).read_bytes()).hexdigest()
