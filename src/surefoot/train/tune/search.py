"""Hyperparameter search with Optuna: each trial trains several seeds together, so that bad trials can be pruned early.

A study is one directory: the plan (tune.json), the trials (study.journal) and the result (see report.py).
"""

from __future__ import annotations

import fcntl
import importlib
import json
import math
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from surefoot.errors import ConfigError, Diverged, EnvError, RunError
from surefoot.learn.search_ranges import Choice, Dimension, Range, Space, label
from surefoot.train.diagnose.statistics import iqm
from surefoot.train.tune.plan import Plan

JOURNAL, STUDY = "study.journal", "surefoot"
# User attribute of trials that were interrupted and queued again. The key is part of the format of stored studies.
REQUEUED = "taken_back"
# User attributes that are copied when a trial is queued again: its parent and checkpoint (population-based training).
COPIED_ATTRS = ("parent", "from_rung", "checkpoint", "scores")


class TrialRun(Protocol):
    """The training of one setting on several seeds."""

    def advance(self, share: float, stop: Callable[[], bool]) -> list[float] | None:
        """Train every seed up to `share` of its length and return one score per seed; None if `stop` returned True."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the checkpoint parts of all seeds. Raise `RunError` if the state cannot be restored later."""
        ...

    def set_state(self, parts: dict[str, Any]) -> None:
        """Resume from a checkpoint. Settings that the task lists as `moving` may differ from the saved ones."""
        ...

    def close(self) -> None: ...


class TuneTask(Protocol):
    """An environment or a graph whose settings can be searched."""

    name: str
    space: Space
    base: dict[str, Any]
    """The value of each searched setting before the search. The first trial uses these values."""
    moving: frozenset[str]
    """The searched settings that may change during a trial."""

    def trial_run(self, params: dict[str, Any], seeds: Sequence[int]) -> TrialRun: ...

    def settings(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the config with which `surefoot train --config` trains with `params`."""
        ...


OnScore = Callable[[int, int, float], None]
"""Called with the number of a trial, the number of completed rungs, and the score at the last of them."""


def ignore_score(number: int, rung: int, score: float) -> None:
    pass


def optuna() -> Any:
    """Return the package optuna (extra `tune`), with only its errors logged."""
    try:
        package = importlib.import_module("optuna")
    except ImportError:
        raise ConfigError('optuna is not installed; run pip install "surefoot[tune]"') from None
    package.logging.set_verbosity(package.logging.ERROR)
    return package


def open_study(directory: Path, plan: Plan, *, worker: int = 0) -> Any:
    """Return the study in `directory`; create it if it does not exist. Different workers sample different settings."""
    o = optuna()
    journal = importlib.import_module("optuna.storages.journal")
    storage = o.storages.JournalStorage(journal.JournalFileBackend(str(directory / JOURNAL)))
    # Population-based training draws the whole population before any score is known. Otherwise a quarter of the trials is
    # random, between 4 and Optuna's default of 10, so that TPE also has trials to guide in a short search.
    startup = plan.trials + 1 if plan.scheduler == "pbt" else min(10, max(4, plan.trials // 4))
    with warnings.catch_warnings():
        # Some versions of Optuna warn that `multivariate` and `constant_liar` are experimental.
        warnings.simplefilter("ignore")
        pruners: dict[str, Callable[[], Any]] = {
            # The median of fewer than 4 trials is too noisy to prune by. Rungs count from 1, so pruning starts at the first.
            "median": lambda: o.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1),
            "hyperband": lambda: o.pruners.HyperbandPruner(min_resource=1, max_resource=plan.rungs),
            "none": o.pruners.NopPruner,
        }
        study = o.create_study(
            direction="maximize",
            storage=storage,
            study_name=STUDY,
            load_if_exists=True,
            pruner=pruners[plan.pruner](),
        )
        # With the same seed a resumed search would sample the same settings again. The factors keep the seeds of
        # workers, plans and resumed searches apart.
        seed = plan.seed * 1000 + worker + 1_000_003 * started_trials(study)
        samplers: dict[str, Callable[[], Any]] = {
            # constant_liar: parallel workers do not sample next to trials that are still running.
            "tpe": lambda: o.samplers.TPESampler(
                seed=seed, multivariate=True, constant_liar=True, n_startup_trials=startup
            ),
            "random": lambda: o.samplers.RandomSampler(seed=seed),
        }
        study.sampler = samplers[plan.sampler]()
        return study


def read_study(directory: Path) -> Any:
    """Return the existing study in `directory` for reading; other processes may be writing to it."""
    o, path = optuna(), directory / JOURNAL
    if not path.exists():
        raise RunError(f"{directory.name} has no trials yet: {JOURNAL} does not exist")
    journal = importlib.import_module("optuna.storages.journal")
    try:
        storage = o.storages.JournalStorage(journal.JournalFileBackend(str(path)))
        return o.load_study(study_name=STUDY, storage=storage)
    except (KeyError, ValueError, OSError) as why:  # includes json.JSONDecodeError
        raise RunError(f"{path} cannot be read: {why}") from why


def begin(study: Any, task: TuneTask) -> None:
    """Queue the base settings as the first trial, and queue again the trials that a killed process left running."""
    state = optuna().trial.TrialState
    if not study.trials:
        study.enqueue_trial({name: stored_value(task.space[name], task.base[name]) for name in task.space})
    for trial in study.get_trials(states=(state.RUNNING,)):
        requeue(study, trial)


def search(
    task: TuneTask,
    study: Any,
    plan: Plan,
    directory: Path,
    *,
    stop: Callable[[], bool] = lambda: False,
    on_score: OnScore = ignore_score,
) -> None:
    """Run trials until the plan is complete or `stop` returns True. Several processes can search in one directory."""
    while not stop():
        with _trial_lock(directory):
            if started_trials(study) >= plan.trials:
                return
            trial = study.ask()
        _run_trial(task, study, trial, plan, stop, on_score)


def suggest(trial: Any, space: Space) -> dict[str, Any]:
    """Sample a value for each setting."""
    for name, dim in space.items():
        match dim:
            case Choice():
                # Optuna stores scalars only, so a choice such as (64, 64) is stored as its label.
                trial.suggest_categorical(name, [label(value) for value in dim.values])
            case Range(whole=True):
                trial.suggest_int(name, int(dim.low), int(dim.high), log=dim.log)
            case Range():
                trial.suggest_float(name, dim.low, dim.high, log=dim.log)
    return read_params(space, trial.params)


def read_params(space: Space, params: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a trial's stored parameters. The label of a setting not in `space` is parsed as JSON."""
    values: dict[str, Any] = {}
    for name, value in params.items():
        dim = space.get(name)
        if isinstance(dim, Choice):
            value = next((v for v in dim.values if label(v) == value), value)
        values[name] = json.loads(value) if dim is None and isinstance(value, str) else value
    return values


def stored_value(dim: Dimension, value: Any) -> Any:
    """Return a value in the form in which a study stores it."""
    return label(value) if isinstance(dim, Choice) else value


def started_trials(study: Any) -> int:
    """Return the number of trials that count towards the plan."""
    waiting = optuna().trial.TrialState.WAITING
    # Failed trials count, otherwise a search in which every trial fails would never end. Interrupted trials run again, and
    # trials with a parent continue a member of the population, so neither is counted.
    not_counted = {REQUEUED, "parent"}
    return sum(t.state != waiting and not not_counted & set(t.user_attrs) for t in study.get_trials(deepcopy=False))


def requeue(study: Any, trial: Any) -> None:
    """End an interrupted trial and queue its settings again."""
    # `trial` may be a FrozenTrial, whose set_user_attr does not write to the storage.
    study._storage.set_trial_user_attr(trial._trial_id, REQUEUED, True)
    study.tell(trial.number, state=optuna().trial.TrialState.FAIL)
    stored = study._storage.get_trial(trial._trial_id)
    attrs = {name: stored.user_attrs[name] for name in COPIED_ATTRS if name in stored.user_attrs}
    if "checkpoint" in attrs:
        attrs["rungs"] = {str(rung): score for rung, score in stored.intermediate_values.items()}
    # A trial killed before its first suggestion has no params yet; its settings are those it was queued with.
    study.enqueue_trial(stored.params or stored.system_attrs.get("fixed_params", {}), user_attrs=attrs)


def _run_trial(task: TuneTask, study: Any, trial: Any, plan: Plan, stop: Callable[[], bool], on_score: OnScore) -> None:
    state, started = optuna().trial.TrialState, time.monotonic()
    params = suggest(trial, task.space)

    def late() -> bool:
        return plan.timeout is not None and time.monotonic() - started > plan.timeout

    trial_run = task.trial_run(params, plan.training_seeds)
    value = math.nan
    try:
        for rung in range(1, plan.rungs + 1):
            scores = trial_run.advance(rung / plan.rungs, lambda: stop() or late())
            if scores is None:
                break
            value = iqm(scores)
            on_score(trial.number, rung, value)
            trial.report(value, rung)
            trial.set_user_attr("scores", scores)
            if rung < plan.rungs and trial.should_prune():
                break
        else:
            trial.set_user_attr("seconds", time.monotonic() - started)
            study.tell(trial, value)
            return
    except (Diverged, EnvError) as why:
        trial.set_user_attr("why", str(why))
        # TPE learns from the last score of a pruned trial and ignores failed ones, so a score is kept if there is one.
        study.tell(trial, state=state.PRUNED if math.isfinite(value) else state.FAIL)
        return
    finally:
        trial_run.close()
    # Interrupted by the user, not by its score or its timeout: the settings get another chance when the search resumes.
    if stop() and not late():
        requeue(study, trial)
        return
    study.tell(trial, state=state.PRUNED if math.isfinite(value) else state.FAIL)


@contextmanager
def _trial_lock(directory: Path) -> Generator[None]:
    """Let one process at a time count and start trials; otherwise two could both start the last planned trial."""
    with open(directory / ".turn", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
