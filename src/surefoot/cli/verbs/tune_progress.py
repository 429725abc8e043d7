"""What a search looks like while it goes on, and several processes that search together."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from surefoot.cli.verbs.tune import TuneArgs
    from surefoot.train.tune.final_round import Play, TrialStanding
    from surefoot.train.tune.report import SearchResult
    from surefoot.train.tune.search import Plan, TuneTask


class TuneScreen:
    """A bar of trials with the best so far; plain lines where there is no terminal."""

    def __init__(self, name: str, plan: Plan, *, quiet: bool) -> None:
        self.plan, self.quiet = plan, quiet
        self.console = Console(highlight=False, stderr=quiet)
        self.best: tuple[float, int] | None = None
        self.finished: set[int] = set()
        words = TextColumn("{task.description}")
        self.progress = Progress(
            words, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=self.console, transient=True
        )
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def tell(self, number: int, rung: int, score: float) -> None:
        """A trial was judged."""
        if rung == self.plan.rungs:
            self.finished.add(number)
            if self.best is None or score > self.best[0]:
                self.best = score, number
            if not self.live:
                self.say(f"trial {number}: {score:.1f}   best {self.best[0]:.1f} (trial {self.best[1]})")
        best = "" if self.best is None else f"   best {self.best[0]:.1f}"
        described = f"trial {number}, {rung}/{self.plan.rungs}: {score:.1f}{best}"
        self.progress.update(self.task, completed=min(number + (rung == self.plan.rungs), self.plan.trials))
        self.progress.update(self.task, description=described)

    def tell_final(self, number: int, rung: int, score: float) -> None:
        """A finalist was judged."""
        self.say(f"  trial {number}{' (base)' if number == 0 else ''}: {score:.1f}")

    def say(self, text: str) -> None:
        if not self.quiet:
            (self.progress.console if self.live else self.console).print(text)

    def look(self, study: Any) -> None:
        """Tell what other processes did since last time."""
        for trial in study.get_trials(deepcopy=False):
            if trial.number not in self.finished and trial.state.name == "COMPLETE":
                self.tell(trial.number, self.plan.rungs, trial.value)


class TrialRunner(Protocol):
    """Where trials run."""

    play: Play

    def search(
        self, task: TuneTask, study: Any, plan: Plan, directory: Path, stop: Callable[[], bool], screen: TuneScreen
    ) -> None:
        """Try settings until the plan's trials are done, or `stop` says so."""
        ...


class LocalTrials:
    """This process, or several of this machine."""

    def __init__(self, args: TuneArgs) -> None:
        from surefoot.train.tune.final_round import one_by_one

        self.args, self.play = args, one_by_one

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def search(
        self, task: TuneTask, study: Any, plan: Plan, directory: Path, stop: Callable[[], bool], screen: TuneScreen
    ) -> None:
        from surefoot.train.tune.search import search

        if (self.args.jobs or 1) == 1:
            search(task, study, plan, directory, stop=stop, tell=screen.tell)
        else:
            self._together(plan, directory, study, stop, screen)

    def _together(self, plan: Plan, directory: Path, study: Any, stop: Callable[[], bool], screen: TuneScreen) -> None:
        """In several processes until they are done; they share the study's file."""
        from surefoot.cli.verbs.tune import SEARCH_SHARE, main_in_child

        seconds = None if plan.minutes is None else 60 * plan.minutes * SEARCH_SHARE
        context = multiprocessing.get_context("spawn")
        children = [
            context.Process(target=main_in_child, args=(self.args, directory, worker + 1, seconds), daemon=True)
            for worker in range(self.args.jobs or 1)
        ]
        for child in children:
            child.start()
        told = False
        while any(child.is_alive() for child in children):
            screen.look(study)
            if stop() and not told:  # Ctrl-C reaches the children by themselves; a kill of this process alone does not
                told = True
                for child in children:
                    child.terminate()
            time.sleep(0.3)
        screen.look(study)


class RayTrials:
    """A Ray cluster."""

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
        self.cluster.search(task, study, plan, directory, stop=stop, tell=screen.tell)


def lines(found: SearchResult, task: TuneTask, directory: Path) -> list[str]:
    """What came of a search, for people."""
    from surefoot.train.diagnose.statistics import summarize
    from surefoot.train.tune.report import BEST, PAGE

    if found.best is None:
        return [f"no trial was trained to its end; --resume goes on ({directory})"]

    def told(one: TrialStanding) -> str:
        return str(summarize(one.scores)) if one.scores else f"{one.value:.1f}"

    where = "on fresh seeds" if found.finals else "on the seeds of the search"
    rows = [f"trial {found.best.number}: {told(found.best)} {where}"]
    if found.best.number == 0:
        rows = [f"nothing beat the base: {told(found.best)} {where}"]
    elif found.base is not None:
        rows.append(f"base:    {told(found.base)}")
    if found.importance:
        top = sorted(found.importance.items(), key=lambda item: -item[1])[:5]
        rows.append("mattered: " + ", ".join(f"{name} {share:.0%}" for name, share in top))
    rows.append(f"→ {directory / BEST}, {directory / PAGE}")
    graph = f"surefoot graph run {directory / 'best.json'}"
    rows.append(graph if task.name.endswith(".json") else f"surefoot train {task.name} --config {directory / BEST}")
    return rows
