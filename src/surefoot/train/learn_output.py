"""The output of `PPO.learn`: lines, a progress bar, TensorBoard."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path
from typing import Any, Self

from surefoot.learn.report import UpdateReport
from surefoot.telemetry.export.formats import TensorBoardMirror
from surefoot.telemetry.schema import VERSION, Episodes, HeaderRecord, UpdateRecord
from surefoot.train.collect.episodes import Episode
from surefoot.train.training import Training

log = logging.getLogger("surefoot")


class LearnOutput:
    """Reports each update: one line every `lines_every` updates (0 for none), a progress bar, TensorBoard curves."""

    def __init__(self, training: Training, *, lines_every: int, progress_bar: bool, curves: Path | None) -> None:
        self.training, self.lines_every = training, lines_every
        self._bar = _Bar(training) if progress_bar else None
        self._curves = _Curves(training, curves) if curves is not None else None
        self._start = (time.perf_counter(), training.env_steps)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if self._bar is not None:
                self._bar.close()
        finally:
            if self._curves is not None:
                self._curves.close()

    def add(self, report: UpdateReport) -> None:
        for lost in self.training.take_losses():
            log.warning(lost)
        fresh = self.training.collector.episodes.take_fresh()
        if self._curves is not None:
            self._curves.add(report, fresh)
        if self._bar is not None:
            self._bar.move()
        if self.lines_every and report.update % self.lines_every == 0:
            print(self._line(report), flush=True)

    def _line(self, report: UpdateReport) -> str:
        training = self.training
        recent, length, _ = training.collector.episodes.recent()
        seconds, steps = time.perf_counter() - self._start[0], training.env_steps - self._start[1]
        parts = [
            f"update {report.update}",
            f"steps {training.env_steps:,}/{training.spec.total_steps:,}",
            "return -" if recent is None else f"return {recent:.1f}",
            "length -" if length is None else f"length {length:.0f}",
            f"kl {report.approx_kl:.4f}",
            f"explained {report.explained_variance:.2f}",
            f"{steps / max(seconds, 1e-9):,.0f} steps/s",
        ]
        return "  ".join(parts + ([f"skipped: {report.skipped_reason}"] if report.skipped_reason else []))


class _Bar:
    def __init__(self, training: Training) -> None:
        from rich.progress import Progress

        self._training = training
        self._progress = Progress(transient=True)
        self._task = self._progress.add_task("learning", total=training.spec.total_steps, completed=training.env_steps)
        self._progress.start()

    def move(self) -> None:
        recent = self._training.collector.episodes.recent()[0]
        text = "learning" if recent is None else f"return {recent:.1f}"
        self._progress.update(self._task, completed=self._training.env_steps, description=text)

    def close(self) -> None:
        self._progress.stop()


class _Curves:
    """Writes updates to TensorBoard, without a telemetry file."""

    def __init__(self, training: Training, directory: Path) -> None:
        self._training, self._run = training, directory.name
        self._mirror = TensorBoardMirror(directory)
        spec = training.spec
        self._mirror.write(
            HeaderRecord(**self._common(), env=spec.env, seed=spec.seed, config=spec.to_json(), session="")
        )

    def add(self, report: UpdateReport, fresh: list[Episode]) -> None:
        # A success of NaN means that the env did not report one.
        success = [None if e.success is None or e.success != e.success else bool(e.success) for e in fresh]
        episodes = Episodes.of([e.return_ for e in fresh], [e.length for e in fresh], success)
        self._mirror.write(UpdateRecord(**self._common(), m={**report.metrics(), **report.stats}, episodes=episodes))

    def close(self) -> None:
        self._mirror.close()

    def _common(self) -> dict[str, Any]:
        counters = {"env_steps": self._training.env_steps, "updates": self._training.learner.updates}
        return {"v": VERSION, "run": self._run, "seq": 0, "t": time.time(), **counters}


def curves_directory(root: str | Path | None, name: str, *, fresh: bool) -> Path | None:
    """Return SB3's directory, root/PPO_1, PPO_2, …: the next number for a new run, the last one to continue it."""
    if root is None:
        return None
    numbers = [0]
    for path in Path(root).iterdir() if Path(root).is_dir() else ():
        match = re.fullmatch(re.escape(name) + r"_(\d+)", path.name)
        numbers += [int(match[1])] if match else []
    return Path(root) / f"{name}_{max(numbers) + 1 if fresh else max(max(numbers), 1)}"
