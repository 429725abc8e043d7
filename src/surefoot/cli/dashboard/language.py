"""The dashboard of a language run: score and judge, KL, fluency, guards, and what the model writes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from surefoot.cli.dashboard.braille_plot import ChartData, chart, sparkline
from surefoot.cli.dashboard.frame import ACCENT, ROLE_STYLES, WIDE, progress_bar
from surefoot.cli.dashboard.history import Notice, printable
from surefoot.cli.dashboard.numbers import duration, number
from surefoot.cli.dashboard.text_boxes import Line, box, fit, length, spread, wrap

if TYPE_CHECKING:
    from surefoot.lm.training import LMStep

# (metric, label) in the order of the panel; a run shows those that it has.
METRICS = (
    ("score", "score"),
    ("judge", "judge"),
    ("kl", "KL, nats"),
    ("beta", "beta"),
    ("response_length", "length"),
    ("reference_nll", "NLL of reference"),
    ("repeated_4grams", "repetition"),
    ("refusals", "refusals"),
    ("distinct_2", "distinct pairs"),
    ("preference_accuracy", "accuracy"),
    ("held_out_accuracy", "held out"),
)
# (metric, the setting that limits it, label): metrics of an evaluation, relative to the answers of the base model.
LIMITS = (
    ("kl", "kl_budget", "KL"),
    ("eval_nll_drift", "nll_limit", "reference NLL"),
    ("eval_repetition_drift", "repetition_limit", "repetition"),
    ("eval_refusals_drift", "refusal_limit", "refusals"),
    ("eval_diversity_loss", "diversity_limit", "alike"),
)
SIDE = 50
"""Width of the right column of a wide terminal."""
# Steps that are remembered; longer runs show their last ones.
CAPACITY = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageHeader:
    """Properties of a language run that are known before its first step."""

    model: str
    algorithm: str
    run_dir: str
    steps: int
    resume: str
    limits: dict[str, float | None]
    """The settings of the guards by name; None: off."""


@dataclass(frozen=True, slots=True)
class LanguageMoment:
    """One step, the sentences about it, and the seconds since the start."""

    step: LMStep
    notes: Sequence[str]
    seconds: float


@dataclass(slots=True)
class LanguageHistory:
    """What the dashboard of a language run shows."""

    header: LanguageHeader
    first: LanguageMoment | None = None
    last: LanguageMoment | None = None
    stats: deque[dict[str, float]] = field(default_factory=lambda: deque[dict[str, float]](maxlen=CAPACITY))
    events: deque[Notice] = field(default_factory=lambda: deque[Notice](maxlen=32))

    def add(self, moment: LanguageMoment) -> None:
        self.first, self.last = self.first or moment, moment
        self.stats.append({"step": float(moment.step.number), **moment.step.stats})
        for note in moment.notes:
            self.add_event(moment.seconds, note)

    def add_event(self, seconds: float, text: str) -> None:
        self.events.append(Notice(seconds, printable(text)))

    def values(self, name: str) -> np.ndarray:
        """Return a metric over the steps, NaN where it was not measured."""
        return np.array([row.get(name, math.nan) for row in self.stats])

    def newest(self, name: str) -> float | None:
        """Return the last measured value of a metric."""
        return next((row[name] for row in reversed(self.stats) if name in row), None)

    @property
    def first_step(self) -> int:
        """Steps before this process: those of a resumed run."""
        return 0 if self.first is None else self.first.step.number - 1

    @property
    def eta(self) -> float:
        """Seconds to the last step at the speed so far."""
        if self.last is None:
            return math.inf
        passed = self.last.step.number - self.first_step
        return self.last.seconds / passed * (self.header.steps - self.last.step.number)


def language_frame(history: LanguageHistory, width: int, height: int, elapsed: float) -> list[Line]:
    """Return exactly `height` lines of exactly `width` cells."""
    header = history.header
    title: Line = [(" surefoot lm ", "bold reverse cyan"), ("  ", ""), (header.model, "bold")]
    title += [("  ·  ", "dim"), (header.algorithm, "")]
    lines = [spread(title, [(header.run_dir + " ", "dim")], width), _progress(history, width, elapsed)]
    foot = spread([(" Ctrl-C ", "reverse"), (" saves and stops", "")], [(header.resume + " ", "dim")], width)
    room = height - 3
    numbers = [*_metrics(history, SIDE), *_guards(history, SIDE)]
    if width >= WIDE and room >= len(numbers) + 8:
        left = _score(history, width - SIDE, len(numbers))
        lines += [[*a, *b] for a, b in zip(left, numbers, strict=True)]
        room -= len(numbers)
    else:
        numbers = [*_metrics(history, width), *_guards(history, width)]
        if room - len(numbers) >= 12:
            lines += _score(history, width, 9)
            room -= 9
        lines += numbers[: max(0, room - 4)]
        room -= min(len(numbers), max(0, room - 4))
    notes = [[(f"{duration(e.seconds):>7}  ", "dim"), (e.text, "")] for e in list(history.events)[-max(0, room // 4) :]]
    rows = room - 2 - len(notes)
    if width >= WIDE:
        half = width // 2
        sides = [_samples(moment, size, rows) for moment, size in ((history.first, half), (history.last, width - half))]
        lines += [[*a, *b] for a, b in zip(*sides, strict=True)]
    else:
        lines += _samples(history.last, width, rows)
    lines = [*lines, *notes][: height - 1]
    lines += [[("", "")]] * (height - 1 - len(lines))
    return [fit(line, width) for line in [*lines, foot]]


def language_closing(history: LanguageHistory, ending: str, width: int) -> list[Line]:
    """Return the curve, the numbers and the last samples, which remain in the scrollback."""
    width = max(40, min(width, 100))
    steps = 0 if history.last is None else history.last.step.number
    head: list[Line] = [[(f"{ending} after step {steps} of {history.header.steps}", "bold")]]
    head += [[(f"surefoot lm report {history.header.run_dir}", "cyan")]]
    head += [[(event.text, "")] for event in history.events]
    curve = _score(history, width, 12) if steps else []
    return [*curve, *_metrics(history, width), *box(history.header.model, head, width)]


def _progress(history: LanguageHistory, width: int, elapsed: float) -> Line:
    last = history.last
    if last is None:
        return [(" waiting for the first step …", "dim")]
    share = last.step.number / max(1, history.header.steps)
    rate = last.step.stats["tokens"] / max(1e-9, sum(last.step.seconds.values()))
    eta = max(0.0, history.eta - max(0.0, elapsed - last.seconds))
    tail: Line = [(f" step {last.step.number}", ACCENT), (f" / {history.header.steps} ", "dim")]
    tail += [(f" {rate:,.0f}", "bold"), (" tokens/s ", "dim")]
    tail += [(f" {duration(elapsed)}", ""), (" eta ", "dim"), (f"{duration(eta)} ", "bold")]
    bar = width - 1 - length(tail)
    return [(" ", ""), *(progress_bar(share, bar) if bar >= 4 else []), *tail]


def _score(history: LanguageHistory, width: int, height: int) -> list[Line]:
    x, y = history.values("step"), history.values("score")
    missing = np.full_like(y, np.nan)
    end = float(history.header.steps)
    picture = ChartData(x=x, y=y, low=missing, high=missing, x_start=float(history.first_step), x_end=end)
    lines = [[(text, ROLE_STYLES[role]) for text, role in row] for row in chart(picture, width - 4, height - 2)]
    score, judge = history.newest("score"), history.newest("judge")
    title: Line = [("score", "bold"), ("  ", ""), ("" if score is None else number(score), ROLE_STYLES["line"])]
    right: Line = [] if judge is None else [("judge ", "dim"), (number(judge), ROLE_STYLES["best"])]
    return box(title, lines, width, right=right)


def _metrics(history: LanguageHistory, width: int) -> list[Line]:
    lines: list[Line] = []
    for name, label in METRICS:
        newest = history.newest(name)
        if newest is not None:
            course = sparkline(history.values(name), max(0, min(30, width - 34)))
            lines.append([(f"{label:<17}", ""), (f"{number(newest):>8} ", "bold"), (course, "blue")])
    if history.last is not None:
        cost = "  ".join(f"{part} {number(seconds)}" for part, seconds in history.last.step.seconds.items())
        lines.append([(f"{'seconds':<17}", ""), (cost, "dim")])
    return box("metrics", lines, width, right=[("value · course", "dim")])


def _guards(history: LanguageHistory, width: int) -> list[Line]:
    """Return each guard that is on, with its last value and its limit."""
    lines: list[Line] = []
    for name, setting, label in LIMITS:
        limit, value = history.header.limits.get(setting), history.newest(name)
        if limit is None:
            continue
        # nll_limit is a rise in share; the metric is a ratio.
        now = None if value is None else value - 1.0 if name == "eval_nll_drift" else value
        style = "dim" if now is None else "green" if now <= limit else "bold red"
        text = "not measured yet" if now is None else f"{now:.3g} of {limit:g}"
        lines.append([("● " if now is not None else "○ ", style), (f"{label:<15}", ""), (text, style)])
    best = history.newest("judge_best")
    if best is not None:
        lines.append([("● ", "green"), (f"{'judge':<15}", ""), (f"best {number(best)}", "")])
    return box("guards", lines or [[("off: set nll_limit, kl_budget or pass --judge", "dim")]], width)


def _samples(moment: LanguageMoment | None, width: int, rows: int) -> list[Line]:
    lines: list[Line] = []
    for sample in moment.step.samples if moment is not None else ():
        lines.append([(printable(sample.prompt), "dim"), (f"  {number(sample.score)}", "yellow")])
        lines += [[("  " + text, "")] for text in wrap(printable(sample.response), width - 6)[:3]]
    title = "samples" if moment is None else f"samples of step {moment.step.number}"
    return box(title, lines[: max(0, rows)], width, rows=rows)
