"""A search whose trials run on a Ray cluster: Ray Tune schedules them, `RemoteTrials` keeps the study.

Trials are the same trial_runs as in a local search, with our checkpoints; Ray Tune moves the directories. Ray's own state
files are pickles: nothing here reads them, and they are deleted when the search ends.
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
from surefoot.scale.ray_trial import RayTrial
from surefoot.scale.remote_trials import RemoteTrials
from surefoot.train.device import pin_threads
from surefoot.train.tune.final_round import TrialResult, final_scores
from surefoot.train.tune.plan import Plan
from surefoot.train.tune.search import OnScore, TuneTask, ignore_score, optuna

FOLDER = "ray"
# How often a trial whose worker was lost resumes from its last rung.
RETRIES = 3
# ASHA continues the better half of the trials at each rung.
REDUCTION = 2
QUIET = {
    "TUNE_DISABLE_AUTO_INIT": "1",  # Ray is never started implicitly
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # our handler of Ctrl-C saves the study
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # custom envs are imported relative to the directory of the search
}
Stop = Callable[[], bool]


class Cluster:
    """A Ray cluster for a search, connected by `surefoot.scale.ray_backend.connect`."""

    def __init__(self, address: str, *, allow_insecure_cluster: bool = False, jobs: int | None = None) -> None:
        self.ray, self.tune, self.jobs = load_ray("ray-tune"), load_tune(), jobs
        """Maximum number of concurrent trials; None for as many as the cluster has CPUs."""
        self._started = connect(self.ray, address, allow_insecure_cluster=allow_insecure_cluster)

    def search(
        self,
        task: TuneTask,
        study: Any,
        plan: Plan,
        directory: Path,
        *,
        stop: Stop = lambda: False,
        on_score: OnScore = ignore_score,
    ) -> None:
        """Search like `surefoot.train.tune.search.search`. With several machines `directory` must be on a shared disk."""
        records = RemoteTrials(task, study, plan, directory.resolve(), on_score)
        try:
            if plan.scheduler == "pbt":
                self._population(records, stop)
            else:
                self._halving(records, stop)
        finally:
            records.close()
            _clean(records)
        if records.broken:
            raise ConfigError(records.broken)

    def play(
        self, task: TuneTask, chosen: Sequence[TrialResult], plan: Plan, stop: Stop
    ) -> Iterator[tuple[TrialResult, list[float]]]:
        """Yield the final scores of the chosen trials, run in parallel; a lost worker starts again."""
        ray = self.ray
        final = ray.remote(num_cpus=1, max_retries=RETRIES)(_final_scores)
        shared = ray.put(task)
        pending = {final.remote(shared, one.params, plan): one for one in chosen}
        while pending and not stop():
            for done in ray.wait(list(pending), timeout=0.3)[0]:
                yield pending.pop(done), ray.get(done)
        for reference in pending:
            ray.cancel(reference, force=True)

    def close(self) -> None:
        """Shut Ray down if this object started it."""
        if self._started:
            self.ray.shutdown()

    def _halving(self, records: RemoteTrials, stop: Stop) -> None:
        scheduler = self.tune.schedulers.ASHAScheduler(
            time_attr="rung", max_t=records.plan.rungs, grace_period=1, reduction_factor=REDUCTION
        )
        scheduler.set_search_properties("score", "max")
        _remember(scheduler, records.study)
        options = {"search_alg": _searcher(self.tune, records), "max_concurrent_trials": self.jobs}
        self._run(records, scheduler, stop, keep=1, num_samples=-1, **options)

    def _population(self, records: RemoteTrials, stop: Stop) -> None:
        members = records.population()
        if not members:
            return
        if not records.task.moving:
            raise ConfigError(
                f"a population needs a setting that can change during a run; {records.task.name} has none"
            )

        def explore(config: dict[str, Any]) -> dict[str, Any]:
            return {"order": records.successor(config["order"])}

        scheduler = self.tune.schedulers.PopulationBasedTraining(
            time_attr="rung",
            perturbation_interval=1,
            custom_explore_fn=explore,
            log_config=False,
            synch=False,  # synchronised, it hangs when a member ends before the others (pbt.py of Ray 2.60)
        )
        scheduler.set_search_properties("score", "max")
        # A replaced trial may load an older checkpoint of a better one, so more than the last is kept.
        self._run(records, scheduler, stop, keep=4, config={"order": self.tune.grid_search(members)})

    def _run(self, records: RemoteTrials, scheduler: Any, stop: Stop, *, keep: int, **options: Any) -> None:
        tune = self.tune
        trial = type("Trial", (RayTrial, tune.Trainable), {})
        with _quiet():
            # Not a Tuner: that would pickle all of this for its own restore.
            tune.run(
                tune.with_parameters(trial, task=records.task, plan=records.plan),
                name=time.strftime("%Y%m%d-%H%M%S"),
                storage_path=str(records.directory / FOLDER),
                scheduler=scheduler,
                stop=_stopper(tune, lambda: bool(records.broken) or stop()),
                callbacks=[_listener(tune, records)],
                resources_per_trial={"cpu": 1},
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1, num_to_keep=keep),
                max_failures=RETRIES,
                reuse_actors=True,
                raise_on_failed_trial=False,
                trial_dirname_creator=_folder,
                verbose=0,
                **options,
            )


class NotPickled:
    """A base class whose objects are pickled as an empty object: Ray pickles its callbacks into state files."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return object, ()


def load_tune() -> Any:
    """Return the ray.tune module. Raise `ConfigError` with the extra to install if it is missing."""
    try:
        return importlib.import_module("ray.tune")
    except ImportError as error:
        raise ConfigError("Ray Tune is not installed: pip install 'surefoot[ray-tune]'") from error


def _final_scores(task: TuneTask, params: dict[str, Any], plan: Plan) -> list[float]:
    pin_threads(1)
    return final_scores(task, params, plan, lambda: False) or []


def _folder(trial: Any) -> str:
    return f"{trial.config['order']['number']:04d}"


def _searcher(tune: Any, records: RemoteTrials) -> Any:
    class FromStudy(NotPickled, tune.search.Searcher):
        """Take trials from the study, which has its own state."""

        def suggest(self, trial_id: str) -> Any:
            order = None if records.broken else records.ask()
            return tune.search.Searcher.FINISHED if order is None else {"order": order}

        def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
            pass

        def save(self, checkpoint_path: str) -> None:
            pass

    searcher: Any = FromStudy
    return searcher(metric="score", mode="max")


def _stopper(tune: Any, stop: Stop) -> Any:
    class Stopper(NotPickled, tune.Stopper):
        """Stop all trials together, never a single one."""

        def __call__(self, trial_id: str, result: Any) -> bool:
            return False

        def stop_all(self) -> bool:
            return stop()

    return Stopper()


def _listener(tune: Any, records: RemoteTrials) -> Any:
    current: dict[str, int] = {}

    class Listener(NotPickled, tune.Callback):
        """Report Ray Tune's events to `RemoteTrials`."""

        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **_: Any) -> None:
            if result["broken"]:
                records.broken = result["broken"]
            else:
                records.record_scores(result["number"], result["rung"], result["scores"])

        def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
            last = trial.last_result
            if not last.get("broken"):
                records.ended(last["number"], last["rung"], seconds=last["seconds"], why=last["why"])

        def on_trial_error(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
            reason = str(trial.get_error() or "its worker was lost").strip().splitlines()[-1]
            records.ended(trial.config["order"]["number"], 0, why=f"failed {RETRIES + 1} times: {reason}")

        def on_step_end(self, iteration: int, trials: Any, **_: Any) -> None:
            for trial in trials:
                number = trial.config["order"]["number"]
                before = current.setdefault(trial.trial_id, number)
                if before != number:
                    records.record_successor(before, number)
                    current[trial.trial_id] = number
                if trial.checkpoint is not None:
                    records.saved(number, Path(trial.checkpoint.path))

    return Listener()


def _remember(scheduler: Any, study: Any) -> None:
    """Report the finished trials of earlier sessions to a new scheduler."""
    state = optuna().trial.TrialState
    for trial in study.get_trials(deepcopy=False, states=(state.COMPLETE, state.PRUNED)):
        known = SimpleNamespace(trial_id=f"trial {trial.number}")
        scheduler.on_trial_add(None, known)
        for rung, score in sorted(trial.intermediate_values.items()):
            scheduler.on_trial_result(None, known, {"rung": rung, "score": score})


def _clean(records: RemoteTrials) -> None:
    """Delete Ray's state files; and the checkpoints, unless a trial waits to be resumed from one."""
    root = records.directory / FOLDER
    if not records.unfinished:
        shutil.rmtree(root, ignore_errors=True)
        return
    for file in root.rglob("*"):
        if file.is_file() and not any(part.startswith("checkpoint_") for part in file.relative_to(root).parts):
            file.unlink()


@contextmanager
def _quiet() -> Generator[None]:
    """Disable Ray Tune's output, log files and signal handlers within the block."""
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
