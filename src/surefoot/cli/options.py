"""Types and checks that the arguments of several verbs share."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.train.rundir.rundir import RunDir

RunName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
Run = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN", help="A run's directory or name.")]
Runs = Annotated[Path | None, tyro.conf.arg(help="Where runs are kept (default $SUREFOOT_RUNS or ./runs).")]
NewRunName = Annotated[str | None, tyro.conf.arg(help="The run's name.")]
CheckpointName = Annotated[str, tyro.conf.arg(help="latest, best, or the number of one.")]
Json = Annotated[bool, tyro.conf.arg(name="json")]
PrintJson = Annotated[bool, tyro.conf.arg(name="json", help="Print JSON.")]
Seed = Annotated[int, tyro.conf.arg(help="Everything random follows from it.")]
OptionalSeed = Annotated[int | None, tyro.conf.arg(help="Everything random follows from it.")]
Stochastic = Annotated[bool, tyro.conf.arg(help="Sample actions, as in training.")]
Display = Annotated[
    Literal["auto", "live", "lines", "quiet"], tyro.conf.arg(help="live dashboard, plain lines, or quiet.")
]
Pairs = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]
Settings = Annotated[Pairs, tyro.conf.arg(aliases=["-s"], metavar="KEY=VALUE")]
Backend = Annotated[
    Literal["auto", "surefoot", "gymnasium", "envpool"],
    tyro.conf.arg(
        help="Whose env: auto takes our own vectorised one for the classics, and Atari with the details of PPO."
    ),
]
Track = Annotated[
    tuple[Literal["tensorboard", "wandb", "trackio", "mlflow"], ...],
    tyro.conf.UseAppendAction,
    tyro.conf.arg(
        metavar="tensorboard|wandb|trackio|mlflow",
        help="Mirror the numbers to another tool while training, offline, in the run's directory; may be given several "
        "times.",
    ),
]


def run_directory(name: str, runs: Path | None) -> RunDir:
    """Return the directory of the run called `name`, or at the path `name`."""
    from surefoot.train.rundir.rundir import find_run, runs_root

    return find_run(name, runs_root(runs))


def pairs(given: tuple[str, ...], flag: str) -> dict[str, str]:
    """Return {"lr": "3e-4"} for ("lr=3e-4",)."""
    values: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise Usage(f"{flag} {shlex.quote(text)} is not KEY=VALUE, such as {flag} lr=3e-4")
        if key in values:
            raise Usage(f"{flag} {key} is given twice; give it once")
        values[key] = value
    return values


def at_least_one(**counts: int | None) -> None:
    """Raise `Usage` for a flag that counts something and is below 1; None was not given."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise Usage(f"--{name} is {count}; it must be at least 1")


def user_object(name: str, flag: str, wrong: str = "") -> Any:
    """Return the object at `module:name`, imported from the current directory or the path.

    `wrong` is the error message for a name without a colon.
    """
    from surefoot.train.worlds import import_user_module

    module, colon, attribute = name.partition(":")
    if not colon or not attribute:
        raise Usage(wrong or f"{flag} is {name!r}; it must be module:function, such as my_rewards:polite")
    try:
        return getattr(import_user_module(module), attribute)
    except ImportError as why:
        raise Usage(f"{flag}: cannot import {module}: {why}") from why
    except AttributeError as why:
        raise Usage(f"{flag}: {module} has no {attribute}") from why
