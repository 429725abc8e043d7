"""The screen for logs and pipes: now and then one aligned line, in plain characters."""

from __future__ import annotations

from typing import TextIO

from surefoot.cli.dashboard.end_summary import facts
from surefoot.cli.dashboard.history import RunHeader, RunHistory, evaluation_sentence
from surefoot.cli.dashboard.metric_ranges import out_of_range
from surefoot.cli.dashboard.numbers import duration, number
from surefoot.train.progress_event import Moment

EVERY_SECONDS, EVERY_SHARE = 1.0, 0.01


class LinesScreen:
    """A line a second or a line for each 1 % of the run, whichever comes later; evaluations and new notes always."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._history: RunHistory | None = None
        self._written: Moment | None = None
        self._told: set[str] = set()

    def open(self, header: RunHeader) -> None:
        self._history = RunHistory(header)
        self._written, self._told = None, set()
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
            self._tell(moment)
        if self._is_due(moment):
            self._written = moment
            self._write(status_line(history))

    def close(self, ending: str) -> None:
        history, self._history = self._history, None
        if history is None:
            return
        if history.last is not None and history.last is not self._written:
            self._write(status_line(history))
        for name, text in facts(history, ending):
            self._write(f"  {name:<10}  {text}")

    def _is_due(self, moment: Moment) -> bool:
        before = self._written
        if before is None:
            return True
        later = moment.seconds - before.seconds >= EVERY_SECONDS
        return later and moment.env_steps - before.env_steps >= EVERY_SHARE * moment.total_steps

    def _tell(self, moment: Moment) -> None:
        for text in moment.notes:
            if text not in self._told and len(self._told) < 1000:
                self._told.add(text)
                self._write(f"  note: {text}")
        if moment.evaluation is not None:
            self._write(f"  {evaluation_sentence(moment.evaluation)}")

    def _write(self, text: str) -> None:
        # A log that cannot hold "±", or a pipe whose reader left, is no reason to lose a run.
        encoding = self._stream.encoding or "utf-8"
        text = text.encode(encoding, "replace").decode(encoding)
        try:
            self._stream.write(text.rstrip() + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._history = None


class QuietScreen:
    """Says nothing."""

    def open(self, header: RunHeader) -> None: ...

    def show(self, moment: Moment) -> None: ...

    def close(self, ending: str) -> None: ...


def status_line(history: RunHistory) -> str:
    """Where the run is, in one line: numbers that are out of their range are named at its end."""
    last = history.last
    if last is None:
        return "no update yet"
    found = {r.key: r for r in history.readings()}
    kl = found["approx_kl"]
    mean = "-" if last.recent_return is None else number(last.recent_return)
    over = f"({min(100, last.episodes)} ep)"
    width = len(f"{last.total_steps:,}")
    parts = [
        f"{history.progress * 100:5.1f}%",
        f"{last.env_steps:>{width},} steps",
        f"return {mean:>7} {over:<8}",
        f"kl {number(kl.value):<7} {kl.word:<4}",
        f"clip {found['clip_fraction'].value:.2f}",
        f"ev {found['explained_variance'].value:5.2f}",
        f"{history.rate:>7,.0f} steps/s",
        f"eta {duration(history.eta)}",
    ]
    odd = [f"{r.label} {r.word}" for r in out_of_range(list(found.values())) if r is not kl]
    return "   ".join([*parts, *(["! " + ", ".join(odd)] if odd else [])])
