"""The data that a progress display shows, in bounded memory for runs of any length."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from surefoot.cli.dashboard.braille_plot import ChartData
from surefoot.cli.dashboard.metric_ranges import KEYS, RECENT, MetricReading, Surroundings, readings
from surefoot.cli.dashboard.numbers import number
from surefoot.learn.report import UpdateReport
from surefoot.telemetry.doctor.findings import Finding
from surefoot.train.progress_event import EvalPoint, Moment

X, MEAN, LOW, HIGH, METRICS = 0, 1, 2, 3, 4
"""Columns of a trace: env steps, mean return, lowest and highest episode, then one for each of `KEYS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """Properties of a run that are known before its first update."""

    env: str
    run_dir: str
    settings: dict[str, str]
    """Main settings as short texts: {"lr": "3e-4", "clip": "0.2", …}."""
    seed: int
    path_note: str
    """Implementation that learns, and the reason."""
    world_note: str
    """Environment, and the number of its copies."""
    preset: str
    target: float | None = None
    """Mean return at which the task counts as solved, if known."""
    target_kl: float | None = None
    max_grad_norm: float | None = None
    max_entropy: float | None = None
    """Entropy of the uniform policy, ln|A|; None for continuous actions."""
    recorded: bool = True
    """Telemetry and a report are written."""
    earlier: tuple[EvalPoint, ...] = ()
    """Evaluations before this process, of a run that is resumed."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A note, an evaluation or a checkpoint. `times` counts repetitions."""

    seconds: float
    text: str
    times: int = 1


class Trace:
    """The rows of a run, merged to at most `capacity`.

    When it is full, neighbouring rows are merged, and each row then stands for twice as many updates: means are averaged,
    the lowest and highest values remain.
    """

    def __init__(self, columns: int, capacity: int = 512) -> None:
        self._rows = np.full((capacity, columns), np.nan)
        self._used = 0
        self._stride = 1
        self._pending: np.ndarray | None = None
        self._waiting = 0

    def add(self, row: Sequence[float]) -> None:
        new = np.array(row, dtype=float)
        self._pending = new if self._pending is None else _sum(self._pending, new)
        self._waiting += 1
        if self._waiting < self._stride:
            return
        self._rows[self._used] = _mean(self._pending, self._waiting)
        self._pending, self._waiting = None, 0
        self._used += 1
        if self._used == len(self._rows):
            self._halve()

    def rows(self) -> np.ndarray:
        """Return [R, columns], oldest first, including the incomplete last row."""
        finished = self._rows[: self._used]
        if self._pending is None:
            return finished
        return np.vstack([finished, _mean(self._pending, self._waiting)])

    def _halve(self) -> None:
        half = len(self._rows) // 2
        self._rows[:half] = _mean(_sum(self._rows[0::2], self._rows[1::2]), 2)
        self._used, self._stride = half, self._stride * 2


def _sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = a + b
    out[..., LOW] = np.fmin(a[..., LOW], b[..., LOW])
    out[..., HIGH] = np.fmax(a[..., HIGH], b[..., HIGH])
    return out


def _mean(summed: np.ndarray, count: int) -> np.ndarray:
    out = summed / count
    out[..., LOW : HIGH + 1] = summed[..., LOW : HIGH + 1]
    return out


@dataclass(slots=True)
class RunHistory:
    """All data that a display shows; `add` takes one moment and costs microseconds."""

    header: RunHeader
    last: Moment | None = None
    evaluations: list[EvalPoint] = field(default_factory=list[EvalPoint])
    events: deque[Notice] = field(default_factory=lambda: deque[Notice](maxlen=64))
    checkpoint: int | None = None
    """Update number of the newest checkpoint saved by this process."""
    findings: dict[str, Finding] = field(default_factory=dict[str, Finding])
    """Open findings of the doctor by rule, without advice."""
    best_return: float | None = None
    """Highest mean over 100 episodes so far."""
    _first: UpdateReport | None = None
    _started_at: int = 0
    _recent: deque[UpdateReport] = field(default_factory=lambda: deque[UpdateReport](maxlen=RECENT))
    _trace: Trace = field(default_factory=lambda: Trace(METRICS + len(KEYS)))
    _clock: deque[tuple[float, int]] = field(default_factory=lambda: deque[tuple[float, int]](maxlen=40))
    _spent: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, moment: Moment) -> None:
        report = moment.report
        if self._first is None:
            self._first = report
            self._started_at = moment.env_steps - report.samples
            self._clock.append((0.0, self._started_at))
        self.last = moment
        self._recent.append(report)
        self._trace.add(_row(moment))
        if moment.seconds - self._clock[-1][0] >= 0.25:
            self._clock.append((moment.seconds, moment.env_steps))
        for name, seconds in report.seconds.items():
            self._spent[name] = self._spent.get(name, 0.0) + seconds
        mean = moment.recent_return
        # Means over fewer than 100 episodes vary too much to be compared.
        if mean is not None and moment.episodes >= 100 and (self.best_return is None or mean > self.best_return):
            self.best_return = mean
        self._add_events(moment)

    def _add_events(self, moment: Moment) -> None:
        for text in moment.notes:
            self.add_event(moment.seconds, text)
        for finding in moment.findings:
            self.findings.pop(finding.rule, None)
            if finding.status == "open" and finding.severity != "info":
                self.findings[finding.rule] = finding
        if moment.evaluation is not None:
            self.evaluations.append(moment.evaluation)
            self.add_event(moment.seconds, evaluation_sentence(moment.evaluation))
        if moment.checkpoint is not None:
            old = next((e for e in self.events if e.text == checkpoint_sentence(self.checkpoint)), None)
            if old is not None:
                self.events.remove(old)
            self.checkpoint = moment.checkpoint
            self.add_event(moment.seconds, checkpoint_sentence(moment.checkpoint))

    def add_event(self, seconds: float, text: str) -> None:
        """Add an event; an existing one moves to the end and its count increases."""
        text = printable(text)
        for event in self.events:
            if event.text == text:
                self.events.remove(event)
                self.events.append(Notice(seconds, text, event.times + 1))
                return
        self.events.append(Notice(seconds, text))

    @property
    def best_evaluation(self) -> EvalPoint | None:
        return max((*self.header.earlier, *self.evaluations), key=lambda e: e.mean, default=None)

    @property
    def progress(self) -> float:
        if self.last is None or self.last.total_steps <= 0:
            return 0.0
        return min(1.0, self.last.env_steps / self.last.total_steps)

    @property
    def rate(self) -> float:
        """Environment steps per second over about the last ten seconds; 0 if unknown."""
        if self.last is None:
            return 0.0
        seconds, steps = self._clock[0]
        passed = self.last.seconds - seconds
        return (self.last.env_steps - steps) / passed if passed > 0 else 0.0

    @property
    def overall_rate(self) -> float:
        """Environment steps per second since this process started; 0 if unknown."""
        if self.last is None or self.last.seconds <= 0:
            return 0.0
        return (self.last.env_steps - self._started_at) / self.last.seconds

    @property
    def eta(self) -> float:
        """Seconds to the end of the run at the current rate; infinite if unknown."""
        if self.last is None or self.rate <= 0:
            return math.inf
        return max(0, self.last.total_steps - self.last.env_steps) / self.rate

    def readings(self) -> list[MetricReading]:
        if self._first is None or self.last is None:
            return []
        header, recent = self.header, self.last.recent_return
        losses = self._trace.rows()[-64:, METRICS + KEYS.index("value_loss")]
        losses = losses[np.isfinite(losses)]
        around = Surroundings(
            progress=self.progress,
            first=self._first,
            usual_value_loss=float(np.median(losses)) if losses.size else 0.0,
            target_reached=header.target is not None and recent is not None and recent >= header.target,
            target_kl=header.target_kl,
            max_grad_norm=header.max_grad_norm,
            max_entropy=header.max_entropy,
        )
        return readings(self._recent, around)

    def metric(self, key: str) -> np.ndarray:
        """Return the values of one metric over the run, oldest first."""
        return self._trace.rows()[:, METRICS + KEYS.index(key)]

    def metric_picture(self, key: str) -> ChartData:
        """Return the curve of one metric on the x axis of the return curve."""
        rows = self._trace.rows()
        y = rows[:, METRICS + KEYS.index(key)]
        missing = np.full_like(y, np.nan)
        return ChartData(
            x=rows[:, X], y=y, low=missing, high=missing, x_start=float(self._started_at), x_end=self._right_edge()
        )

    def _right_edge(self) -> float:
        """Return 1/16, 1/8, … of the run: the axis stays fixed for a while, so that the line visibly grows."""
        if self.last is None:
            return 1.0
        start, end = float(self._started_at), float(self.last.total_steps)
        edges = (start + (end - start) / part for part in (16, 8, 4, 2, 1))
        return next((edge for edge in edges if edge >= self.last.env_steps), float(self.last.env_steps))

    def picture(self) -> ChartData:
        """Return the curve of returns with its evaluations and its target."""
        rows = self._trace.rows()
        return ChartData(
            x=rows[:, X],
            y=rows[:, MEAN],
            low=rows[:, LOW],
            high=rows[:, HIGH],
            x_start=float(self._started_at),
            x_end=self._right_edge(),
            marks=tuple((float(e.env_steps), e.mean) for e in self.evaluations if math.isfinite(e.mean)),
            target=self.header.target,
        )

    def time_split(self) -> list[tuple[str, float]]:
        """Return shares of the wall time that add up to 1: env, policy, learn, rest; empty if unknown."""
        wall = 0.0 if self.last is None else self.last.seconds
        spent = self._spent
        parts = {name: spent.get(name, 0.0) for name in ("env", "policy")}
        if not any(parts.values()):
            parts = {"collect": spent.get("collect", 0.0)}
        parts["learn"] = spent.get("learn", 0.0) + spent.get("prepare", 0.0)
        known = sum(parts.values())
        total = max(wall, known)
        if total <= 0:
            return []
        return [*((name, seconds / total) for name, seconds in parts.items()), ("rest", (total - known) / total)]


def printable(text: str) -> str:
    """Return the text on one line without control characters, since a note must not move the cursor."""
    return "".join(c if c.isprintable() else " " for c in text).strip()


def checkpoint_sentence(update: int | None) -> str:
    return "no checkpoint yet" if update is None else f"checkpoint {update:06} saved"


def evaluation_sentence(point: EvalPoint) -> str:
    best = ", the best so far" if point.is_best else ""
    spread = f"{number(point.mean)} ± {number(point.std)}"
    return f"evaluation at {point.env_steps:,} steps: {spread} over {point.episodes} episodes{best}"


def _row(moment: Moment) -> list[float]:
    report, returns = moment.report, moment.new_returns
    mean = math.nan if moment.recent_return is None else moment.recent_return
    low, high = (min(returns), max(returns)) if returns else (math.nan, math.nan)
    values = [getattr(report, key) for key in KEYS]
    return [moment.env_steps, mean, low, high, *(math.nan if v is None else v for v in values)]
