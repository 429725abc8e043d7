"""The search for settings: trials of several seeds in lockstep, so that a hopeless one ends before its time.

A study lives in one directory: what is searched (tune.json), every trial (study.journal), and what came of it.
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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from surefoot.errors import ConfigError, Diverged, EnvError, RunError
from surefoot.learn.files import REAL_FS, replace_file
from surefoot.learn.search import Choice, Dimension, Range, Space, label
from surefoot.train.statistics import iqm

PLAN, JOURNAL, STUDY = "tune.json", "study.journal", "surefoot"
TAKEN_BACK = "taken_back"
FRESH_SEEDS = 10_000
"""Added to the seeds of a search for those on which its finalists meet again."""
Sampler = Literal["tpe", "random"]
Pruner = Literal["median", "hyperband", "none"]


class Contest(Protocol):
    """One setting, trained on several seeds side by side."""

    def advance(self, share: float, stop: Callable[[], bool]) -> list[float] | None:
        """Train every seed up to `share` of its length and say how good each is; None if `stop` came first."""
        ...

    def close(self) -> None: ...


class Task(Protocol):
    """Something whose settings can be searched."""

    name: str
    space: Space
    base: dict[str, Any]
    """The value that each searched setting has before the search; the first trial is this."""

    def contest(self, params: dict[str, Any], seeds: Sequence[int]) -> Contest: ...

    def settings(self, params: dict[str, Any]) -> dict[str, Any]:
        """All that `surefoot train --config` needs to train with `params`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a search is done; kept in its directory, so that it goes on alike."""

    trials: int = 50
    seeds: int = 3
    seed: int = 0
    rungs: int = 5
    """How often a trial is looked at, and may be given up."""
    sampler: Sampler = "tpe"
    pruner: Pruner = "median"
    finalists: int = 3
    """The best settings of the search that meet again on fresh seeds; the winner is chosen there. 0: the best trial."""
    minutes: float | None = None
    timeout: float | None = None
    """Seconds after which a single trial is given up."""

    def __post_init__(self) -> None:
        for name, least in (("trials", 1), ("seeds", 1), ("seed", 0), ("rungs", 1), ("finalists", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        for name in ("minutes", "timeout"):
            if (value := getattr(self, name)) is not None and not value > 0:
                raise ConfigError(f"{name} is {value}; it must be above 0")

    @property
    def training_seeds(self) -> list[int]:
        """The same for every trial: what differs between two is their settings."""
        return [self.seed + k for k in range(self.seeds)]

    @property
    def fresh_seeds(self) -> list[int]:
        """Seeds that no trial was chosen by."""
        return [FRESH_SEEDS + seed for seed in self.training_seeds]


@dataclass(frozen=True, slots=True)
class Standing:
    """A setting and how it did; `scores` has one number a seed."""

    number: int
    params: dict[str, Any]
    value: float
    scores: list[float]


Tell = Callable[[int, int, float], None]
"""Called with a trial's number, how many rungs it has behind it, and its score there."""


def _nobody(number: int, rung: int, score: float) -> None:
    pass


def optuna() -> Any:
    """The package of the extra `tune`, without its chatter."""
    try:
        found = importlib.import_module("optuna")
    except ImportError:
        raise ConfigError('optuna is not installed; pip install "surefoot[tune]" brings it') from None
    found.logging.set_verbosity(found.logging.ERROR)
    return found


def write_plan(directory: Path, plan: Plan, about: dict[str, Any]) -> None:
    """Say in tune.json what is searched and how; `about` is the task's own."""
    text = json.dumps({"plan": asdict(plan), "task": about}, indent=2) + "\n"
    replace_file(REAL_FS, directory / PLAN, text.encode())


def read_plan(directory: Path) -> tuple[Plan, dict[str, Any]]:
    """What `write_plan` wrote."""
    try:
        found = json.loads((directory / PLAN).read_text(encoding="utf-8"))
        return Plan(**found["plan"]), found["task"]
    except FileNotFoundError:
        raise RunError(f"{directory} is not a search: it has no {PLAN}") from None
    except (OSError, ValueError, TypeError, KeyError) as why:
        raise RunError(f"{directory / PLAN} cannot be read: {why}") from why


def open_study(directory: Path, plan: Plan, *, worker: int = 0) -> Any:
    """The study in `directory`, made if there is none; workers with numbers draw different settings."""
    o = optuna()
    journal = importlib.import_module("optuna.storages.journal")
    storage = o.storages.JournalStorage(journal.JournalFileBackend(str(directory / JOURNAL)))
    seed = plan.seed * 1000 + worker
    startup = min(10, max(4, plan.trials // 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # multivariate is called experimental since 2020
        samplers: dict[str, Callable[[], Any]] = {
            "tpe": lambda: o.samplers.TPESampler(
                seed=seed, multivariate=True, constant_liar=True, n_startup_trials=startup
            ),
            "random": lambda: o.samplers.RandomSampler(seed=seed),
        }
        pruners: dict[str, Callable[[], Any]] = {
            "median": lambda: o.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1),
            "hyperband": lambda: o.pruners.HyperbandPruner(min_resource=1, max_resource=plan.rungs),
            "none": o.pruners.NopPruner,
        }
        return o.create_study(
            direction="maximize",
            storage=storage,
            study_name=STUDY,
            load_if_exists=True,
            sampler=samplers[plan.sampler](),
            pruner=pruners[plan.pruner](),
        )


def read_study(directory: Path) -> Any:
    """The study in `directory` to look at, while others may be writing it; nothing is made."""
    o, path = optuna(), directory / JOURNAL
    if not path.exists():
        raise RunError(f"{directory.name} has no trials yet: there is no {JOURNAL}")
    journal = importlib.import_module("optuna.storages.journal")
    try:
        storage = o.storages.JournalStorage(journal.JournalFileBackend(str(path)))
        return o.load_study(study_name=STUDY, storage=storage)
    except (KeyError, ValueError, OSError) as why:  # json.JSONDecodeError among them
        raise RunError(f"{path} cannot be read: {why}") from why


def begin(study: Any, task: Task) -> None:
    """The base first; and trials that a kill left behind are tried again."""
    state = optuna().trial.TrialState
    if not study.trials:
        study.enqueue_trial({name: _told(task.space[name], task.base[name]) for name in task.space})
    for trial in study.get_trials(states=(state.RUNNING,)):
        _take_back(study, trial)


def search(
    task: Task,
    study: Any,
    plan: Plan,
    directory: Path,
    *,
    stop: Callable[[], bool] = lambda: False,
    tell: Tell = _nobody,
) -> None:
    """Try settings until the plan's trials are done or `stop` says so; several processes may do so at once."""
    while not stop():
        with _turn(directory):
            if _begun(study) >= plan.trials:
                return
            trial = study.ask()
        _try(task, study, trial, plan, stop, tell)


def standings(study: Any, space: Space) -> list[Standing]:
    """Every trial that was trained to its end, best first."""
    state = optuna().trial.TrialState
    done = [
        Standing(t.number, read_params(space, t.params), t.value, list(t.user_attrs.get("scores", [])))
        for t in study.get_trials(states=(state.COMPLETE,))
        if t.value is not None and math.isfinite(t.value)
    ]
    return sorted(done, key=lambda standing: (-standing.value, standing.number))


def play_off(
    task: Task, study: Any, plan: Plan, *, stop: Callable[[], bool] = lambda: False, tell: Tell = _nobody
) -> list[Standing]:
    """The base and the best trials once more, on fresh seeds: whoever was merely lucky shows it here. Best first.

    What was played is kept in the study, so that a play-off that was stopped goes on.
    """
    ranked = standings(study, task.space)
    chosen = ranked[: plan.finalists] + [one for one in ranked[plan.finalists :] if one.number == 0]
    kept = _played(study)
    for one in chosen:
        if str(one.number) in kept or stop():
            continue
        contest = task.contest(one.params, plan.fresh_seeds)
        try:
            scores = contest.advance(1.0, stop)
        except (Diverged, EnvError):
            scores = [-math.inf] * plan.seeds
        finally:
            contest.close()
        if scores is not None:
            tell(one.number, plan.rungs, iqm(scores))
            kept[str(one.number)] = scores
            study.set_user_attr("play_off", kept)
    return finals(study, task.space)


def finals(study: Any, space: Space) -> list[Standing]:
    """How those that have met again on fresh seeds did there, best first; empty before the play-off."""
    kept = _played(study)
    found = [
        replace(one, value=iqm(scores), scores=scores)
        for one in standings(study, space)
        if (scores := kept.get(str(one.number)))
    ]
    return sorted(found, key=lambda standing: (-standing.value, standing.number))


def _played(study: Any) -> dict[str, list[float]]:
    """{number of a trial: its scores on fresh seeds}"""
    return dict(study.user_attrs.get("play_off", {}))


def suggest(trial: Any, space: Space) -> dict[str, Any]:
    """A value for each setting."""
    for name, dim in space.items():
        match dim:
            case Choice():
                trial.suggest_categorical(name, [label(value) for value in dim.values])
            case Range(whole=True):
                trial.suggest_int(name, int(dim.low), int(dim.high), log=dim.log)
            case Range():
                trial.suggest_float(name, dim.low, dim.high, log=dim.log)
    return read_params(space, trial.params)


def read_params(space: Space, params: dict[str, Any]) -> dict[str, Any]:
    """A trial's parameters as values: a choice is kept under its label, which is JSON where the space has no more of it."""
    found: dict[str, Any] = {}
    for name, value in params.items():
        dim = space.get(name)
        if isinstance(dim, Choice):
            value = next((v for v in dim.values if label(v) == value), value)
        found[name] = json.loads(value) if dim is None and isinstance(value, str) else value
    return found


def _told(dim: Dimension, value: Any) -> Any:
    return label(value) if isinstance(dim, Choice) else value


def _begun(study: Any) -> int:
    """Trials that were begun and not taken back; one that failed by itself counts, or a search might never end."""
    waiting = optuna().trial.TrialState.WAITING
    return sum(t.state != waiting and TAKEN_BACK not in t.user_attrs for t in study.get_trials(deepcopy=False))


def _take_back(study: Any, trial: Any) -> None:
    """End a trial that did nothing wrong, and have its settings tried again."""
    study._storage.set_trial_user_attr(trial._trial_id, TAKEN_BACK, True)
    study.tell(trial.number, state=optuna().trial.TrialState.FAIL)
    study.enqueue_trial(trial.params)


def _try(task: Task, study: Any, trial: Any, plan: Plan, stop: Callable[[], bool], tell: Tell) -> None:
    state, begin = optuna().trial.TrialState, time.monotonic()
    params = suggest(trial, task.space)

    def late() -> bool:
        return plan.timeout is not None and time.monotonic() - begin > plan.timeout

    contest = task.contest(params, plan.training_seeds)
    value = math.nan
    try:
        for rung in range(1, plan.rungs + 1):
            scores = contest.advance(rung / plan.rungs, lambda: stop() or late())
            if scores is None:
                break
            value = iqm(scores)
            tell(trial.number, rung, value)
            trial.report(value, rung)
            trial.set_user_attr("scores", scores)
            if rung < plan.rungs and trial.should_prune():
                break
        else:
            trial.set_user_attr("seconds", time.monotonic() - begin)
            study.tell(trial, value)
            return
    except (Diverged, EnvError) as why:
        trial.set_user_attr("why", str(why))
        study.tell(trial, state=state.PRUNED if math.isfinite(value) else state.FAIL)
        return
    finally:
        contest.close()
    if stop() and not late():  # it did nothing wrong: it will be tried again
        _take_back(study, trial)
        return
    study.tell(trial, state=state.PRUNED if math.isfinite(value) else state.FAIL)


@contextmanager
def _turn(directory: Path) -> Generator[None]:
    """One process at a time asks for a trial, so that there are never more than were planned."""
    with open(directory / ".turn", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
