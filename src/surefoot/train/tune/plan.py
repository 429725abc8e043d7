"""The plan of a search (number of trials, seeds, samplers) and its file, tune.json."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from surefoot.errors import ConfigError, RunError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, replace_file

PLAN = "tune.json"
# Added to the seeds of a search for the final comparison. It only has to exceed the number of seeds per trial, so that the
# two sets do not overlap.
FRESH_SEEDS = 10_000
Sampler = Literal["tpe", "random"]
Pruner = Literal["median", "hyperband", "none"]
Scheduler = Literal["asha", "pbt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The options of a search. They are saved in its directory, so that a resumed search uses the same ones."""

    trials: int = 50
    seeds: int = 3
    seed: int = 0
    rungs: int = 5
    """Number of evaluations per trial; the pruner can stop the trial after each."""
    sampler: Sampler = "tpe"
    pruner: Pruner = "median"
    scheduler: Scheduler | None = None
    """Stops trials on a Ray cluster; None if the search was started without Ray."""
    finalists: int = 3
    """Number of best trials that are compared again on fresh seeds to choose the winner. 0: use the best trial."""
    minutes: float | None = None
    timeout: float | None = None
    """Seconds after which a single trial is stopped."""

    def __post_init__(self) -> None:
        for name, least in (("trials", 1), ("seeds", 1), ("seed", 0), ("rungs", 1), ("finalists", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        for name in ("minutes", "timeout"):
            # `not value > 0` also refuses NaN.
            if (value := getattr(self, name)) is not None and not value > 0:
                raise ConfigError(f"{name} is {value}; it must be above 0")

    @property
    def training_seeds(self) -> list[int]:
        """The seeds of every trial. They are the same for all, so that two trials differ only in their settings."""
        return [self.seed + k for k in range(self.seeds)]

    @property
    def fresh_seeds(self) -> list[int]:
        """The seeds of the final comparison. No trial was selected by its score on them."""
        return [FRESH_SEEDS + seed for seed in self.training_seeds]


def write_plan(directory: Path, plan: Plan, about: dict[str, Any]) -> None:
    """Write the plan and `about`, the task's own description, to tune.json."""
    text = json.dumps({"plan": asdict(plan), "task": about}, indent=2) + "\n"
    replace_file(REAL_FS, directory / PLAN, text.encode())


def read_plan(directory: Path) -> tuple[Plan, dict[str, Any]]:
    """Return the plan and the description of the task from tune.json."""
    try:
        content = json.loads((directory / PLAN).read_text(encoding="utf-8"))
        return Plan(**content["plan"]), content["task"]
    except FileNotFoundError:
        raise RunError(f"{directory} is not a search: it has no {PLAN}") from None
    except (OSError, ValueError, TypeError, KeyError) as why:
        raise RunError(f"{directory / PLAN} cannot be read: {why}") from why
