"""The display for logs and pipes: aligned plain lines, and the summary at the end of a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TextIO

from surefoot.cli.dashboard.history import RunHeader, RunHistory, evaluation_sentence
from surefoot.cli.dashboard.metric_ranges import out_of_range
from surefoot.cli.dashboard.numbers import duration, number
from surefoot.telemetry.doctor.findings import severity_rank
from surefoot.train.progress_event import Moment

EVERY_SECONDS, EVERY_SHARE = 1.0, 0.01
"""At most one line per second and about 100 lines per run, so that a log stays readable."""


class LinesScreen:
    """One line per second or per 1 % of the run, whichever is later; evaluations and new notes always."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._history: RunHistory | None = None
        self._written: Moment | None = None
        self._noted: set[str] = set()

    def open(self, header: RunHeader) -> None:
        self._history = RunHistory(header)
        self._written, self._noted = None, set()
        self._write(f"surefoot train {header.env}, seed {header.seed}, preset {header.preset}")
        self._write("  " + ", ".join(f"{name} {value}" for name, value in header.settings.items()))
        for text in (header.world_note, header.path_note, f"writing to {header.run_dir}"):
            self._write("  " + text)

    def show(self, moment: Moment) -> None:
        history = self._history
        if history is None:
            return
        history.add(moment)
        if moment.notes or moment.evaluation is not None:
            self._write_notes(moment)
        if self._is_due(moment):
            self._written = moment
            self._write(status_line(history))

    def close(self, ending: str) -> None:
        history, self._history = self._history, None
        if history is None:
            return
        if history.last is not None and history.last is not self._written:
            self._write(status_line(history))
        for name, text in summary(history, ending):
            self._write(f"  {name:<10}  {text}")

    def _is_due(self, moment: Moment) -> bool:
        before = self._written
        if before is None:
            return True
        later = moment.seconds - before.seconds >= EVERY_SECONDS
        return later and moment.env_steps - before.env_steps >= EVERY_SHARE * moment.total_steps

    def _write_notes(self, moment: Moment) -> None:
        for text in moment.notes:
            if text not in self._noted and len(self._noted) < 1000:
                self._noted.add(text)
                self._write(f"  note: {text}")
        if moment.evaluation is not None:
            self._write(f"  {evaluation_sentence(moment.evaluation)}")

    def _write(self, text: str) -> None:
        # A stream that cannot encode "±" or a closed pipe must not end the training.
        encoding = self._stream.encoding or "utf-8"
        text = text.encode(encoding, "replace").decode(encoding)
        try:
            self._stream.write(text.rstrip() + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._history = None


class QuietScreen:
    """Show nothing."""

    def open(self, header: RunHeader) -> None: ...

    def show(self, moment: Moment) -> None: ...

    def close(self, ending: str) -> None: ...


def status_line(history: RunHistory) -> str:
    """Return the state of the run in one line; metrics outside their normal range are named at its end."""
    last = history.last
    if last is None:
        return "no update yet"
    by_key = {r.key: r for r in history.readings()}
    kl = by_key["approx_kl"]
    mean = "-" if last.recent_return is None else number(last.recent_return)
    over = f"({min(100, last.episodes)} ep)"
    width = len(f"{last.total_steps:,}")
    parts = [
        f"{history.progress * 100:5.1f}%",
        f"{last.env_steps:>{width},} steps",
        f"return {mean:>7} {over:<8}",
        f"kl {number(kl.value):<7} {kl.word:<4}",
        f"clip {by_key['clip_fraction'].value:.2f}",
        f"ev {by_key['explained_variance'].value:5.2f}",
        f"{history.rate:>7,.0f} steps/s",
        f"eta {duration(history.eta)}",
    ]
    odd = [f"{r.label} {r.word}" for r in out_of_range(list(by_key.values())) if r is not kl]
    return "   ".join([*parts, *(["! " + ", ".join(odd)] if odd else [])])


def summary(history: RunHistory, ending: str) -> list[tuple[str, str]]:
    """Return the lines at the end of a run as (name, text): the ending, the result, the next commands."""
    run, saved = history.header.run_dir, history.checkpoint
    checkpoint = "none saved by this process" if saved is None else f"{run}/checkpoints/{saved:06}"
    lines = [("ending", ending), *_results(history)]
    findings = sorted(history.findings.values(), key=lambda f: (not f.primary, -severity_rank(f.severity)))
    if findings:
        more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
        lines.append(("doctor", f"{findings[0].title}{more}: surefoot doctor {shlex.quote(run)}"))
    verbs = (
        ("prompts eval", "prompts report")
        if history.header.env == "surefoot/Prompts-v0"
        else ("eval", "play", "resume")
    )
    commands = [f"surefoot {verb} {shlex.quote(run)}" for verb in verbs]
    commands += [f"open {run}/report.html"] if history.header.recorded else []
    # Without a checkpoint each of these commands would be refused.
    if saved is None and not Path(run, "checkpoints").is_dir():
        commands = []
    return [*lines, ("checkpoint", checkpoint), *zip(["next", *[""] * len(commands)], commands, strict=False)]


def _results(history: RunHistory) -> list[tuple[str, str]]:
    last = history.last
    if last is None:
        return [("result", "no update was completed")]
    pace = f"{duration(last.seconds)} ({history.overall_rate:,.0f} steps/s)"
    steps = f"{last.env_steps:,} of {last.total_steps:,}, this process in {pace}"
    out = [("steps", steps)]
    if last.recent_return is not None:
        recent = min(100, last.episodes)
        out.append(
            ("return", f"{number(last.recent_return)} (mean of the last {recent} of {last.episodes:,} episodes)")
        )
    if last.recent_success is not None:
        out.append(("success", f"{last.recent_success * 100:.0f} % of them"))
    best = history.best_evaluation
    if best is not None:
        spread = f"{number(best.mean)} ± {number(best.std)}"
        out.append(("best eval", f"{spread} over {best.episodes} episodes, at {best.env_steps:,} steps"))
    target = history.header.target
    if target is not None:
        reached = max((e.mean for e in history.evaluations), default=history.best_return)
        verb = "reached" if reached is not None and reached >= target else "not reached"
        out.append(("target", f"{number(target)} {verb}"))
    return out
