"""A search whose trials run on a Ray cluster: Ray Tune says where and how long, the study's book says what and why.

Trials are the same contests as at home. Their checkpoints are ours; Ray Tune hands the directories round. What Ray writes
about itself beside them is pickled: nothing here reads it, and it is deleted when the search ends.
"""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import signal
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from surefoot.errors import ConfigError
from surefoot.scale.ray_backend import connect, load_ray
from surefoot.scale.ray_trial import Rungs
from surefoot.scale.remote_trials import Book
from surefoot.train.device import pin_threads
from surefoot.train.tune.final_round import TrialStanding, final_scores
from surefoot.train.tune.search import Plan, Tell, TuneTask, nobody, optuna

FOLDER = "ray"
RETRIES = 3
"""How often a trial whose worker was lost goes on from its last rung."""
REDUCTION = 2
"""Of the trials that reach a rung, ASHA lets the better half go on."""
QUIET = {
    "TUNE_DISABLE_AUTO_INIT": "1",  # Ray is never started by itself
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C is ours: it saves
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # envs of the user's own are found from where the search was started
}
Stop = Callable[[], bool]


class Cluster:
    """A Ray cluster to search on, connected to by the rules of `surefoot.scale.ray_backend.connect`."""

    def __init__(self, address: str, *, allow_insecure_cluster: bool = False, jobs: int | None = None) -> None:
        self.ray, self.tune, self.jobs = load_ray("ray-tune"), load_tune(), jobs
        """At most so many trials at once; None leaves it to the cluster's CPUs."""
        self._started = connect(self.ray, address, allow_insecure_cluster=allow_insecure_cluster)

    def search(
        self,
        task: TuneTask,
        study: Any,
        plan: Plan,
        directory: Path,
        *,
        stop: Stop = lambda: False,
        tell: Tell = nobody,
    ) -> None:
        """What `surefoot.train.tune.search.search` does, elsewhere. Several machines need `directory` on a disk they share."""
        book = Book(task, study, plan, directory.resolve(), tell)
        try:
            if plan.scheduler == "pbt":
                self._population(book, stop)
            else:
                self._halving(book, stop)
        finally:
            book.close()
            _clean(book)
        if book.broken:
            raise ConfigError(book.broken)

    def play(
        self, task: TuneTask, chosen: Sequence[TrialStanding], plan: Plan, stop: Stop
    ) -> Iterator[tuple[TrialStanding, list[float]]]:
        """The finalists side by side; a worker that is lost begins again."""
        ray = self.ray
        final = ray.remote(num_cpus=1, max_retries=RETRIES)(_final)
        shared = ray.put(task)
        pending = {final.remote(shared, one.params, plan): one for one in chosen}
        while pending and not stop():
            for done in ray.wait(list(pending), timeout=0.3)[0]:
                yield pending.pop(done), ray.get(done)
        for reference in pending:
            ray.cancel(reference, force=True)

    def close(self) -> None:
        """Leave the cluster as it was."""
        if self._started:
            self.ray.shutdown()

    def _halving(self, book: Book, stop: Stop) -> None:
        scheduler = self.tune.schedulers.ASHAScheduler(
            time_attr="rung", max_t=book.plan.rungs, grace_period=1, reduction_factor=REDUCTION
        )
        scheduler.set_search_properties("score", "max")
        _remember(scheduler, book.study)
        options = {"search_alg": _searcher(self.tune, book), "max_concurrent_trials": self.jobs}
        self._run(book, scheduler, stop, keep=1, num_samples=-1, **options)

    def _population(self, book: Book, stop: Stop) -> None:
        members = book.population()
        if not members:
            return
        if not book.task.moving:
            raise ConfigError(f"a population needs a setting that may change in mid-run; of {book.task.name} none may")

        def explore(config: dict[str, Any]) -> dict[str, Any]:
            return {"order": book.heir(config["order"])}

        scheduler = self.tune.schedulers.PopulationBasedTraining(
            time_attr="rung",
            perturbation_interval=1,
            custom_explore_fn=explore,
            log_config=False,
            synch=False,  # in step it would wait for ever where a member ends before the others (pbt.py of Ray 2.60)
        )
        scheduler.set_search_properties("score", "max")
        # A loser may load what a winner saved a while ago, so more than the last is kept.
        self._run(book, scheduler, stop, keep=4, config={"order": self.tune.grid_search(members)})

    def _run(self, book: Book, scheduler: Any, stop: Stop, *, keep: int, **options: Any) -> None:
        tune = self.tune
        trial = type("Trial", (Rungs, tune.Trainable), {})
        with _quiet():
            # Not a Tuner: that would write all of this down, pickled, for a restore that is not ours.
            tune.run(
                tune.with_parameters(trial, task=book.task, plan=book.plan),
                name=time.strftime("%Y%m%d-%H%M%S"),
                storage_path=str(book.directory / FOLDER),
                scheduler=scheduler,
                stop=_stopper(tune, lambda: bool(book.broken) or stop()),
                callbacks=[_listener(tune, book)],
                resources_per_trial={"cpu": 1},
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1, num_to_keep=keep),
                max_failures=RETRIES,
                reuse_actors=True,
                raise_on_failed_trial=False,
                trial_dirname_creator=_folder,
                verbose=0,
                **options,
            )


class Stays:
    """Ray writes down what it is given, pickled. This stays where it is: what is written of it is nothing."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return object, ()


def load_tune() -> Any:
    """The ray.tune module, or one sentence."""
    try:
        return importlib.import_module("ray.tune")
    except ImportError as error:
        raise ConfigError("searching on Ray needs Ray Tune: pip install 'surefoot[ray-tune]'") from error


def _final(task: TuneTask, params: dict[str, Any], plan: Plan) -> list[float]:
    pin_threads(1)
    return final_scores(task, params, plan, lambda: False) or []


def _folder(trial: Any) -> str:
    return f"{trial.config['order']['number']:04d}"


def _searcher(tune: Any, book: Book) -> Any:
    class FromStudy(Stays, tune.search.Searcher):
        """Asks the study, which keeps its own state."""

        def suggest(self, trial_id: str) -> Any:
            order = None if book.broken else book.ask()
            return tune.search.Searcher.FINISHED if order is None else {"order": order}

        def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
            pass

        def save(self, checkpoint_path: str) -> None:
            pass

    made: Any = FromStudy
    return made(metric="score", mode="max")


def _stopper(tune: Any, stop: Stop) -> Any:
    class Stopper(Stays, tune.Stopper):
        """Ends everything at once, never a single trial."""

        def __call__(self, trial_id: str, result: Any) -> bool:
            return False

        def stop_all(self) -> bool:
            return stop()

    return Stopper()


def _listener(tune: Any, book: Book) -> Any:
    current: dict[str, int] = {}

    class Listener(Stays, tune.Callback):
        """Tells the book what Ray Tune sees."""

        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **_: Any) -> None:
            if result["broken"]:
                book.broken = result["broken"]
            else:
                book.judged(result["number"], result["rung"], result["scores"])

        def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
            last = trial.last_result
            if not last.get("broken"):
                book.ended(last["number"], last["rung"], seconds=last["seconds"], why=last["why"])

        def on_trial_error(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
            told = str(trial.get_error() or "its worker was lost").strip().splitlines()[-1]
            book.ended(trial.config["order"]["number"], 0, why=f"given up after {RETRIES + 1} tries: {told}")

        def on_step_end(self, iteration: int, trials: Any, **_: Any) -> None:
            for trial in trials:
                number = trial.config["order"]["number"]
                before = current.setdefault(trial.trial_id, number)
                if before != number:
                    book.succeeded(before, number)
                    current[trial.trial_id] = number
                if trial.checkpoint is not None:
                    book.saved(number, Path(trial.checkpoint.path))

    return Listener()


def _remember(scheduler: Any, study: Any) -> None:
    """Let a scheduler know of the trials that were judged before it was there."""
    state = optuna().trial.TrialState
    for trial in study.get_trials(deepcopy=False, states=(state.COMPLETE, state.PRUNED)):
        known = SimpleNamespace(trial_id=f"trial {trial.number}")
        scheduler.on_trial_add(None, known)
        for rung, score in sorted(trial.intermediate_values.items()):
            scheduler.on_trial_result(None, known, {"rung": rung, "score": score})


def _clean(book: Book) -> None:
    """Delete what Ray wrote about itself; and the checkpoints, unless a trial waits to go on from one."""
    root = book.directory / FOLDER
    if not book.unfinished:
        shutil.rmtree(root, ignore_errors=True)
        return
    for file in root.rglob("*"):
        if file.is_file() and not any(part.startswith("checkpoint_") for part in file.relative_to(root).parts):
            file.unlink()


@contextmanager
def _quiet() -> Generator[None]:
    """Ray Tune without its own output, its own files and its own signal handlers, while the block lasts."""
    before = {name: os.environ.get(name) for name in QUIET}
    log = logging.getLogger("ray.tune")
    level, handler = log.level, signal.getsignal(signal.SIGUSR1)
    with ExitStack() as after:
        after.callback(signal.signal, signal.SIGUSR1, handler)
        after.callback(log.setLevel, level)
        for name, value in before.items():
            after.callback(os.environ.pop, name, None) if value is None else after.callback(
                os.environ.__setitem__, name, value
            )
        os.environ.update(QUIET)
        log.setLevel(logging.CRITICAL)
        yield
