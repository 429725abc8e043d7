"""What `PPO.learn` says while it runs: lines, a progress bar, TensorBoard."""

from __future__ import annotations

import logging
import re
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from surefoot.learn.report import UpdateReport
from surefoot.telemetry.export.formats import TensorBoardMirror
from surefoot.telemetry.schema import VERSION, Episodes, HeaderRecord, UpdateRecord
from surefoot.train.collect.episodes import Episode
from surefoot.train.training import Training

log = logging.getLogger("surefoot")


class Telling:
    """Tells of each update wherever it was asked to: a line every `lines_every` updates (0 for none), a bar, curves."""

    def __init__(self, training: Training, *, lines_every: int, progress_bar: bool, curves: Path | None) -> None:
        self.training, self.lines_every = training, lines_every
        self._stack = ExitStack()
        self._bar = _Bar(training) if progress_bar else None
        self._curves = _Curves(training, curves) if curves is not None else None
        self._began = (time.perf_counter(), training.env_steps)

    def __enter__(self) -> Self:
        if self._curves is not None:
            self._stack.callback(self._curves.close)
        if self._bar is not None:
            self._stack.callback(self._bar.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def tell(self, report: UpdateReport) -> None:
        """One update is over."""
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
        seconds, steps = time.perf_counter() - self._began[0], training.env_steps - self._began[1]
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
        said = "learning" if recent is None else f"return {recent:.1f}"
        self._progress.update(self._task, completed=self._training.env_steps, description=said)

    def close(self) -> None:
        self._progress.stop()


class _Curves:
    """Updates as records, mirrored to TensorBoard without a record of their own."""

    def __init__(self, training: Training, directory: Path) -> None:
        self._training, self._run = training, directory.name
        self._mirror = TensorBoardMirror(directory)
        spec = training.spec
        self._mirror.write(
            HeaderRecord(**self._common(), env=spec.env, seed=spec.seed, config=spec.to_json(), session="")
        )

    def add(self, report: UpdateReport, fresh: list[Episode]) -> None:
        told = [None if e.success is None or e.success != e.success else bool(e.success) for e in fresh]
        episodes = Episodes.of([e.return_ for e in fresh], [e.length for e in fresh], told)
        self._mirror.write(UpdateRecord(**self._common(), m={**report.metrics(), **report.stats}, episodes=episodes))

    def close(self) -> None:
        self._mirror.close()

    def _common(self) -> dict[str, Any]:
        so_far = {"env_steps": self._training.env_steps, "updates": self._training.learner.updates}
        return {"v": VERSION, "run": self._run, "seq": 0, "t": time.time(), **so_far}


def curves_directory(root: str | Path | None, name: str, *, fresh: bool) -> Path | None:
    """SB3's layout: root/PPO_1, PPO_2, …; the next number for a fresh start, the last one for going on."""
    if root is None:
        return None
    taken = [0]
    for path in Path(root).iterdir() if Path(root).is_dir() else ():
        match = re.fullmatch(re.escape(name) + r"_(\d+)", path.name)
        taken += [int(match[1])] if match else []
    return Path(root) / f"{name}_{max(taken) + 1 if fresh else max(max(taken), 1)}"
