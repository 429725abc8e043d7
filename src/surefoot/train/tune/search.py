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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from surefoot.errors import ConfigError, Diverged, EnvError, RunError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, replace_file
from surefoot.learn.search_ranges import Choice, Dimension, Range, Space, label
from surefoot.train.diagnose.statistics import iqm

PLAN, JOURNAL, STUDY = "tune.json", "study.journal", "surefoot"
TAKEN_BACK = "taken_back"
FRESH_SEEDS = 10_000
"""Added to the seeds of a search for those on which its finalists meet again."""
Sampler = Literal["tpe", "random"]
Pruner = Literal["median", "hyperband", "none"]
Scheduler = Literal["asha", "pbt"]
CARRIED = ("parent", "from_rung", "checkpoint", "scores")
"""What is known of a trial besides its settings, and goes with them when they are tried again."""


class Contest(Protocol):
    """One setting, trained on several seeds side by side."""

    def advance(self, share: float, stop: Callable[[], bool]) -> list[float] | None:
        """Train every seed up to `share` of its length and say how good each is; None if `stop` came first."""
        ...

    def state(self) -> dict[str, Any]:
        """The parts of a checkpoint of all seeds; RunError if there is something that cannot be put back."""
        ...

    def set_state(self, parts: dict[str, Any]) -> None:
        """Go on from there. The settings may be others, if the task says that they are `moving`."""
        ...

    def close(self) -> None: ...


class TuneTask(Protocol):
    """Something whose settings can be searched."""

    name: str
    space: Space
    base: dict[str, Any]
    """The value that each searched setting has before the search; the first trial is this."""
    moving: frozenset[str]
    """Those of the searched settings that may change while a contest goes on."""

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
    scheduler: Scheduler | None = None
    """What gives trials up on a Ray cluster; None if the search was begun without one."""
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


Tell = Callable[[int, int, float], None]
"""Called with a trial's number, how many rungs it has behind it, and its score there."""


def nobody(number: int, rung: int, score: float) -> None:
    pass


def optuna() -> Any:
    """The package of the extra `tune`, without its chatter."""
    try:
        result = importlib.import_module("optuna")
    except ImportError:
        raise ConfigError('optuna is not installed; pip install "surefoot[tune]" brings it') from None
    result.logging.set_verbosity(result.logging.ERROR)
    return result


def write_plan(directory: Path, plan: Plan, about: dict[str, Any]) -> None:
    """Say in tune.json what is searched and how; `about` is the task's own."""
    text = json.dumps({"plan": asdict(plan), "task": about}, indent=2) + "\n"
    replace_file(REAL_FS, directory / PLAN, text.encode())


def read_plan(directory: Path) -> tuple[Plan, dict[str, Any]]:
    """What `write_plan` wrote."""
    try:
        result = json.loads((directory / PLAN).read_text(encoding="utf-8"))
        return Plan(**result["plan"]), result["task"]
    except FileNotFoundError:
        raise RunError(f"{directory} is not a search: it has no {PLAN}") from None
    except (OSError, ValueError, TypeError, KeyError) as why:
        raise RunError(f"{directory / PLAN} cannot be read: {why}") from why


def open_study(directory: Path, plan: Plan, *, worker: int = 0) -> Any:
    """The study in `directory`, made if there is none; workers with numbers draw different settings."""
    o = optuna()
    journal = importlib.import_module("optuna.storages.journal")
    storage = o.storages.JournalStorage(journal.JournalFileBackend(str(directory / JOURNAL)))
    # A population is drawn before any of it is judged.
    startup = plan.trials + 1 if plan.scheduler == "pbt" else min(10, max(4, plan.trials // 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # multivariate is called experimental since 2020
        pruners: dict[str, Callable[[], Any]] = {
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
        # One that goes on must not draw again what it drew at first.
        seed = plan.seed * 1000 + worker + 1_000_003 * begun(study)
        samplers: dict[str, Callable[[], Any]] = {
            "tpe": lambda: o.samplers.TPESampler(
                seed=seed, multivariate=True, constant_liar=True, n_startup_trials=startup
            ),
            "random": lambda: o.samplers.RandomSampler(seed=seed),
        }
        study.sampler = samplers[plan.sampler]()
        return study


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


def begin(study: Any, task: TuneTask) -> None:
    """The base first; and trials that a kill left behind are tried again."""
    state = optuna().trial.TrialState
    if not study.trials:
        study.enqueue_trial({name: to_stored(task.space[name], task.base[name]) for name in task.space})
    for trial in study.get_trials(states=(state.RUNNING,)):
        take_back(study, trial)


def search(
    task: TuneTask,
    study: Any,
    plan: Plan,
    directory: Path,
    *,
    stop: Callable[[], bool] = lambda: False,
    tell: Tell = nobody,
) -> None:
    """Try settings until the plan's trials are done or `stop` says so; several processes may do so at once."""
    while not stop():
        with _turn(directory):
            if begun(study) >= plan.trials:
                return
            trial = study.ask()
        _try(task, study, trial, plan, stop, tell)


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
    result: dict[str, Any] = {}
    for name, value in params.items():
        dim = space.get(name)
        if isinstance(dim, Choice):
            value = next((v for v in dim.values if label(v) == value), value)
        result[name] = json.loads(value) if dim is None and isinstance(value, str) else value
    return result


def to_stored(dim: Dimension, value: Any) -> Any:
    """A value as it is kept in a study."""
    return label(value) if isinstance(dim, Choice) else value


def begun(study: Any) -> int:
    """Trials that were begun and not taken back; one that failed by itself counts, or a search might never end.

    One that went on with another's weights is not a new one.
    """
    waiting = optuna().trial.TrialState.WAITING
    apart = {TAKEN_BACK, "parent"}
    return sum(t.state != waiting and not apart & set(t.user_attrs) for t in study.get_trials(deepcopy=False))


def take_back(study: Any, trial: Any) -> None:
    """End a trial that did nothing wrong, and have its settings tried again."""
    study._storage.set_trial_user_attr(trial._trial_id, TAKEN_BACK, True)
    study.tell(trial.number, state=optuna().trial.TrialState.FAIL)
    known = study._storage.get_trial(trial._trial_id)
    carried = {name: known.user_attrs[name] for name in CARRIED if name in known.user_attrs}
    if "checkpoint" in carried:
        carried["rungs"] = {str(rung): score for rung, score in known.intermediate_values.items()}
    study.enqueue_trial(known.params or known.system_attrs.get("fixed_params", {}), user_attrs=carried)


def _try(task: TuneTask, study: Any, trial: Any, plan: Plan, stop: Callable[[], bool], tell: Tell) -> None:
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
        take_back(study, trial)
        return
    study.tell(trial, state=state.PRUNED if math.isfinite(value) else state.FAIL)


@contextmanager
def _turn(directory: Path) -> Generator[None]:
    """One process at a time asks for a trial, so that there are never more than were planned."""
    with open(directory / ".turn", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
