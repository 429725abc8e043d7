"""Progress display of a search, and where its trials run: in this process, in several, or on Ray."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from surefoot.cli.verbs.tune import TuneArgs
    from surefoot.train.tune.final_round import EvaluateFinalists
    from surefoot.train.tune.plan import Plan
    from surefoot.train.tune.report import SearchResult
    from surefoot.train.tune.search import TuneTask


class TuneScreen:
    """A progress bar of trials with the best score; plain lines if the output is not a terminal."""

    def __init__(self, name: str, plan: Plan, *, quiet: bool) -> None:
        self.plan, self.quiet = plan, quiet
        self.console = Console(highlight=False, stderr=quiet)
        self.best: tuple[float, int] | None = None
        self.finished: set[int] = set()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, console=self.console, transient=True)
        self.task = self.progress.add_task(name, total=plan.trials)
        self.live = self.console.is_terminal and not quiet
        if not quiet:
            self.console.print(
                f"{name}: {plan.trials} trials of {plan.seeds} seeds, {plan.sampler}, {plan.scheduler or plan.pruner}"
            )

    def __enter__(self) -> Self:
        if self.live:
            self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show_score(self, number: int, rung: int, score: float) -> None:
        """Show that a trial was evaluated."""
        if rung == self.plan.rungs:
            self.finished.add(number)
            if self.best is None or score > self.best[0]:
                self.best = score, number
            if not self.live:
                self.print_line(f"trial {number}: {score:.1f}   best {self.best[0]:.1f} (trial {self.best[1]})")
        best = "" if self.best is None else f"   best {self.best[0]:.1f}"
        self.progress.update(
            self.task,
            completed=min(number + (rung == self.plan.rungs), self.plan.trials),
            description=f"trial {number}, {rung}/{self.plan.rungs}: {score:.1f}{best}",
        )

    def show_final_score(self, number: int, rung: int, score: float) -> None:
        self.print_line(f"  trial {number}{' (baseline)' if number == 0 else ''}: {score:.1f}")

    def print_line(self, text: str) -> None:
        """Print a line above the progress bar, unless the display is quiet."""
        if not self.quiet:
            (self.progress.console if self.live else self.console).print(text)

    def show_completed(self, study: Any) -> None:
        """Show the trials that other processes completed since the last call."""
        for trial in study.get_trials(deepcopy=False):
            if trial.number not in self.finished and trial.state.name == "COMPLETE":
                self.show_score(trial.number, self.plan.rungs, trial.value)


class TrialRunner(Protocol):
    """Protocol of the places where trials run."""

    play: EvaluateFinalists

    def search(
        self, task: TuneTask, study: Any, plan: Plan, directory: Path, stop: Callable[[], bool], screen: TuneScreen
    ) -> None:
        """Run trials until the plan has all of them, or `stop` returns True."""
        ...


class LocalTrials:
    """Run trials in this process, or in several processes of this machine."""

    def __init__(self, args: TuneArgs) -> None:
        from surefoot.train.tune.final_round import evaluate_in_process

        self.args, self.play = args, evaluate_in_process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def search(
        self, task: TuneTask, study: Any, plan: Plan, directory: Path, stop: Callable[[], bool], screen: TuneScreen
    ) -> None:
        from surefoot.train.tune.search import search

        if (self.args.jobs or 1) == 1:
            search(task, study, plan, directory, stop=stop, on_score=screen.show_score)
            return
        from surefoot.cli.verbs.tune import SEARCH_SHARE, main_in_child

        seconds = None if plan.minutes is None else 60 * plan.minutes * SEARCH_SHARE
        context = multiprocessing.get_context("spawn")
        children = [
            context.Process(target=main_in_child, args=(self.args, directory, worker + 1, seconds), daemon=True)
            for worker in range(self.args.jobs or 1)
        ]
        for child in children:
            child.start()
        stopping = False
        while any(child.is_alive() for child in children):
            screen.show_completed(study)
            # The terminal sends Ctrl-C to the children too; a SIGTERM to this process alone does not reach them.
            if stop() and not stopping:
                stopping = True
                for child in children:
                    child.terminate()
            time.sleep(0.3)
        screen.show_completed(study)


class RayTrials:
    """Run trials on a Ray cluster."""

    def __init__(self, address: str, jobs: int | None, *, insecure: bool) -> None:
        from surefoot.scale.tune_ray import Cluster

        self.cluster = Cluster(address, allow_insecure_cluster=insecure, jobs=jobs)
        self.play = self.cluster.play

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.close()

    def search(
        self, task: TuneTask, study: Any, plan: Plan, directory: Path, stop: Callable[[], bool], screen: TuneScreen
    ) -> None:
        self.cluster.search(task, study, plan, directory, stop=stop, on_score=screen.show_score)


def lines(result: SearchResult, task: TuneTask, directory: Path) -> list[str]:
    """Return the summary of a search: the best trial, the baseline, the settings that mattered, the next command."""
    from surefoot.train.tune.report import BEST, PAGE, score_text

    if result.best is None:
        return [f"no trial was trained to its end; --resume continues the search ({directory})"]

    where = "on new seeds" if result.finals else "on the seeds of the search"
    rows = [f"trial {result.best.number}: {score_text(result.best)} {where}"]
    if result.best.number == 0:
        rows = [f"no trial beat the baseline: {score_text(result.best)} {where}"]
    elif result.base is not None:
        rows.append(f"baseline: {score_text(result.base)}")
    if result.importance:
        top = sorted(result.importance.items(), key=lambda item: -item[1])[:5]
        rows.append("important: " + ", ".join(f"{name} {share:.0%}" for name, share in top))
    rows.append(f"→ {directory / BEST}, {directory / PAGE}")
    graph = f"surefoot graph run {directory / 'best.json'}"
    rows.append(graph if task.name.endswith(".json") else f"surefoot train {task.name} --config {directory / BEST}")
    return rows
